/*
 * mpiox_lock_model_token.c - byte-range tokens of a file, as GPFS clients negotiate them.
 *
 * For a request that no token of its aggregator covers, the client requests from the token manager the required range,
 * and the desired range, from there to the end of file. The manager names the owners of tokens that overlap the
 * required range, and the client requests a part from each. An owner that works below the requested offset gives up
 * everything from that offset on. An owner that works above it gives up everything below its own position, and keeps
 * the rest. (Its position: the start of its request in this step, or the end of its last one.) Then the client gets as
 * much of the desired range as no other token covers. The first client gets the whole file. Only an owner that gives up
 * a range in which it may have written has to write it first. Readers share: each requests a token once.
 * Source: Schmuck and Haskin, "GPFS: A Shared-Disk File System for Large Computing Clusters", FAST '02, section 3.2.
 */
#include <stddef.h>

#include "mpiox_lock_model_state.h"

/* Let one holder give up its part; returns the place behind what is left of its token. */
static mpiox_lockset_cursor give_up(locks_state *state, mpiox_lockset *set, mpiox_lockset_cursor at, int64_t first,
                                    int64_t last, double *free_at)
{
    mpiox_lockset_lock *lock = mpiox_lockset_at(set, at);
    const int64_t place = state->positions[lock->owner];
    if (first >= place) { /* the holder works below: it keeps that, unless both need the unit */
        if (first == place || lock->start >= first)
            *free_at = locks_later(*free_at, lock->free_at);
        if (lock->start >= first)
            return mpiox_lockset_erase(set, at);
        lock->end = first;
        return mpiox_lockset_next(set, at);
    }
    const int64_t keep = place > last ? place : last;
    *free_at = locks_later(*free_at, lock->free_at);
    if (lock->end <= keep)
        return mpiox_lockset_erase(set, at);
    if (lock->start < keep)
        mpiox_lockset_raise(set, at, keep);
    return at;
}

/* About when a request that may leave at `from` is on the servers: their queues of this step are not known yet. */
static double own_transfer(const locks_state *state, const locks_request *request, double from)
{
    const mpiox_lock_model_system *system = state->system;
    double rate = (double)request->pieces * system->server_bandwidth;
    rate = rate < system->client_bandwidth ? rate : system->client_bandwidth;
    from = locks_later(from, state->links[request->aggregator]); /* behind the cache's data */
    return from + system->round_trip / 2 + system->request_overhead + (double)request->length / rate + system->commit;
}

static int acquire(locks_state *state, locks_request *request, mpiox_lock_model_counts *counts, int64_t first,
                   int64_t last)
{
    const mpiox_lock_model_system *system = state->system;
    mpiox_lockset *set = &state->sets[0];
    mpiox_lockset_lock token = {.start = set->count == 0 ? 0 : first, .end = last, .owner = request->aggregator};
    double t = request->issued + system->enqueue + system->round_trip / 2, free_at = 0;
    t = state->lock_clocks[0] = locks_later(state->lock_clocks[0], t) + system->lock_service;
    t += system->round_trip / 2;
    mpiox_lockset_cursor at = mpiox_lockset_seek(set, first);
    int64_t revoked = 0;
    mpiox_lockset_lock *lock;
    while ((lock = mpiox_lockset_at(set, at)) != NULL && lock->start < last) {
        if (lock->owner != request->aggregator) {
            revoked++;
            at = give_up(state, set, at, first, last, &free_at);
            continue;
        }
        token.start = lock->start < token.start ? lock->start : token.start;
        token.end = lock->end > token.end ? lock->end : token.end;
        token.free_at = locks_later(token.free_at, lock->free_at);
        at = mpiox_lockset_erase(set, at);
    }
    while ((lock = mpiox_lockset_at(set, at)) != NULL && lock->owner == request->aggregator) { /* own ones: pass over */
        token.end = lock->end;
        token.free_at = locks_later(token.free_at, lock->free_at);
        at = mpiox_lockset_erase(set, at);
    }
    token.end = lock != NULL ? lock->start : INT64_MAX;
    if (revoked > 0) {
        counts->conflicts++;
        counts->revocations += revoked;
        t = locks_later(t + system->round_trip / 2, free_at) + system->round_trip / 2;
    }
    counts->lock_requests++;
    counts->grants++;
    request->locked = t;
    token.free_at = locks_later(token.free_at, own_transfer(state, request, t));
    return mpiox_lockset_insert(set, at, &token); /* all that was in [token.start, token.end) has been taken out */
}

