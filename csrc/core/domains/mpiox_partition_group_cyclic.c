/*
 * mpiox_partition_group_cyclic.c - cyclic inside groups of as many aggregators as servers ([SDCI], Figure 2c).
 *
 * A >= S: A is lowered to a multiple of S. The region's stripes are cut into A/S contiguous sub-regions (sizes differ
 * by one stripe at most, the larger first), one for each group. Inside its sub-region aggregator k of a group owns the
 * stripes of one server. So the aggregators of a server work in sub-regions that do not interleave, and extent locks
 * conflict at most once for each pair of neighbouring groups. A < S: A is lowered to the largest factor of S, and there
 * is one group.
 */
#include "mpiox_partition_methods.h"
#include "mpiox_plan_build.h"

/* Largest factor of n that is not above `most`. */
static int32_t largest_factor(int32_t n, int32_t most)
{
    int32_t best = 1;
    for (int32_t d = 1; (int64_t)d * d <= n; d++) {
        if (n % d != 0)
            continue;
        if (d <= most && d > best)
            best = d;
        if (n / d <= most && n / d > best)
            best = n / d;
    }
    return best;
}

static int32_t group_cyclic_adjust(const mpiox_geometry *geometry)
{
    int32_t servers = geometry->servers, aggregators = geometry->aggregators;
    return aggregators >= servers ? aggregators - aggregators % servers : largest_factor(servers, aggregators);
}

static int32_t group_size(const mpiox_plan *plan)
{
    return plan->aggregators_used < plan->geometry.servers ? plan->aggregators_used : plan->geometry.servers;
}

static int group_cyclic_plan(const mpiox_geometry *geometry, mpiox_plan *plan)
{
    int64_t first = mpiox_plan_first_stripe(geometry), stripes = mpiox_plan_last_stripe(geometry) - first + 1;
    int32_t size = group_size(plan), groups = plan->aggregators_used / size;
    int rc = mpiox_plan_reserve(plan, plan->aggregators_used);
    for (int32_t g = 0; rc == MPIOX_OK && g < groups; g++) {
        int64_t from = first + mpiox_plan_part_start(stripes, groups, g);
        int64_t to = first + mpiox_plan_part_start(stripes, groups, g + 1);
        for (int32_t k = 0; from < to && k < size; k++)
            mpiox_plan_add_cyclic(plan, g * size + k, from, to - 1, size, k);
    }
    return rc;
}

static int32_t group_cyclic_owner(const mpiox_plan *plan, int64_t offset)
{
    const mpiox_geometry *geometry = &plan->geometry;
    int64_t stripe = offset / geometry->stripe_size, first = mpiox_plan_first_stripe(geometry);
    int32_t size = group_size(plan);
    int64_t group = 0;
    if (plan->aggregators_used > size)
        group = mpiox_plan_part_of(mpiox_plan_last_stripe(geometry) - first + 1, plan->aggregators_used / size,
                                   stripe - first);
    return (int32_t)(group * size + stripe % size);
}

/* An aggregator has one server wherever it works: those of the nodes that access a sub-region may have its domains. */
static bool group_cyclic_any_owner(const mpiox_plan *plan)
{
    return plan->aggregators_used > group_size(plan);
}

const mpiox_partition_method mpiox_partition_group_cyclic = {
    .name = "group_cyclic",
    .description = "groups of as many aggregators as servers, each cyclic in a sub-region of its own",
    .adjust = group_cyclic_adjust,
    .plan = group_cyclic_plan,
    .owner = group_cyclic_owner,
    .any_owner = group_cyclic_any_owner,
};
