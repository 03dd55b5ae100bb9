/*
 * mpiox_plan_arrays.c - a whole plan as flat arrays: sets, bytes and servers of every aggregator.
 *
 * Problem.   A study of a plan of 10^5 aggregators cannot query one aggregator after the other.
 * Algorithm. The sets lie in one array already; bytes are sums over the sets, less the bytes that the region clips. The
 *            stripes of one set go round the servers in steps of stride / stripe_size, so they lie on min(count, S /
 *            gcd(S, step)) servers; step 1 for a contiguous set. The servers of a domain of several sets are marked
 *            with the aggregator's number, so that none is counted twice.
 * Guarantee. Time O(sets), and O(servers) memory if a domain has several sets.
 */
#include <stdlib.h>

#include "mpiox_integer.h"
#include "mpiox_plan_build.h"

int64_t mpiox_plan_flat(const mpiox_plan *plan, const mpiox_stripe_set **sets)
{
    *sets = plan->store->sets;
    return plan->store->n_sets;
}

static int64_t set_bytes(const mpiox_geometry *geometry, const mpiox_stripe_set *set)
{
    const int64_t end = set->offset + (set->count - 1) * set->stride + set->length;
    const int64_t before = geometry->start - set->offset, behind = end - geometry->end;
    return set->count * set->length - (before > 0 ? before : 0) - (behind > 0 ? behind : 0);
}

/* A set's stripes as the residues first, first + step, ... modulo the number of servers: how many, each once. */
typedef struct residues {
    int64_t first, step, count;
} residues;

static residues residues_of(const mpiox_geometry *geometry, const mpiox_stripe_set *set, residues last)
{
    const int64_t servers = geometry->servers, first = set->offset / geometry->stripe_size;
    if (set->count == 1) {
        const int64_t begin = set->offset > geometry->start ? first : mpiox_plan_first_stripe(geometry);
        const int64_t end = set->offset + set->length, to = end < geometry->end ? end : geometry->end;
        const int64_t stripes = (to - 1) / geometry->stripe_size - begin + 1;
        return (residues){.first = begin % servers, .step = 1, .count = stripes < servers ? stripes : servers};
    }
    const int64_t step = set->stride / geometry->stripe_size % servers;
    /* As a rule all sets of a plan have one stride: its divisor is known from the last set. */
    const int64_t round = step == last.step ? last.count : servers / mpiox_common_divisor(servers, step);
    return (residues){.first = first % servers, .step = step, .count = round};
}

static int32_t mark(uint32_t *marks, uint32_t mine, residues r, int64_t servers)
{
    int32_t fresh = 0;
    for (int64_t i = 0, server = r.first; i < r.count; i++) {
        fresh += marks[server] != mine;
        marks[server] = mine;
        server += r.step;
        server -= server >= servers ? servers : 0;
    }
    return fresh;
}

int mpiox_plan_totals(const mpiox_plan *plan, int64_t *bytes, int32_t *servers)
{
    const mpiox_geometry *geometry = &plan->geometry;
    residues last = {.step = -1};
    uint32_t *marks = NULL;
    for (int32_t a = 0; a < geometry->aggregators; a++) {
        const mpiox_domain *domain = &plan->domains[a];
        bytes[a] = 0;
        servers[a] = 0;
        if (domain->n_sets > 1 && marks == NULL) {
            marks = calloc((size_t)geometry->servers, sizeof *marks);
            if (marks == NULL)
                return MPIOX_E_NOMEM;
        }
        for (int64_t i = 0; i < domain->n_sets; i++) {
            const mpiox_stripe_set *set = &domain->sets[i];
            residues r = residues_of(geometry, set, last);
            if (set->count > 1) {
                last = r;
                r.count = set->count < r.count ? set->count : r.count;
            }
            bytes[a] += set_bytes(geometry, set);
            servers[a] += domain->n_sets > 1 ? mark(marks, (uint32_t)a + 1, r, geometry->servers) : (int32_t)r.count;
        }
    }
    free(marks);
    return MPIOX_OK;
}
