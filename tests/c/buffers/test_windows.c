/*
 * test_windows.c - the windows of an aggregator's rounds: each once, whatever it begins with; which rounds a range of
 * the file can have something in, against looking at every window.
 *
 *   test_windows [SEED]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_windows.c"

/* No window is copied here. */
int mpiox_call_copy(mpiox_call *one, const mpiox_memory_layout *host, int64_t from, int64_t length)
{
    (void)one, (void)host, (void)from, (void)length;
    return MPIOX_OK;
}

enum { CASES = 3000, AGGREGATORS = 12, EXTENTS = 4096, WINDOWS = 2000 };

static uint64_t seed = 1;

static int64_t draw(int64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static mpiox_topology topology;
static mpiox_file file = {.topology = &topology};
static mpiox_extent list[EXTENTS];
static mpiox_node_access accesses_of[64];
static mpiox_buffers buffers = {.file = &file, .extents_max = EXTENTS, .nodes = accesses_of};
static mpiox_call call = {.b = &buffers};
static bool named; /* a domain that ascends without gaps */

/* Each node accesses a block of the region, or all of it. */
static void set_nodes(int count, bool in_turn, int64_t start, int64_t end)
{
    topology.n_nodes = count;
    for (int n = 0; n < count; n++)
        accesses_of[n].range = in_turn ? (mpiox_interval){start, end}
                                       : (mpiox_interval){start + (end - start) * n / count,
                                                          start + (end - start) * (n + 1) / count};
}

/* A plan of a method by turns, for a random region; false: too many windows to look at. */
static bool set_up(int number)
{
    const mpiox_partition_method *method = mpiox_partition_get(number % mpiox_partition_count());
    const int64_t stripe = 1 + draw(40), start = draw(300);
    const mpiox_geometry geometry = {start, start + 1 + draw(3000), stripe, 1 + (int32_t)draw(4),
                                     1 + (int32_t)draw(AGGREGATORS)};

    named = strcmp(method->name, "even") == 0 || strcmp(method->name, "aligned") == 0;
    mpiox_plan_free(buffers.plan);
    buffers.plan = NULL;
    CHECK_EQUAL(mpiox_plan_create(method, &geometry, &buffers.plan), MPIOX_OK);
    buffers.n_aggregators = geometry.aggregators;
    buffers.window_bytes = 1 + draw(100);
    set_nodes(1 + (int)draw(3), draw(2), geometry.start, geometry.end);
    call.reduction.start = geometry.start;
    call.reduction.end = geometry.end;
    call.reduction.n_occupied = 1;
    call.reduction.occupied[0] = (mpiox_interval){geometry.start, geometry.end};
    call.n_used = draw(8) == 0;
    call.reduction.period = draw(4) == 0 ? INT64_MAX : draw(10 * buffers.window_bytes);
    call.rounds = 0;
    for (int a = 0; a < buffers.n_aggregators; a++) {
        const int64_t windows = mpiox_plan_windows(buffers.plan, a, buffers.window_bytes);
        call.rounds = windows > call.rounds ? windows : call.rounds;
    }
    mpiox_windows_turn(&call);
    return call.rounds < WINDOWS;
}

/* Does the window of the round meet [from, to)? */
static bool meets(int aggregator, int64_t round, int64_t from, int64_t to)
{
    const int64_t n = mpiox_window_extents(&call, aggregator, round, list);
    for (int64_t i = 0; i < n; i++)
        if (list[i].offset < to && from < list[i].offset + list[i].length)
            return true;
    return false;
}

/* The windows of the plan, in some order, and nothing after them. */
static void check_each_once(int aggregator)
{
    static mpiox_extent plan[EXTENTS];
    static bool seen[WINDOWS];
    const int64_t windows = mpiox_plan_windows(buffers.plan, aggregator, buffers.window_bytes);

    int64_t same;
    const int64_t begin = first_window(&call, aggregator, &same);
    CHECK_EQUAL(same, windows);
    CHECK(begin == 0 || (begin < windows && (call.turn == MPIOX_TURN_CYCLIC || begin < call.turn)));
    memset(seen, 0, sizeof seen);
    for (int64_t round = 0; round < call.rounds + 1; round++) {
        const int64_t n = mpiox_window_extents(&call, aggregator, round, list);
        const int64_t expected = round >= windows ? windows : (round + begin) % windows;
        CHECK_EQUAL(n, mpiox_plan_window(buffers.plan, aggregator, buffers.window_bytes, expected, plan, EXTENTS));
        CHECK(memcmp(list, plan, sizeof *plan * (size_t)n) == 0);
        if (round < windows) {
            CHECK(n > 0 && !seen[expected]);
            seen[expected] = true;
        }
    }
}

/* [first, last) has all rounds that meet the range; its ends do, too, in a domain without gaps. */
static void check_rounds(int aggregator)
{
    const int64_t length = call.reduction.end - call.reduction.start, from = call.reduction.start + draw(length),
                  to = from + 1 + draw(length) / (1 + draw(20));
    int64_t first = INT64_MAX, last = INT64_MIN;
    mpiox_interval rounds;

    for (int64_t set = 0; set < buffers.plan->domains[aggregator].n_sets; set++)
        if (mpiox_window_rounds(&call, aggregator, set, (mpiox_interval){from, to}, &rounds)) {
            CHECK(rounds.first >= 0 && rounds.first < rounds.last && rounds.last <= call.rounds);
            first = rounds.first < first ? rounds.first : first;
            last = rounds.last > last ? rounds.last : last;
        }
    for (int64_t round = 0; round < call.rounds; round++)
        CHECK(!meets(aggregator, round, from, to) || (first <= round && round < last));
    if (first < last && call.turn > 0)
        CHECK(meets(aggregator, first, from, to) && meets(aggregator, last - 1, from, to));
}

/* A rank that accesses all of [first, last) has bytes in exactly the rounds that the function returns. */
static void check_after(int aggregator)
{
    if (buffers.plan->domains[aggregator].n_sets != 1)
        return;
    const int64_t length = call.reduction.end - call.reduction.start;
    call.first = call.reduction.start + draw(length);
    call.last = call.first + 1 + draw(length) / (1 + draw(20));
    for (int64_t round = 0; round < call.rounds; round++) {
        const int64_t n = mpiox_window_extents(&call, aggregator, round, list);
        if (n == 0)
            break;
        const int64_t behind = list[n - 1].offset + list[n - 1].length,
                      next = behind > call.first ? behind : call.first,
                      answer = mpiox_window_round_after(&call, aggregator, round, next < call.last ? next : INT64_MAX);
        int64_t truth = round + 1;
        while (truth < call.rounds && !meets(aggregator, truth, call.first, call.last))
            truth++;
        CHECK(answer > round);
        CHECK(truth == call.rounds || answer <= truth);
        if (named)
            CHECK_EQUAL(answer, truth == call.rounds ? INT64_MAX : truth);
    }
}

/* Pieces of a window each, dealt to the nodes in turn, in even domains of `each` windows: of the aggregators' windows
 * of the first round, how many are of each node. */
static void first_round(int node_count, int aggregators, int64_t each, int *met)
{
    enum { WINDOW = 64 };
    const mpiox_geometry geometry = {0, WINDOW * aggregators * each, WINDOW, 1, aggregators};

    mpiox_plan_free(buffers.plan);
    CHECK_EQUAL(mpiox_plan_create(mpiox_partition_find("even"), &geometry, &buffers.plan), MPIOX_OK);
    buffers.n_aggregators = aggregators;
    set_nodes(node_count, true, 0, geometry.end);
    buffers.window_bytes = WINDOW;
    call.reduction.occupied[0] = (mpiox_interval){0, geometry.end};
    call.reduction.period = (int64_t)WINDOW * node_count;
    call.rounds = each;
    call.n_used = 0;
    mpiox_windows_turn(&call);
    CHECK_EQUAL(call.turn, node_count);
    memset(met, 0, sizeof *met * (size_t)node_count);
    for (int a = 0; a < aggregators; a++) {
        CHECK_EQUAL(mpiox_window_extents(&call, a, 0, list), 1);
        met[list[0].offset / WINDOW % node_count]++;
    }
}

/* A block of `each` windows a node and aggregator, in static-cyclic domains of a window: each round has a window of
 * every block. Of pieces of all nodes everywhere the rounds stay side by side. */
static void blocks(int count, int64_t each)
{
    enum { WINDOW = 64 };
    const mpiox_geometry geometry = {0, WINDOW * count * each, WINDOW, count, count};
    int met[AGGREGATORS];

    mpiox_plan_free(buffers.plan);
    CHECK_EQUAL(mpiox_plan_create(mpiox_partition_find("static_cyclic"), &geometry, &buffers.plan), MPIOX_OK);
    buffers.n_aggregators = count;
    buffers.window_bytes = WINDOW;
    call.reduction.occupied[0] = (mpiox_interval){0, geometry.end};
    call.reduction.period = INT64_MAX;
    call.rounds = each;
    call.n_used = 0;
    set_nodes(count, true, 0, geometry.end);
    mpiox_windows_turn(&call);
    CHECK_EQUAL(call.turn, 0);
    set_nodes(count, false, 0, geometry.end);
    mpiox_windows_turn(&call);
    CHECK_EQUAL(call.turn, MPIOX_TURN_CYCLIC);
    for (int64_t round = 0; round < each; round++) {
        memset(met, 0, sizeof met);
        for (int a = 0; a < count; a++) {
            CHECK_EQUAL(mpiox_window_extents(&call, a, round, list), 1);
            met[list[0].offset / (WINDOW * each)]++;
        }
        for (int node = 0; each % count == 0 && node < count; node++)
            CHECK_EQUAL(met[node], 1);
    }
}

/* A round has a window of every node: of domains of any length that have a whole period, and of shorter ones. */
static void spread(void)
{
    enum { NODES = 64, EACH = 8 };
    int met[NODES];

    for (int nodes = 2; nodes <= AGGREGATORS; nodes++)
        for (int64_t each = nodes; each < 5 * nodes; each++) {
            first_round(nodes, nodes, each, met);
            for (int node = 0; node < nodes; node++)
                CHECK_EQUAL(met[node], 1);
        }
    first_round(NODES, EACH * NODES, 4, met);
    for (int node = 0; node < NODES; node++)
        CHECK(met[node] >= EACH / 2 && met[node] <= 2 * EACH);
    for (int count = 2; count <= AGGREGATORS; count++)
        for (int64_t each = count; each < 5 * count; each++)
            blocks(count, each);
}

int main(int argc, char **argv)
{
    int turned = 0, cyclic = 0;
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < CASES; i++) {
        if (!set_up(i))
            continue;
        turned += call.turn > 0;
        cyclic += call.turn == MPIOX_TURN_CYCLIC;
        CHECK(call.turn == 0 || (topology.n_nodes > 1 && call.n_used == 0));
        for (int a = 0; a < buffers.n_aggregators; a++) {
            check_each_once(a);
            check_rounds(a);
            check_after(a);
        }
    }
    CHECK(turned > CASES / 20 && turned < CASES / 2 && cyclic > CASES / 20 && cyclic < CASES / 2);
    spread();
    mpiox_plan_free(buffers.plan);
    return check_exit();
}
