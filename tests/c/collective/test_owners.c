/*
 * test_owners.c - which aggregator gets which domain: as by looking at every node for every domain, with far fewer
 * looks; up to 10,000 pretended nodes.
 *
 *   test_owners [SEED]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_owners.c"

enum { NODES = 10000, PER_NODE = 2, MOST = NODES * PER_NODE, CASES = 3000 };

static uint64_t seed = 1;

static int64_t draw(int64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static mpiox_topology topology;
static mpiox_file file = {.topology = &topology};
static mpiox_plan plan;
static mpiox_buffers buffers = {.file = &file};
static mpiox_stripe_set sets[MOST];
static mpiox_domain domains[MOST];
static mpiox_node_access nodes[NODES];
static ranged ranges[NODES];
static int node_of[MOST], order[MOST], placed[MOST], expected[MOST], left[NODES], next[NODES];

/* Domains of equal length side by side; aggregators in turn over the nodes, as mpiox_aggregators_choose() has them. */
static void set_up(int n_nodes, int n_domains, int64_t length)
{
    topology.n_nodes = n_nodes;
    topology.node_of = node_of;
    for (int i = 0; i < MOST; i++)
        node_of[i] = i / PER_NODE; /* of rank i */
    for (int d = 0; d < n_domains; d++) {
        order[d] = d % n_nodes * PER_NODE + d / n_nodes;
        sets[d] = (mpiox_stripe_set){d * length, length, 0, 1};
        domains[d] = (mpiox_domain){1, &sets[d]};
    }
    plan.geometry = (mpiox_geometry){.start = 0, .end = n_domains * length, .aggregators = n_domains};
    plan.domains = domains;
    buffers.nodes = nodes;
    buffers.plan = &plan;
    buffers.n_aggregators = n_domains;
    buffers.aggregators = placed;
    memset(left, 0, sizeof left);
    memset(next, 0, sizeof next);
}

static double share(int domain, int node)
{
    const int64_t begin = sets[domain].offset, end = begin + sets[domain].length, first = nodes[node].range.first,
                  last = nodes[node].range.last;
    const int64_t from = begin > first ? begin : first, to = end < last ? end : last;

    if (domains[domain].n_sets == 0 || from >= to)
        return 0;
    return (double)nodes[node].bytes * ((double)(to - from) / (double)(last - first));
}

/* Every node for every domain. */
static void place_slowly(int n_nodes, int n_domains)
{
    static int free_here[NODES], at[NODES];

    memset(free_here, 0, sizeof free_here);
    memset(at, 0, sizeof at);
    for (int d = 0; d < n_domains; d++)
        free_here[node_of[order[d]]]++;
    for (int d = 0; d < n_domains; d++) {
        int best = free_here[node_of[order[d]]] > 0 ? node_of[order[d]] : -1;
        double most = best < 0 ? -1 : share(d, best);

        for (int n = 0; n < n_nodes; n++)
            if (free_here[n] > 0 && share(d, n) > most) {
                most = share(d, n);
                best = n;
            }
        while (node_of[order[at[best]]] != best)
            at[best]++;
        expected[d] = order[at[best]++];
        free_here[best]--;
    }
}

static void compare(int n_nodes, int n_domains)
{
    placing p = {.b = &buffers, .left = left, .ranges = ranges};

    place(&p, &buffers, order, next);
    place_slowly(n_nodes, n_domains);
    CHECK(memcmp(placed, expected, sizeof *placed * (size_t)n_domains) == 0);
}

static void random_cases(void)
{
    for (int i = 0; i < CASES; i++) {
        const int n_nodes = 1 + (int)draw(12), n_domains = 1 + (int)draw(n_nodes * PER_NODE);
        const int64_t length = 1 + draw(50);

        set_up(n_nodes, n_domains, length);
        for (int n = 0; n < n_nodes; n++) {
            const int64_t first = draw(n_domains * length), bytes = draw(4) == 0 ? 0 : 1 + draw(3) * length;

            nodes[n] = (mpiox_node_access){{first, first + bytes}, bytes};
            if (draw(8) == 0) /* accesses nothing */
                nodes[n] = (mpiox_node_access){{INT64_MAX, INT64_MIN}, 0};
        }
        for (int d = 0; d < n_domains; d++) {
            if (draw(10) == 0)
                domains[d].n_sets = 0;
            if (draw(5) == 0) { /* domains in no order */
                const mpiox_stripe_set other = sets[draw(n_domains)];
                sets[d] = other;
            }
        }
        compare(n_nodes, n_domains);
    }
}

/* Blocks of an array: each node accesses two domains' worth somewhere, and its halo. */
static void many_nodes(void)
{
    const int64_t length = 1000;
    placing p = {.b = &buffers, .left = left, .ranges = ranges};

    set_up(NODES, MOST, length);
    for (int n = 0; n < NODES; n++) {
        const int64_t first = (int64_t)(n * 7919 % NODES) * PER_NODE * length;
        nodes[n] = (mpiox_node_access){{first, first + PER_NODE * length + 100}, PER_NODE * length};
    }
    place(&p, &buffers, order, next);
    CHECK(p.looks > MOST / 2 && p.looks <= 4 * MOST);
    for (int d = 0; d < MOST; d++)
        CHECK_EQUAL(node_of[placed[d]] * 7919LL % NODES, d / PER_NODE);
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    printf("seed %llu\n", (unsigned long long)seed);
    random_cases();
    many_nodes();
    return check_exit();
}
