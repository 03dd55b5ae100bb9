/*
 * mpiox_partition_aligned.c - contiguous parts whose boundaries are stripe boundaries ([SDCI], Figure 2a).
 *
 * Each inner boundary of the even cut moves to the nearest stripe boundary (half a stripe moves up), so no stripe, lock
 * or cached page is shared by two aggregators. Boundaries that meet leave an aggregator with an empty domain: that is
 * what happens when the region has fewer stripes than there are aggregators.
 */
#include "mpiox_partition_methods.h"
#include "mpiox_plan_build.h"

static int64_t aligned_boundary(const mpiox_geometry *geometry, int32_t i)
{
    if (i == 0 || i == geometry->aggregators)
        return i == 0 ? geometry->start : geometry->end;
    int64_t bytes = geometry->end - geometry->start;
    int64_t even = geometry->start + mpiox_plan_part_start(bytes, geometry->aggregators, i);
    int64_t above = even % geometry->stripe_size;
    int64_t nearest = even - above + (above >= geometry->stripe_size - above ? geometry->stripe_size : 0);
    nearest = nearest < geometry->start ? geometry->start : nearest;
    return nearest > geometry->end ? geometry->end : nearest;
}

static int aligned_plan(const mpiox_geometry *geometry, mpiox_plan *plan)
{
    int rc = mpiox_plan_reserve(plan, geometry->aggregators);
    int64_t from = geometry->start;
    for (int32_t a = 0; rc == MPIOX_OK && a < geometry->aggregators; a++) {
        int64_t to = aligned_boundary(geometry, a + 1);
        if (from < to)
            mpiox_plan_add(plan, a, from, to - from, 0, 1);
        from = to;
    }
    return rc;
}

/* The part that holds the byte: the largest a whose boundary is not above it. A boundary moves by half a stripe at
 * most, so with parts of a stripe or more the even owner is right to within one. */
static int32_t aligned_owner(const mpiox_plan *plan, int64_t offset)
{
    const mpiox_geometry *geometry = &plan->geometry;
    int32_t low = 0, high = geometry->aggregators; /* boundary(low) <= offset < boundary(high) */
    int64_t bytes = geometry->end - geometry->start;
    if (bytes / geometry->aggregators >= geometry->stripe_size) {
        int32_t guess = (int32_t)mpiox_plan_part_of(bytes, geometry->aggregators, offset - geometry->start);
        low = guess > 0 ? guess - 1 : 0;
        high = guess + 2 < high ? guess + 2 : high;
    }
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (aligned_boundary(geometry, middle) <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const mpiox_partition_method mpiox_partition_aligned = {
    .name = "aligned",
    .description = "contiguous parts cut at the stripe boundaries nearest to the even cuts",
    .plan = aligned_plan,
    .owner = aligned_owner,
    .any_owner = mpiox_plan_any_owner,
};
