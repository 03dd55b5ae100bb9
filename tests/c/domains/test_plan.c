/*
 * test_plan.c - plans under sanitizers: random geometries up to the limits, prepared look-ups, small arrays, bad input.
 *
 * The Python tests compare with a reference; this program looks for what they cannot see: overflow, reads out of
 * bounds, leaks, and a difference between look-ups with and without mpiox_plan_prepare().
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_partition.h"
#include "mpiox_plan_build.h"

static uint64_t random_state;

static int64_t random_below(int64_t bound) /* 0 .. bound - 1; xorshift64* */
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (int64_t)((random_state * UINT64_C(2685821657736338717) >> 1) % (uint64_t)bound);
}

static mpiox_geometry random_geometry(void)
{
    int64_t size = INT64_C(1) << random_below(63);
    mpiox_geometry g = {.stripe_size = 1 + random_below(size),
                        .servers = (int32_t)(1 + random_below(40)),
                        .aggregators = (int32_t)(1 + random_below(60))};
    const int64_t limit = MPIOX_PARTITION_MAX_OFFSET;
    int64_t reach = g.stripe_size < limit / 1000 ? g.stripe_size * 1000 : limit;
    g.end = random_below(4) == 0 ? MPIOX_PARTITION_MAX_OFFSET - random_below(3) : random_below(reach + 1);
    g.start = g.end - random_below((g.end < reach ? g.end : reach) + 1);
    return g;
}

/* Every window by both look-ups; the bytes of all windows of all aggregators are the region, each owned as it says. */
static void check_windows(mpiox_plan *plan, int64_t window_bytes)
{
    int64_t max = mpiox_plan_window_extents_max(plan, window_bytes), bytes = 0;
    mpiox_plan *twin;
    CHECK_EQUAL(mpiox_plan_create(plan->method, &plan->geometry, &twin), 0);
    CHECK_EQUAL(mpiox_plan_prepare(twin, window_bytes), 0);
    CHECK_EQUAL(mpiox_plan_prepare(twin, window_bytes), 0);
    mpiox_extent *extents = malloc((size_t)max * sizeof *extents), *prepared = malloc((size_t)max * sizeof *prepared);
    for (int a = 0; a < plan->geometry.aggregators; a++) {
        int64_t windows = mpiox_plan_windows(plan, a, window_bytes), previous_end = -1;
        CHECK_EQUAL(mpiox_plan_windows(twin, a, window_bytes), windows);
        for (int64_t w = 0; w < windows; w++) {
            int64_t n = mpiox_plan_window(plan, a, window_bytes, w, extents, max), sum = 0;
            CHECK(n >= 1 && n <= max);
            CHECK_EQUAL(mpiox_plan_window(twin, a, window_bytes, w, prepared, max), n);
            CHECK(memcmp(extents, prepared, (size_t)n * sizeof *extents) == 0);
            if (n > 1)
                CHECK_EQUAL(mpiox_plan_window(plan, a, window_bytes, w, extents, n - 1), MPIOX_E_FULL);
            for (int64_t i = 0; i < n; i++) {
                CHECK(prepared[i].length > 0);
                CHECK_EQUAL(mpiox_plan_owner(plan, prepared[i].offset), a);
                CHECK_EQUAL(mpiox_plan_owner(plan, prepared[i].offset + prepared[i].length - 1), a);
                CHECK(i == 0 || prepared[i].offset > previous_end); /* ascending, neighbours merged */
                previous_end = prepared[i].offset + prepared[i].length;
                sum += prepared[i].length;
            }
            CHECK(sum <= window_bytes);
            bytes += sum;
        }
        CHECK_EQUAL(mpiox_plan_window(plan, a, window_bytes, windows, extents, max), 0);
        CHECK_EQUAL(mpiox_plan_window(twin, a, window_bytes, windows, extents, max), 0);
        CHECK_EQUAL(mpiox_plan_window(plan, a, window_bytes, INT64_MAX, extents, max), 0);
    }
    CHECK_EQUAL(bytes, plan->geometry.end - plan->geometry.start);
    free(extents);
    free(prepared);
    mpiox_plan_free(twin);
}

