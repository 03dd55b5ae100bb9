/*
 * test_lock_model.c - the set of locks against a plain array, and the lock model on random geometries: run under
 * sanitizers.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_lock_model.h"
#include "mpiox_lock_model_state.h"
#include "mpiox_lockset.h"

#define POSITIONS 60000

static uint64_t state;

static uint64_t random_below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

/* ends[p]: end of the lock that starts at p, or 0. */
static int32_t ends[POSITIONS + 1];

static void check_seek(const mpiox_lockset *set, int64_t position)
{
    mpiox_lockset_cursor at = mpiox_lockset_seek(set, position);
    const mpiox_lockset_lock *found = mpiox_lockset_at(set, at);
    int64_t before = position, after = position + 1;
    while (before > 0 && ends[before] == 0)
        before--;
    if (ends[before] > position)
        after = before;
    else
        while (after < POSITIONS && ends[after] == 0)
            after++;
    if (after >= POSITIONS) {
        CHECK(found == NULL);
        return;
    }
    CHECK(found != NULL && found->start == after && found->end == ends[after]);
}

static void check_order(const mpiox_lockset *set)
{
    mpiox_lockset_cursor at = mpiox_lockset_seek(set, 0);
    int64_t n = 0, p = 0;
    for (const mpiox_lockset_lock *lock; (lock = mpiox_lockset_at(set, at)) != NULL;
         at = mpiox_lockset_next(set, at), n++, p++) {
        while (p < POSITIONS && ends[p] == 0)
            p++;
        CHECK(lock->start == p && lock->end == ends[p]);
    }
    CHECK_EQUAL(n, set->count);
    while (mpiox_lockset_back(set, &at))
        n--;
    CHECK_EQUAL(n, 0);
}

/* Put in, take out and shorten at random; first mostly in, in the end mostly out. */
static void change(mpiox_lockset *set, int most_erased)
{
    int64_t start = (int64_t)random_below(POSITIONS - 1);
    mpiox_lockset_cursor at = mpiox_lockset_seek(set, start);
    mpiox_lockset_lock *lock = mpiox_lockset_at(set, at);
    if (lock != NULL && (lock->start <= start || most_erased)) {
        if (random_below(8) == 0 && lock->end - lock->start > 1) {
            ends[lock->start + 1] = ends[lock->start];
            ends[lock->start] = 0;
            mpiox_lockset_raise(set, at, lock->start + 1);
            return;
        }
        ends[lock->start] = 0;
        const mpiox_lockset_cursor next = mpiox_lockset_erase(set, at), same = mpiox_lockset_seek(set, start);
        CHECK(mpiox_lockset_at(set, next) == mpiox_lockset_at(set, same));
        return;
    }
    int64_t end = start + 1 + (int64_t)random_below(3);
    if (lock != NULL && end > lock->start)
        end = lock->start;
    end = end > POSITIONS ? POSITIONS : end;
    const mpiox_lockset_lock added = {.start = start, .end = end};
    CHECK_EQUAL(mpiox_lockset_insert(set, at, &added), 0);
    ends[start] = (int32_t)end;
}

static void test_set(void)
{
    mpiox_lockset set = {0};
    CHECK(mpiox_lockset_at(&set, mpiox_lockset_seek(&set, 5)) == NULL);
    for (int phase = 0; phase < 3; phase++) {
        for (int i = 0; i < 60000; i++) {
            change(&set, phase == 1 && random_below(10) != 0);
            if (i % 50 == 0)
                check_seek(&set, (int64_t)random_below(POSITIONS));
        }
        check_order(&set);
    }
    for (int64_t p = 0; p < POSITIONS; p++) /* ascending: the packed way */
        if (ends[p] != 0) {
            ends[p] = 0;
            mpiox_lockset_erase(&set, mpiox_lockset_seek(&set, p));
        }
    CHECK_EQUAL(set.count, 0);
    for (int64_t p = 0; p < POSITIONS; p++) {
        const mpiox_lockset_lock lock = {.start = p, .end = p + 1};
        CHECK_EQUAL(mpiox_lockset_insert(&set, mpiox_lockset_seek(&set, p), &lock), 0);
        ends[p] = (int32_t)p + 1;
    }
    check_order(&set);
    mpiox_lockset_free(&set);
    CHECK_EQUAL(set.count, 0);
}

