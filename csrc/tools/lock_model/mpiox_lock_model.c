/*
 * mpiox_lock_model.c - runs the lock model: collectives, rounds, steps; requests become pieces on servers.
 *
 * Only one round's extents and one step's requests exist at a time: a plan of 10^7 stripes is streamed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_lock_model.h"
#include "mpiox_lock_model_state.h"

typedef struct round_work { /* by aggregator: what is left of its window */
    int64_t first, n;       /* its extents in `extents` */
    int64_t next, offset;   /* the next extent, and where in it the next request begins */
} round_work;

typedef struct collective { /* one collective call */
    mpiox_plan *plan;
    int64_t *windows; /* by aggregator: how many */
    int64_t rounds;
    round_work *work;
    mpiox_extent *extents;
    int64_t n_extents, extent_capacity, window_extents;
} collective;

bool mpiox_lock_model_system_is_valid(const mpiox_lock_model_system *system)
{
    const double times[] = {system->round_trip, system->enqueue, system->lock_service, system->request_overhead,
                            system->commit};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (!(times[i] >= 0) || !isfinite(times[i]))
            return false;
    return system->protocol >= MPIOX_LOCK_MODEL_NONE && system->protocol <= MPIOX_LOCK_MODEL_TOKEN &&
           system->granularity >= 0 && system->granularity <= MPIOX_PARTITION_MAX_OFFSET && system->growth_bytes >= 0 &&
           system->growth_holders >= 0 && system->forward_holders >= 0 && system->rpc_bytes >= 1 &&
           system->server_bandwidth > 0 && isfinite(system->server_bandwidth) && system->client_bandwidth > 0 &&
           isfinite(system->client_bandwidth) && system->dirty_server >= 0 &&
           system->dirty_server <= MPIOX_PARTITION_MAX_OFFSET && system->dirty_client >= 0 &&
           system->dirty_client <= MPIOX_PARTITION_MAX_OFFSET;
}

static bool run_is_valid(const mpiox_lock_model_run *run, const mpiox_geometry *geometry)
{
    const int64_t length = geometry->end - geometry->start;
    return run->window_bytes >= 1 && run->window_bytes <= MPIOX_PARTITION_MAX_OFFSET && run->collectives >= 1 &&
           (length == 0 || run->collectives - 1 <= (MPIOX_PARTITION_MAX_OFFSET - geometry->end) / length);
}

static void state_free(locks_state *state)
{
    for (int32_t i = 0; state->sets != NULL && i < state->n_sets; i++)
        mpiox_lockset_free(&state->sets[i]);
    free(state->sets);
    free(state->seen);
    free(state->readers);
    free(state->clocks);
    free(state->written);
    free(state->links);
    mpiox_lock_model_cache_free(&state->server_cache);
    mpiox_lock_model_cache_free(&state->client_cache);
    free(state->lock_clocks);
    free(state->data_clocks);
    free(state->positions);
    free(state->shared.entries);
    free(state->last_owners);
    free(state->order);
    free(state->requests);
    free(state->pieces);
    free(state->heads);
    free(state->tails);
    free(state->touched);
    free(state->ranges);
    free(state->sorted);
}