static bool meets(const mpiox_plan *plan, int a, int64_t window_bytes, int64_t w, int64_t from, int64_t to,
                  mpiox_extent *extents, int64_t max)
{
    const int64_t n = mpiox_plan_window(plan, a, window_bytes, w, extents, max);
    for (int64_t i = 0; i < n; i++)
        if (extents[i].offset < to && extents[i].offset + extents[i].length > from)
            return true;
    return false;
}

/* The windows that hold bytes of an interval: none is left out, and the first and last of each set do. */
static void check_between(const mpiox_plan *plan, int64_t window_bytes)
{
    const mpiox_geometry *g = &plan->geometry;
    const int64_t max = mpiox_plan_window_extents_max(plan, window_bytes), room = g->end - g->start + 1;
    const int64_t from = g->start + random_below(room),
                  to = from + random_below(random_below(4) ? room / 50 + 1 : room);
    mpiox_extent *extents = malloc((size_t)max * sizeof *extents);
    for (int a = 0; a < g->aggregators; a++) {
        const int64_t windows = mpiox_plan_windows(plan, a, window_bytes), sets = plan->domains[a].n_sets;
        char *named = calloc((size_t)windows + 1, 1);
        for (int64_t set = 0; set < sets; set++) {
            mpiox_interval found = {0, 0};
            if (!mpiox_plan_windows_between(plan, a, window_bytes, set, (mpiox_interval){from, to}, &found))
                continue;
            CHECK(found.first >= 0 && found.first < found.last && found.last <= windows);
            CHECK(meets(plan, a, window_bytes, found.first, from, to, extents, max));
            CHECK(meets(plan, a, window_bytes, found.last - 1, from, to, extents, max));
            for (int64_t w = found.first; w < found.last && w < windows; w++)
                named[w] = 1;
        }
        for (int64_t w = 0; w < windows; w++)
            CHECK(named[w] || from >= to || !meets(plan, a, window_bytes, w, from, to, extents, max));
        free(named);
    }
    free(extents);
}

/* The flat arrays say what the domains do; bytes add up, and no domain lies on more servers than stripes or servers. */
static void check_arrays(const mpiox_plan *plan)
{
    const mpiox_geometry *g = &plan->geometry;
    const mpiox_stripe_set *sets;
    const int64_t n_sets = mpiox_plan_flat(plan, &sets);
    int64_t *bytes = malloc((size_t)g->aggregators * sizeof *bytes), total = 0, before = 0;
    int32_t *servers = malloc((size_t)g->aggregators * sizeof *servers);
    CHECK_EQUAL(mpiox_plan_totals(plan, bytes, servers), 0);
    for (int a = 0; a < g->aggregators; a++) {
        const mpiox_domain *domain = &plan->domains[a];
        CHECK(domain->n_sets == 0 || domain->sets == sets + before);
        before += domain->n_sets;
        total += bytes[a];
        CHECK(servers[a] <= g->servers && (servers[a] > 0) == (bytes[a] > 0));
    }
    CHECK_EQUAL(before, n_sets);
    CHECK_EQUAL(total, g->end - g->start);
    free(bytes);
    free(servers);
}