static void test_model(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        const int64_t stripe = 1 + (int64_t)random_below(16), start = (int64_t)random_below(100);
        mpiox_geometry geometry = {.start = start,
                                   .end = start + (int64_t)random_below(20000),
                                   .stripe_size = stripe,
                                   .servers = 1 + (int32_t)random_below(40),
                                   .aggregators = 1 + (int32_t)random_below(300)};
        mpiox_lock_model_system system = {.protocol = (int32_t)random_below(3),
                                          .granularity = (int64_t)random_below(40),
                                          .growth_bytes = (int64_t)random_below(50),
                                          .growth_holders = (int32_t)random_below(40),
                                          .forward_holders = (int32_t)random_below(10),
                                          .rpc_bytes = 1 + (int64_t)random_below(20),
                                          .round_trip = 1e-3,
                                          .server_bandwidth = 1e6,
                                          .client_bandwidth = 1e6,
                                          .commit = 1e-4 * (double)random_below(2),
                                          .dirty_server = random_below(2) != 0 ? (int64_t)random_below(400) : 0,
                                          .dirty_client = random_below(2) != 0 ? (int64_t)random_below(4000) : 0};
        mpiox_lock_model_run run = {.window_bytes = 1 + (int64_t)random_below(200),
                                    .stripe_size_io = random_below(2) != 0,
                                    .reads = random_below(4) == 0,
                                    .synchronise = random_below(2) != 0,
                                    .collectives = 1 + (int32_t)random_below(3),
                                    .shuffle = random_below(2) != 0,
                                    .seed = random_below(1000)};
        mpiox_lock_model_outcome outcome = {.servers = calloc((size_t)geometry.servers, sizeof *outcome.servers)};
        const mpiox_partition_method *method = mpiox_partition_get(
            (int)random_below((uint64_t)mpiox_partition_count()));
        CHECK_EQUAL(mpiox_lock_model_simulate(method, &geometry, &system, &run, &outcome), 0);
        int64_t bytes = 0;
        for (int32_t s = 0; s < geometry.servers; s++)
            bytes += outcome.servers[s].data_bytes;
        CHECK_EQUAL(bytes, (geometry.end - geometry.start) * run.collectives);
        free(outcome.servers);
    }
}

static void test_bad_arguments(void)
{
    mpiox_lock_model_counts counts[2];
    mpiox_lock_model_outcome outcome = {.servers = counts};
    const mpiox_partition_method *even = mpiox_partition_find("even");
    const mpiox_geometry geometry = {.end = 100, .stripe_size = 10, .servers = 2, .aggregators = 3};
    const mpiox_lock_model_system good = {.rpc_bytes = 1, .server_bandwidth = 1, .client_bandwidth = 1};
    const mpiox_lock_model_run run = {.window_bytes = 10, .collectives = 1};
    CHECK_EQUAL(mpiox_lock_model_simulate(even, &geometry, &good, &run, &outcome), 0);
    CHECK_EQUAL(mpiox_lock_model_simulate(NULL, &geometry, &good, &run, &outcome), MPIOX_E_ARG);
    mpiox_lock_model_system bad = good;
    bad.round_trip = -1;
    CHECK_EQUAL(mpiox_lock_model_simulate(even, &geometry, &bad, &run, &outcome), MPIOX_E_ARG);
    bad = good;
    bad.server_bandwidth = 0;
    CHECK_EQUAL(mpiox_lock_model_simulate(even, &geometry, &bad, &run, &outcome), MPIOX_E_ARG);
    const mpiox_geometry far = {.start = MPIOX_PARTITION_MAX_OFFSET - 100,
                                .end = MPIOX_PARTITION_MAX_OFFSET,
                                .stripe_size = 10,
                                .servers = 2,
                                .aggregators = 3};
    CHECK_EQUAL(mpiox_lock_model_simulate(even, &far, &good, &run, &outcome), 0);
    const mpiox_lock_model_run twice = {.window_bytes = 10, .collectives = 2};
    CHECK_EQUAL(mpiox_lock_model_simulate(even, &far, &good, &twice, &outcome), MPIOX_E_ARG);
}

/* Space is freed in the order of writes: one that is stored early waits for the one before it. */
static void test_cache(void)
{
    locks_cache cache;
    CHECK_EQUAL(mpiox_lock_model_cache_set_up(&cache, 10, 1), 0);
    CHECK_EQUAL(mpiox_lock_model_cache_add(&cache, 0, 5, 20.0), 0);
    CHECK_EQUAL(mpiox_lock_model_cache_add(&cache, 0, 5, 15.0), 0);
    CHECK(mpiox_lock_model_cache_room(&cache, 0, 1.0, 10) == 20.0);
    mpiox_lock_model_cache_free(&cache);
}

/* A run stops when `stop` is set; another one reports its progress. */
static void test_stop(void)
{
    mpiox_lock_model_counts counts[2];
    mpiox_lock_model_outcome outcome = {.servers = counts};
    const mpiox_partition_method *even = mpiox_partition_find("even");
    const mpiox_geometry geometry = {.end = 100, .stripe_size = 10, .servers = 2, .aggregators = 3};
    const mpiox_lock_model_system system = {.rpc_bytes = 1, .server_bandwidth = 1, .client_bandwidth = 1};
    int64_t stop = 0;
    int64_t done = 0;
    const mpiox_lock_model_run run = {.window_bytes = 10, .collectives = 7, .stop = &stop, .done_bytes = &done};
    CHECK_EQUAL(mpiox_lock_model_simulate(even, &geometry, &system, &run, &outcome), 0);
    CHECK_EQUAL(done, 700);
    stop = 1;
    CHECK_EQUAL(mpiox_lock_model_simulate(even, &geometry, &system, &run, &outcome), MPIOX_E_STOPPED);
    CHECK_EQUAL(outcome.steps, 0);
    const mpiox_geometry huge = {
        .end = INT64_C(1) << 58, .stripe_size = 10, .servers = 2, .aggregators = 3}; /* owner changes alone: hours */
    CHECK_EQUAL(mpiox_lock_model_simulate(even, &huge, &system, &run, &outcome), MPIOX_E_STOPPED);
}

int main(int argc, char **argv)
{
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    printf("seed %" PRIu64 "\n", state);
    test_set();
    test_model(400);
    test_bad_arguments();
    test_cache();
    test_stop();
    return check_exit();
}