static bool match(locks_state *state, const locks_request *request, int64_t first, int64_t last)
{
    mpiox_lockset *set = &state->sets[0];
    mpiox_lockset_lock *lock = mpiox_lockset_at(set, mpiox_lockset_seek(set, first));
    if (lock == NULL || lock->owner != request->aggregator || lock->start > first || lock->end < last)
        return false;
    lock->free_at = locks_later(lock->free_at, own_transfer(state, request, request->issued));
    return true;
}

/* A reader's first request: a shared token for the whole file, which conflicts with none. */
static void read_token(locks_state *state, locks_request *request, mpiox_lock_model_counts *counts)
{
    const mpiox_lock_model_system *system = state->system;
    if (locks_test_and_set(state->readers, (uint64_t)request->aggregator)) {
        counts->matches++;
        return;
    }
    double t = request->issued + system->enqueue + system->round_trip / 2;
    t = state->lock_clocks[0] = locks_later(state->lock_clocks[0], t) + system->lock_service;
    request->locked = t + system->round_trip / 2;
    counts->lock_requests++;
    counts->grants++;
}

/* The next searches' places: called before each request, it acts before each MPIOX_LOCKSET_WARM-th. */
static void warm(const locks_state *state, int64_t i)
{
    if (i % MPIOX_LOCKSET_WARM != 0)
        return;
    int64_t positions[MPIOX_LOCKSET_WARM];
    int32_t n = 0;
    for (; n < MPIOX_LOCKSET_WARM && i + n < state->n_requests; n++)
        positions[n] = state->requests[i + n].offset / state->unit;
    mpiox_lockset_warm(&state->sets[0], positions, n);
}

int mpiox_lock_model_token_step(locks_state *state)
{
    const int64_t unit = state->unit;
    const mpiox_geometry *geometry = &state->geometry;
    for (int pass = 0; pass < 2; pass++) /* first those that have a token: all are asked before any asks */
        for (int64_t i = 0; i < state->n_requests; i++) {
            locks_request *request = &state->requests[i];
            warm(state, i);
            mpiox_lock_model_counts *counts =
                &state->outcome->servers[request->offset / geometry->stripe_size % geometry->servers];
            const int64_t first = request->offset / unit;
            const int64_t last = locks_divide_up(request->offset + request->length, unit);
            if (state->run->reads) {
                if (pass == 0)
                    read_token(state, request, counts);
            } else if (pass == 0) {
                state->positions[request->aggregator] = first;
                state->ranges[i].matched = match(state, request, first, last);
                counts->matches += state->ranges[i].matched;
            } else if (!state->ranges[i].matched && acquire(state, request, counts, first, last) != MPIOX_OK) {
                return MPIOX_E_NOMEM;
            }
        }
    for (int64_t i = 0; i < state->n_requests; i++)
        state->positions[state->requests[i].aggregator] = locks_divide_up(
            state->requests[i].offset + state->requests[i].length, unit);
    return MPIOX_OK;
}

/* An aggregator's writes under a token that it still has; the unit may have been given up in the step. */
void mpiox_lock_model_token_stored(locks_state *state)
{
    const mpiox_lockset *set = &state->sets[0];
    for (int64_t i = 0; i < state->n_requests; i++) {
        const locks_request *request = &state->requests[i];
        const int64_t first = request->offset / state->unit;
        warm(state, i);
        mpiox_lockset_lock *lock = mpiox_lockset_at(set, mpiox_lockset_seek(set, first));
        if (lock != NULL && lock->start <= first && lock->owner == request->aggregator)
            lock->free_at = locks_later(lock->free_at, request->stored);
    }
}