static int state_set_up(locks_state *state, const mpiox_partition_method *method)
{
    const mpiox_geometry *geometry = &state->geometry;
    const size_t s = (size_t)geometry->servers;
    state->aggregators = method->adjust != NULL ? method->adjust(geometry) : geometry->aggregators;
    const size_t a = (size_t)state->aggregators;
    state->unit = state->system->granularity > 0 ? state->system->granularity : geometry->stripe_size;
    state->n_sets = state->system->protocol == MPIOX_LOCK_MODEL_TOKEN ? 1 : geometry->servers;
    state->sets = calloc((size_t)state->n_sets, sizeof *state->sets);
    state->seen = calloc(a * s / 64 + 1, sizeof *state->seen);
    state->readers = calloc(a / 64 + 1, sizeof *state->readers);
    state->clocks = calloc(a, sizeof *state->clocks);
    state->written = calloc(a, sizeof *state->written);
    state->links = calloc(a, sizeof *state->links);
    state->lock_clocks = calloc(s, sizeof *state->lock_clocks);
    state->data_clocks = calloc(s, sizeof *state->data_clocks);
    state->positions = calloc(a, sizeof *state->positions);
    state->last_owners = malloc(s * sizeof *state->last_owners);
    state->order = malloc(a * sizeof *state->order);
    state->requests = malloc(a * sizeof *state->requests);
    state->heads = malloc(s * sizeof *state->heads);
    state->tails = malloc(s * sizeof *state->tails);
    state->touched = malloc(s * sizeof *state->touched);
    state->ranges = malloc(a * sizeof *state->ranges);
    state->sorted = malloc(a * sizeof *state->sorted);
    if (!state->sets || !state->seen || !state->readers || !state->clocks || !state->written || !state->links ||
        !state->lock_clocks || !state->data_clocks || !state->positions || !state->last_owners || !state->order ||
        !state->requests || !state->heads || !state->tails || !state->touched || !state->ranges || !state->sorted)
        return MPIOX_E_NOMEM;
    for (size_t i = 0; i < s; i++) {
        state->last_owners[i] = -1;
        state->heads[i] = -1;
    }
    for (size_t i = 0; i < a; i++)
        state->order[i] = (int32_t)i;
    state->random = state->run->seed;
    state->caching = !state->run->reads && (state->system->dirty_server > 0 || state->system->dirty_client > 0);
    if (!state->caching)
        return MPIOX_OK;
    int rc = mpiox_lock_model_cache_set_up(&state->server_cache, state->system->dirty_server, a * s);
    return rc == MPIOX_OK ? mpiox_lock_model_cache_set_up(&state->client_cache, state->system->dirty_client, a) : rc;
}

