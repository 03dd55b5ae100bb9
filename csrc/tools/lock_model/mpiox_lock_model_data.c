/*
 * mpiox_lock_model_data.c - the data of a step: through the aggregators' links and the servers' queues.
 *
 * A request's data starts when it has all its locks. A write leaves its aggregator piece after piece, in file order, at
 * the client's bandwidth. The aggregator's next request may be issued when the last has left (the file system writes
 * behind). A round ends only when all is on the servers. A read is requested immediately; the next request is issued
 * when its data has arrived. A server takes the pieces of a step in the order in which they arrive, behind those of
 * earlier steps. With a cache a write returns when its data is in the cache (mpiox_lock_model_cache.c), and its round
 * may end. The locks that protect the write have the time at which the data is on the servers: until then no other
 * aggregator gets these locks.
 */
#include <stdlib.h>

#include "mpiox_lock_model_state.h"

typedef struct arrival { /* in place of locks_range while the data is served */
    double at;
    int64_t piece;
} arrival;

_Static_assert(sizeof(arrival) <= sizeof(locks_range), "arrivals use the memory of ranges");

static int compare_arrivals(const void *a, const void *b)
{
    const arrival *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

/* A write goes into the cache as soon as it has room there, and on its way behind what is there already. */
static void send_cached(locks_state *state, const locks_request *request)
{
    const mpiox_lock_model_system *system = state->system;
    const size_t a = (size_t)request->aggregator;
    double t = mpiox_lock_model_cache_room(&state->client_cache, a, request->locked, request->length);
    for (int32_t k = 0; k < request->pieces; k++) {
        locks_piece *piece = &state->pieces[request->first_piece + k];
        const int64_t bytes = piece->to - piece->from;
        t = mpiox_lock_model_cache_room(&state->server_cache,
                                        a * (size_t)state->geometry.servers + (size_t)piece->server, t, bytes);
        state->links[a] = locks_later(state->links[a], t) + (double)bytes / system->client_bandwidth;
        piece->arrives = state->links[a] + system->round_trip / 2;
    }
    state->clocks[a] = t;
}

static void send(locks_state *state)
{
    const mpiox_lock_model_system *system = state->system;
    for (int64_t i = 0; i < state->n_requests; i++) {
        const locks_request *request = &state->requests[i];
        if (state->caching) {
            send_cached(state, request);
            continue;
        }
        double t = request->locked;
        for (int32_t k = 0; k < request->pieces; k++) {
            locks_piece *piece = &state->pieces[request->first_piece + k];
            if (!state->run->reads)
                t += (double)(piece->to - piece->from) / system->client_bandwidth;
            piece->arrives = t + system->round_trip / 2;
        }
        state->clocks[request->aggregator] = t;
        if (state->run->reads)
            state->written[request->aggregator] = t + system->round_trip +
                                                  (double)request->length / system->client_bandwidth;
    }
}

static void serve(locks_state *state, int32_t server)
{
    arrival *queue = (arrival *)state->sorted;
    int64_t n = 0;
    bool ascending = true;
    for (int64_t p = state->heads[server]; p >= 0; p = state->pieces[p].next) {
        queue[n] = (arrival){.at = state->pieces[p].arrives, .piece = p};
        ascending = ascending && (n == 0 || compare_arrivals(&queue[n - 1], &queue[n]) < 0);
        n++;
    }
    if (!ascending)
        qsort(queue, (size_t)n, sizeof *queue, compare_arrivals);
    double clock = state->data_clocks[server];
    const double answer = (state->run->reads ? 0 : state->system->commit) + state->system->round_trip / 2;
    for (int64_t i = 0; i < n; i++) {
        locks_piece *piece = &state->pieces[queue[i].piece];
        const int32_t aggregator = state->requests[piece->request].aggregator;
        clock = locks_later(clock, queue[i].at) + locks_data_time(state->system, piece->to - piece->from);
        piece->stored = clock + answer;
        state->written[aggregator] = locks_later(state->written[aggregator], piece->stored);
    }
    state->data_clocks[server] = clock;
}

/* Note what is in the caches now and when it is on the servers; what is larger than a cache is waited for. */
static int keep(locks_state *state, locks_request *request)
{
    const mpiox_lock_model_system *system = state->system;
    const size_t a = (size_t)request->aggregator;
    double wait = 0;
    request->stored = 0;
    for (int32_t k = 0; k < request->pieces; k++) {
        const locks_piece *piece = &state->pieces[request->first_piece + k];
        const int64_t bytes = piece->to - piece->from;
        request->stored = locks_later(request->stored, piece->stored);
        if (system->dirty_server > 0 && bytes > system->dirty_server)
            wait = locks_later(wait, piece->stored);
        if (mpiox_lock_model_cache_add(&state->server_cache,
                                       a * (size_t)state->geometry.servers + (size_t)piece->server, bytes,
                                       piece->stored) != MPIOX_OK)
            return MPIOX_E_NOMEM;
    }
    if (system->dirty_client > 0 && request->length > system->dirty_client)
        wait = locks_later(wait, request->stored);
    state->clocks[a] = locks_later(state->clocks[a], wait);
    return mpiox_lock_model_cache_add(&state->client_cache, a, request->length, request->stored);
}

int mpiox_lock_model_data_step(locks_state *state)
{
    send(state);
    for (int32_t i = 0; i < state->n_touched; i++)
        serve(state, state->touched[i]);
    for (int64_t i = 0; state->run->reads && i < state->n_requests; i++) {
        const int32_t aggregator = state->requests[i].aggregator;
        state->clocks[aggregator] = state->written[aggregator];
    }
    if (!state->caching)
        return MPIOX_OK;
    for (int64_t i = 0; i < state->n_requests; i++)
        if (keep(state, &state->requests[i]) != MPIOX_OK)
            return MPIOX_E_NOMEM;
    if (state->system->protocol == MPIOX_LOCK_MODEL_SERVER)
        mpiox_lock_model_server_stored(state);
    else if (state->system->protocol == MPIOX_LOCK_MODEL_TOKEN)
        mpiox_lock_model_token_stored(state);
    return MPIOX_OK;
}
