/*
 * mpiox_lock_model_server.c - server-managed extent locks, as Lustre's servers grant them.
 *
 * A request that no lock of its aggregator covers is enqueued at the object's server. The server revokes other owners'
 * locks that overlap the required range: these write their data, and cancel the whole lock. The new lock is the largest
 * range around the required one that is free of other aggregators' locks and of the ranges that the step's other
 * requests require here: these requests are outstanding at the same time, waiting or in use. A range that overlaps the
 * required one does not limit it (both cannot be granted), and the first request at an object without locks gets all of
 * it at once. With many owners a lock grows less: not downwards with more than 4 of them, upwards by 32 MiB with more
 * than 32.
 * A lock is returned when all data that its owner wrote under it is on the server, including cached data; in its own
 * step a write counts with its transfer alone.
 * An aggregator's own locks never limit it; the new lock merges with those that it reaches.
 * Source: Lustre, lustre/ldlm/ldlm_extent.c (policies "granted" and "waiting").
 */
#include <stdlib.h>

#include "mpiox_lock_model_state.h"

static int compare_ranges(const void *a, const void *b)
{
    const locks_range *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

/* The step's ranges on this server, by position. Starts and ends both ascend: the bytes behind them are disjoint. */
static void sort_ranges(locks_state *state, int64_t n)
{
    bool ascending = true;
    for (int64_t i = 0; i < n; i++) {
        state->sorted[i] = state->ranges[i];
        ascending = ascending && (i == 0 || compare_ranges(&state->ranges[i - 1], &state->ranges[i]) < 0);
    }
    if (!ascending)
        qsort(state->sorted, (size_t)n, sizeof *state->sorted, compare_ranges);
}

/* How far the step's other ranges let a lock around `range` grow. */
static void limit_by_step(const locks_state *state, int64_t n, const locks_range *range, int64_t *low, int64_t *high)
{
    const locks_range *sorted = state->sorted;
    int64_t from = 0, to = n; /* the first that ends behind the start of the range */
    while (from < to) {
        int64_t middle = from + (to - from) / 2;
        if (sorted[middle].last <= range->first)
            from = middle + 1;
        else
            to = middle;
    }
    *low = from > 0 ? sorted[from - 1].last : 0;
    for (to = n; from < to;) { /* the first that starts at or behind the end */
        int64_t middle = from + (to - from) / 2;
        if (sorted[middle].first < range->last)
            from = middle + 1;
        else
            to = middle;
    }
    *high = from < n ? sorted[from].first : INT64_MAX;
}

typedef struct growth { /* of a new lock */
    int64_t low, high;  /* how far it may grow over what is free */
    int64_t start, end; /* the required range and the own locks that it has become one with */
    double free_at;
} growth;

static mpiox_lockset_cursor absorb(mpiox_lockset *set, mpiox_lockset_cursor at, growth *grown)
{
    const mpiox_lockset_lock *lock = mpiox_lockset_at(set, at);
    grown->start = lock->start < grown->start ? lock->start : grown->start;
    grown->end = lock->end > grown->end ? lock->end : grown->end;
    grown->free_at = locks_later(grown->free_at, lock->free_at);
    return mpiox_lockset_erase(set, at);
}

/* Take out all that overlaps the required range: own locks are absorbed, others revoked. Returns how many were, and
 * until when the last of their holders writes in *free_at. */
static int64_t revoke(mpiox_lockset *set, mpiox_lockset_cursor *at, int32_t owner, growth *grown, double *free_at)
{
    const int64_t last = grown->end;
    int64_t revoked = 0;
    for (const mpiox_lockset_lock *lock; (lock = mpiox_lockset_at(set, *at)) != NULL && lock->start < last;) {
        if (lock->owner == owner) {
            *at = absorb(set, *at, grown);
            continue;
        }
        revoked++;
        *free_at = locks_later(*free_at, lock->free_at);
        *at = mpiox_lockset_erase(set, *at);
    }
    return revoked;
}

/* Grow over what is free, from the place where the lock will be. */
static void grow(mpiox_lockset *set, mpiox_lockset_cursor at, int32_t owner, growth *grown)
{
    for (const mpiox_lockset_lock *lock; (lock = mpiox_lockset_at(set, at)) != NULL && lock->start < grown->high;) {
        if (lock->owner != owner) {
            grown->high = lock->start;
            break;
        }
        at = absorb(set, at, grown);
    }
    while (mpiox_lockset_back(set, &at)) {
        const mpiox_lockset_lock *lock = mpiox_lockset_at(set, at);
        if (lock->end <= grown->low)
            break;
        if (lock->owner != owner) {
            grown->low = lock->end;
            break;
        }
        at = absorb(set, at, grown);
    }
    grown->start = grown->low < grown->start ? grown->low : grown->start;
    grown->end = grown->high > grown->end ? grown->high : grown->end;
}

/* The rules of ldlm for objects where many meet: `holders` locks are granted, `others` requests outstanding. */
static void restrain(const locks_state *state, int64_t holders, int64_t others, const locks_range *range, growth *grown)
{
    const mpiox_lock_model_system *system = state->system;
    const int64_t most = holders > others ? holders : others;
    if (most > system->forward_holders)
        grown->low = range->first;
    if (system->growth_bytes > 0 && most > system->growth_holders) {
        int64_t units = system->growth_bytes / state->unit;
        int64_t limit = range->first > INT64_MAX - units ? INT64_MAX : range->first + units;
        limit = limit > range->last ? limit : range->last;
        grown->high = limit < grown->high ? limit : grown->high;
    }
}

/* About when a piece that may leave at `from` is on its server: its place in this step's queue is not known yet. */
static double own_transfer(const locks_state *state, const locks_piece *piece, double from)
{
    const int64_t bytes = piece->to - piece->from;
    from = locks_later(from, state->links[state->requests[piece->request].aggregator]); /* behind the cache's data */
    return locks_later(from + state->system->round_trip / 2, state->data_clocks[piece->server]) +
           locks_data_time(state->system, bytes) + state->system->commit;
}

static int enqueue(locks_state *state, int32_t server, const locks_range *range, int64_t n, double *locked)
{
    const mpiox_lock_model_system *system = state->system;
    const locks_piece *piece = &state->pieces[range->piece];
    const locks_request *request = &state->requests[piece->request];
    mpiox_lockset *set = &state->sets[server];
    mpiox_lock_model_counts *counts = &state->outcome->servers[server];
    growth grown = {.low = 0, .high = INT64_MAX, .start = range->first, .end = range->last};
    double t = request->issued + (piece->number + 1) * system->enqueue + system->round_trip / 2;
    t = state->lock_clocks[server] = locks_later(state->lock_clocks[server], t) + system->lock_service;

    if (set->count > 0) {
        double free_at = 0;
        mpiox_lockset_cursor at = mpiox_lockset_seek(set, range->first);
        int64_t revoked = revoke(set, &at, request->aggregator, &grown, &free_at);
        if (revoked > 0) {
            counts->conflicts++;
            counts->revocations += revoked;
            t = locks_later(t + system->round_trip / 2, free_at) + system->round_trip / 2 +
                (double)revoked * system->lock_service;
        }
        limit_by_step(state, n, range, &grown.low, &grown.high);
        restrain(state, set->count, n - 1, range, &grown);
        grow(set, at, request->aggregator, &grown);
    } else {
        grown.start = 0;
        grown.end = INT64_MAX;
    }
    counts->lock_requests++;
    counts->grants++;
    *locked = t + system->round_trip / 2;
    mpiox_lockset_lock lock = {.start = grown.start, .end = grown.end, .owner = request->aggregator};
    lock.free_at = own_transfer(state, piece, *locked);
    lock.free_at = locks_later(lock.free_at, grown.free_at);
    return mpiox_lockset_insert(set, mpiox_lockset_seek(set, lock.start), &lock);
}

/* Is the range under a lock of its aggregator? Its holder's data is then on its way under that lock. */
static bool match(locks_state *state, int32_t server, const locks_range *range)
{
    const locks_piece *piece = &state->pieces[range->piece];
    const locks_request *request = &state->requests[piece->request];
    mpiox_lockset_lock *lock = mpiox_lockset_at(&state->sets[server],
                                                mpiox_lockset_seek(&state->sets[server], range->first));
    if (lock == NULL || lock->owner != request->aggregator || lock->start > range->first || lock->end < range->last)
        return false;
    lock->free_at = locks_later(lock->free_at, own_transfer(state, piece, request->issued));
    return true;
}

int mpiox_lock_model_server_step(locks_state *state, int32_t server, int64_t n)
{
    int64_t matched = 0;
    for (int64_t i = 0; i < n; i++) {
        state->ranges[i].matched = state->sets[server].count > 0 && match(state, server, &state->ranges[i]);
        matched += state->ranges[i].matched;
    }
    state->outcome->servers[server].matches += matched;
    if (matched < n)
        sort_ranges(state, n);
    for (int64_t i = 0; i < n && matched < n; i++) {
        double locked;
        if (state->ranges[i].matched)
            continue;
        if (enqueue(state, server, &state->ranges[i], n, &locked) != MPIOX_OK)
            return MPIOX_E_NOMEM;
        locks_request *request = &state->requests[state->pieces[state->ranges[i].piece].request];
        request->locked = locks_later(request->locked, locked);
    }
    return MPIOX_OK;
}

void mpiox_lock_model_server_read(locks_state *state, int32_t server)
{
    const mpiox_lock_model_system *system = state->system;
    mpiox_lock_model_counts *counts = &state->outcome->servers[server];
    for (int64_t p = state->heads[server]; p >= 0; p = state->pieces[p].next) {
        const locks_piece *piece = &state->pieces[p];
        locks_request *request = &state->requests[piece->request];
        if (!piece->first_visit) {
            counts->matches++;
            continue;
        }
        double t = request->issued + (piece->number + 1) * system->enqueue + system->round_trip / 2;
        t = state->lock_clocks[server] = locks_later(state->lock_clocks[server], t) + system->lock_service;
        request->locked = locks_later(request->locked, t + system->round_trip / 2);
        counts->lock_requests++;
        counts->grants++;
    }
}

/* An aggregator's writes under a lock that it still owns; it may have been revoked in the step. */
void mpiox_lock_model_server_stored(locks_state *state)
{
    for (int32_t i = 0; i < state->n_touched; i++) {
        const mpiox_lockset *set = &state->sets[state->touched[i]];
        for (int64_t p = state->heads[state->touched[i]]; p >= 0; p = state->pieces[p].next) {
            const locks_piece *piece = &state->pieces[p];
            const int64_t first = piece->from / state->unit;
            mpiox_lockset_lock *lock = mpiox_lockset_at(set, mpiox_lockset_seek(set, first));
            if (lock != NULL && lock->start <= first && lock->owner == state->requests[piece->request].aggregator)
                lock->free_at = locks_later(lock->free_at, piece->stored);
        }
    }
}
