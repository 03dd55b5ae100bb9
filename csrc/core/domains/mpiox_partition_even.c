/*
 * mpiox_partition_even.c - the region in equal contiguous parts, as ROMIO's generic driver cuts it.
 *
 * Knows nothing of stripes: balanced to the byte, but two aggregators may share a stripe, and with it a lock, at every
 * boundary. Source: [SDCI]; Thakur, Gropp, Lusk, "Data sieving and collective I/O in ROMIO", 1999.
 */
#include "mpiox_partition_methods.h"
#include "mpiox_plan_build.h"

static int even_plan(const mpiox_geometry *geometry, mpiox_plan *plan)
{
    int64_t bytes = geometry->end - geometry->start, parts = geometry->aggregators;
    int rc = mpiox_plan_reserve(plan, bytes < parts ? bytes : parts);
    for (int32_t a = 0; rc == MPIOX_OK && a < geometry->aggregators; a++) {
        int64_t from = mpiox_plan_part_start(bytes, parts, a), to = mpiox_plan_part_start(bytes, parts, a + 1);
        if (from < to)
            mpiox_plan_add(plan, a, geometry->start + from, to - from, 0, 1);
    }
    return rc;
}

static int32_t even_owner(const mpiox_plan *plan, int64_t offset)
{
    const mpiox_geometry *geometry = &plan->geometry;
    return (int32_t)mpiox_plan_part_of(geometry->end - geometry->start, geometry->aggregators,
                                       offset - geometry->start);
}

const mpiox_partition_method mpiox_partition_even = {
    .name = "even",
    .description = "equal contiguous parts of the region, whatever the stripes",
    .plan = even_plan,
    .owner = even_owner,
    .any_owner = mpiox_plan_any_owner,
};