static void test_random(uint64_t seed, int cases)
{
    for (int i = 0; i < cases; i++) {
        random_state = seed + (uint64_t)i * 7919 + 1;
        mpiox_geometry g = random_geometry();
        int64_t least = (g.end - g.start) / 500 + 1; /* bounds the number of windows */
        int64_t spread = g.stripe_size < MPIOX_PARTITION_MAX_OFFSET / 2 ? 3 * g.stripe_size / 2 : g.stripe_size;
        int64_t window_bytes = least + random_below(spread + 1);
        window_bytes = window_bytes > MPIOX_PARTITION_MAX_OFFSET ? MPIOX_PARTITION_MAX_OFFSET : window_bytes;
        int before = check_failures;
        for (int m = 0; m < mpiox_partition_count(); m++) {
            mpiox_plan *plan;
            CHECK_EQUAL(mpiox_plan_create(mpiox_partition_get(m), &g, &plan), 0);
            check_arrays(plan);
            check_windows(plan, window_bytes);
            check_between(plan, window_bytes);
            CHECK_EQUAL(mpiox_plan_prepare(plan, window_bytes), 0);
            check_between(plan, window_bytes);
            mpiox_plan_free(plan);
        }
        if (check_failures > before)
            fprintf(stderr,
                    "seed %" PRIu64 " case %d: [%" PRId64 ", %" PRId64 ") stripe %" PRId64 " S %d A %d window %" PRId64
                    "\n",
                    seed, i, g.start, g.end, g.stripe_size, g.servers, g.aggregators, window_bytes);
    }
}

static void test_bad_input(void)
{
    const mpiox_partition_method *even = mpiox_partition_find("even");
    const mpiox_geometry good = {.start = 0, .end = 10, .stripe_size = 4, .servers = 1, .aggregators = 2};
    mpiox_geometry bad[] = {good, good, good, good, good, good, good};
    bad[0].start = -1;
    bad[1].start = 11;
    bad[2].end = MPIOX_PARTITION_MAX_OFFSET + 1;
    bad[3].stripe_size = 0;
    bad[4].servers = 0;
    bad[5].aggregators = 0;
    bad[6].aggregators = MPIOX_PARTITION_MAX_PARTIES + 1;
    mpiox_plan *plan;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQUAL(mpiox_plan_create(even, &bad[i], &plan), MPIOX_E_ARG);
        CHECK(plan == NULL);
    }
    CHECK_EQUAL(mpiox_plan_create(NULL, &good, &plan), MPIOX_E_ARG);
    CHECK(mpiox_partition_find("auto") == NULL && mpiox_partition_find(NULL) == NULL);
    CHECK(mpiox_partition_get(-1) == NULL && mpiox_partition_get(mpiox_partition_count()) == NULL);
    mpiox_plan_free(NULL);
    CHECK_EQUAL(mpiox_plan_create(even, &good, &plan), 0);
    mpiox_extent extent;
    CHECK_EQUAL(mpiox_plan_windows(plan, 2, 4), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_plan_windows(plan, 0, 0), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_plan_window(plan, -1, 4, 0, &extent, 1), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_plan_window(plan, 0, 4, -1, &extent, 1), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_plan_window(plan, 0, 4, 0, &extent, 0), MPIOX_E_FULL);
    CHECK_EQUAL(mpiox_plan_window_extents_max(plan, 0), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_plan_prepare(plan, -4), MPIOX_E_ARG);
    mpiox_plan_free(plan);
}

static int greedy_plan(const mpiox_geometry *geometry, mpiox_plan *plan) /* adds one set more than it reserved */
{
    int rc = mpiox_plan_reserve(plan, 1);
    mpiox_plan_add(plan, 0, geometry->start, 1, 0, 1);
    mpiox_plan_add(plan, 1, geometry->start + 1, 1, 0, 1);
    return rc;
}

static void test_method_that_adds_too_much_is_refused(void)
{
    const mpiox_partition_method greedy = {.name = "greedy", .plan = greedy_plan};
    const mpiox_geometry g = {.start = 0, .end = 2, .stripe_size = 1, .servers = 1, .aggregators = 2};
    mpiox_plan *plan;
    CHECK_EQUAL(mpiox_plan_create(&greedy, &g, &plan), MPIOX_E_FULL);
    CHECK(plan == NULL);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20081115;
    printf("seed %" PRIu64 "\n", seed);
    test_random(seed, 1000);
    test_bad_input();
    test_method_that_adds_too_much_is_refused();
    return check_exit();
}
