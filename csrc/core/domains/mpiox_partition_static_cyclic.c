/*
 * mpiox_partition_static_cyclic.c - stripe s of the file always belongs to aggregator s mod A ([SDCI], Figure 2b).
 *
 * The owner does not depend on the region, so locks, caches and connections last from one collective to the next. With
 * A a multiple of the number of servers S an aggregator sends to one server only; with A a factor of S a server
 * receives one aggregator only. With A > S the stripes of A/S aggregators interleave on each server: see group_cyclic.
 */
#include "mpiox_partition_methods.h"
#include "mpiox_plan_build.h"

static int static_cyclic_plan(const mpiox_geometry *geometry, mpiox_plan *plan)
{
    int64_t first = mpiox_plan_first_stripe(geometry), last = mpiox_plan_last_stripe(geometry);
    int rc = mpiox_plan_reserve(plan, geometry->aggregators);
    for (int32_t a = 0; rc == MPIOX_OK && a < geometry->aggregators; a++)
        mpiox_plan_add_cyclic(plan, a, first, last, geometry->aggregators, a);
    return rc;
}

static int32_t static_cyclic_owner(const mpiox_plan *plan, int64_t offset)
{
    return (int32_t)(offset / plan->geometry.stripe_size % plan->geometry.aggregators);
}

const mpiox_partition_method mpiox_partition_static_cyclic = {
    .name = "static_cyclic",
    .description = "stripe s of the file always belongs to aggregator s mod A",
    .plan = static_cyclic_plan,
    .owner = static_cyclic_owner,
};