/* SplitMix64 (Steele, Lea and Flood, OOPSLA '14): the next 64 random bits. */
static uint64_t random_next(uint64_t *random)
{
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Fisher and Yates, from the end. */
static void shuffle(locks_state *state)
{
    for (int32_t i = state->aggregators - 1; i > 0; i--) {
        const int32_t j = (int32_t)(random_next(&state->random) % (uint64_t)(i + 1)), kept = state->order[i];
        state->order[i] = state->order[j];
        state->order[j] = kept;
    }
}

static int add_piece(locks_state *state, int64_t request, int32_t server, int32_t number, int64_t from, int64_t to)
{
    if (state->n_pieces == state->piece_capacity) {
        const int64_t capacity = state->piece_capacity == 0 ? 1024 : 2 * state->piece_capacity;
        locks_piece *pieces = realloc(state->pieces, (size_t)capacity * sizeof *pieces);
        if (pieces == NULL)
            return MPIOX_E_NOMEM;
        state->pieces = pieces;
        state->piece_capacity = capacity;
    }
    const int64_t p = state->n_pieces++;
    state->pieces[p] = (locks_piece){
        .from = from, .to = to, .request = request, .next = -1, .server = server, .number = number};
    if (state->heads[server] < 0) {
        state->heads[server] = p;
        state->touched[state->n_touched++] = server;
    } else {
        state->pieces[state->tails[server]].next = p;
    }
    state->tails[server] = p;

    const int32_t aggregator = state->requests[request].aggregator;
    mpiox_lock_model_counts *counts = &state->outcome->servers[server];
    counts->data_requests++;
    counts->data_bytes += to - from;
    if (counts->data_requests == 1 || to - from < counts->smallest)
        counts->smallest = to - from;
    if (to - from > counts->largest)
        counts->largest = to - from;
    const uint64_t bit = (uint64_t)aggregator * (uint64_t)state->geometry.servers + (uint64_t)server;
    if (!locks_test_and_set(state->seen, bit)) {
        state->pieces[p].first_visit = true;
        counts->aggregators++;
    }
    if (state->run->reads || state->system->protocol == MPIOX_LOCK_MODEL_TOKEN)
        return MPIOX_OK;
    return mpiox_lock_model_share(state, server, aggregator, from, to);
}

/* Cut a request into what it accesses on each server; the stripes of one server are contiguous there. */
static int add_pieces(locks_state *state, int64_t index)
{
    const mpiox_geometry *geometry = &state->geometry;
    const int64_t size = geometry->stripe_size, servers = geometry->servers;
    locks_request *request = &state->requests[index];
    const int64_t end = request->offset + request->length;
    const int64_t first = request->offset / size, last = (end - 1) / size;
    const int64_t n = last - first + 1 < servers ? last - first + 1 : servers;
    request->first_piece = state->n_pieces;
    request->pieces = (int32_t)n;
    for (int64_t j = 0; j < n; j++) {
        const int64_t low = first + j, high = low + (last - low) / servers * servers;
        const int64_t from = low / servers * size + (j == 0 ? request->offset - first * size : 0);
        const int64_t to = high / servers * size + (high == last ? end - last * size : size);
        if (add_piece(state, index, (int32_t)(low % servers), (int32_t)j, from, to) != MPIOX_OK)
            return MPIOX_E_NOMEM;
    }
    if (state->run->reads || state->system->protocol != MPIOX_LOCK_MODEL_TOKEN)
        return MPIOX_OK;
    return mpiox_lock_model_share(state, 0, request->aggregator, request->offset, end);
}

/* Locks of the step, server by server. */
static int lock_step(locks_state *state)
{
    if (state->system->protocol == MPIOX_LOCK_MODEL_NONE)
        return MPIOX_OK;
    if (state->system->protocol == MPIOX_LOCK_MODEL_TOKEN)
        return mpiox_lock_model_token_step(state);
    for (int32_t i = 0; i < state->n_touched; i++) {
        const int32_t server = state->touched[i];
        if (state->run->reads) {
            mpiox_lock_model_server_read(state, server);
            continue;
        }
        int64_t n = 0;
        for (int64_t p = state->heads[server]; p >= 0; p = state->pieces[p].next)
            state->ranges[n++] = (locks_range){.first = state->pieces[p].from / state->unit,
                                               .last = locks_divide_up(state->pieces[p].to, state->unit),
                                               .piece = p};
        if (mpiox_lock_model_server_step(state, server, n) != MPIOX_OK)
            return MPIOX_E_NOMEM;
    }
    return MPIOX_OK;
}

static int step(locks_state *state)
{
    if (locks_stopped(state))
        return MPIOX_E_STOPPED;
    for (int64_t i = 0; i < state->n_requests; i++) {
        locks_request *request = &state->requests[i];
        request->issued = request->locked = state->clocks[request->aggregator];
        state->outcome->bytes += request->length;
        state->outcome->sizes[63 - __builtin_clzll((unsigned long long)request->length)]++;
        if (add_pieces(state, i) != MPIOX_OK)
            return MPIOX_E_NOMEM;
    }
    int rc = lock_step(state);
    if (rc == MPIOX_OK)
        rc = mpiox_lock_model_data_step(state);
    for (int32_t i = 0; i < state->n_touched; i++)
        state->heads[state->touched[i]] = -1;
    state->n_touched = 0;
    state->n_pieces = 0;
    state->outcome->steps++;
    if (state->run->done_bytes != NULL)
        __atomic_store_n(state->run->done_bytes, state->outcome->bytes, __ATOMIC_RELAXED);
    return rc;
}

/* The extents of window `round` of every aggregator. */
static int load_round(locks_state *state, collective *call, int64_t round)
{
    const int64_t window_bytes = state->run->window_bytes;
    call->n_extents = 0;
    for (int32_t a = 0; a < state->aggregators; a++) {
        round_work *work = &call->work[a];
        *work = (round_work){.first = call->n_extents};
        if (round >= call->windows[a])
            continue;
        if (call->extent_capacity - call->n_extents < call->window_extents) {
            const int64_t capacity = 2 * call->extent_capacity + call->window_extents;
            mpiox_extent *extents = realloc(call->extents, (size_t)capacity * sizeof *extents);
            if (extents == NULL)
                return MPIOX_E_NOMEM;
            call->extents = extents;
            call->extent_capacity = capacity;
        }
        work->n = mpiox_plan_window(call->plan, a, window_bytes, round, call->extents + call->n_extents,
                                    call->window_extents);
        if (work->n < 0)
            return (int)work->n;
        work->offset = call->extents[call->n_extents].offset;
        call->n_extents += work->n;
    }
    return MPIOX_OK;
}

/* The next request of every aggregator that has one in this round; their number. */
static int64_t next_requests(locks_state *state, collective *call)
{
    const int64_t size = state->geometry.stripe_size;
    state->n_requests = 0;
    for (int32_t i = 0; i < state->aggregators; i++) {
        const int32_t a = state->order[i];
        round_work *work = &call->work[a];
        if (work->next == work->n)
            continue;
        const mpiox_extent *extent = &call->extents[work->first + work->next];
        const int64_t extent_end = extent->offset + extent->length, left = extent_end - work->offset;
        const int64_t in_stripe = size - work->offset % size;
        const int64_t length = state->run->stripe_size_io && in_stripe < left ? in_stripe : left;
        state->requests[state->n_requests++] = (locks_request){
            .offset = work->offset, .length = length, .aggregator = a};
        work->offset += length;
        if (work->offset == extent_end && ++work->next < work->n)
            work->offset = extent[1].offset;
    }
    return state->n_requests;
}

static int run_round(locks_state *state, collective *call, int64_t round)
{
    int rc = load_round(state, call, round);
    while (rc == MPIOX_OK) {
        if (state->run->shuffle)
            shuffle(state);
        if (next_requests(state, call) == 0)
            break;
        rc = step(state);
    }
    double last = 0;
    for (int32_t a = 0; a < state->aggregators; a++) {
        if (!state->caching)
            state->clocks[a] = locks_later(state->clocks[a], state->written[a]);
        last = locks_later(last, state->clocks[a]);
    }
    for (int32_t a = 0; a < state->aggregators; a++) {
        if (state->run->synchronise)
            state->clocks[a] = last;
        state->outcome->time = locks_later(state->outcome->time,
                                           locks_later(state->clocks[a], state->written[a])); /* closed: all is there */
    }
    state->outcome->rounds++;
    return rc;
}

static int run_collective(locks_state *state, const mpiox_partition_method *method, collective *call)
{
    const int64_t window_bytes = state->run->window_bytes;
    int rc = mpiox_plan_create(method, &state->geometry, &call->plan);
    if (rc == MPIOX_OK)
        rc = mpiox_plan_prepare(call->plan, window_bytes);
    if (rc != MPIOX_OK)
        return rc;
    call->windows = malloc((size_t)state->aggregators * sizeof *call->windows);
    call->work = malloc((size_t)state->aggregators * sizeof *call->work);
    if (call->windows == NULL || call->work == NULL)
        return MPIOX_E_NOMEM;
    call->window_extents = mpiox_plan_window_extents_max(call->plan, window_bytes);
    for (int32_t a = 0; a < state->aggregators; a++) {
        call->windows[a] = mpiox_plan_windows(call->plan, a, window_bytes);
        call->rounds = call->windows[a] > call->rounds ? call->windows[a] : call->rounds;
    }
    rc = mpiox_lock_model_owner_changes(state, call->plan);
    for (int64_t round = 0; rc == MPIOX_OK && round < call->rounds; round++)
        rc = run_round(state, call, round);
    return rc;
}

int mpiox_lock_model_simulate(const mpiox_partition_method *method, const mpiox_geometry *geometry,
                              const mpiox_lock_model_system *system, const mpiox_lock_model_run *run,
                              mpiox_lock_model_outcome *outcome)
{
    if (method == NULL || !mpiox_geometry_is_valid(geometry) || !mpiox_lock_model_system_is_valid(system) ||
        !run_is_valid(run, geometry))
        return MPIOX_E_ARG;
    mpiox_lock_model_counts *servers = outcome->servers;
    memset(servers, 0, (size_t)geometry->servers * sizeof *servers);
    *outcome = (mpiox_lock_model_outcome){.servers = servers};
    locks_state state = {.system = system, .run = run, .geometry = *geometry, .outcome = outcome};
    int rc = state_set_up(&state, method);
    outcome->aggregators_used = state.aggregators;
    for (int32_t i = 0; rc == MPIOX_OK && i < run->collectives && geometry->start < geometry->end; i++) {
        collective call = {0};
        rc = run_collective(&state, method, &call);
        mpiox_plan_free(call.plan);
        free(call.windows);
        free(call.work);
        free(call.extents);
        const int64_t length = geometry->end - geometry->start;
        state.geometry.start += length;
        state.geometry.end += length;
    }
    state_free(&state);
    return rc;
}
