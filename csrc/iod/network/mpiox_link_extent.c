/* mpiox_link_extent.c - see mpiox_link_extent.h. */
#include "mpiox_link_extent.h"
#include "mpiox_integer.h"

int mpiox_link_check_filter(const mpiox_link_filter *filter)
{
    const bool fine = mpiox_is_within(filter->unit_bytes, 1, MPIOX_LINK_MAX_OFFSET) &&
                      mpiox_is_within(filter->ranges, 1, MPIOX_FILE_RANGES) &&
                      mpiox_is_within(filter->delegate, 0, INT16_MAX);
    return fine ? MPIOX_OK : MPIOX_E_CORRUPT;
}

/* Offsets of a view ascend with the position: the first and the last one bound them all. */
static bool has_offsets_in_range(const mpiox_typemap *view, int64_t origin, int64_t position, int64_t end)
{
    const int64_t size = mpiox_typemap_size(view);
    int64_t reach;
    if (size <= 0 || !mpiox_typemap_is_monotonic(view) ||
        !mpiox_is_within(mpiox_typemap_extent(view), 0, MPIOX_LINK_MAX_OFFSET) ||
        !mpiox_is_within(mpiox_typemap_true_lb(view), -MPIOX_LINK_MAX_OFFSET, MPIOX_LINK_MAX_OFFSET) ||
        !mpiox_is_within(mpiox_typemap_true_ub(view), -MPIOX_LINK_MAX_OFFSET, MPIOX_LINK_MAX_OFFSET))
        return false;
    if (__builtin_mul_overflow((end - 1) / size, mpiox_typemap_extent(view), &reach) || reach > MPIOX_LINK_MAX_OFFSET)
        return false;
    return origin + mpiox_typemap_offset(view, position) >= 0 &&
           origin + mpiox_typemap_offset(view, end - 1) < MPIOX_LINK_MAX_OFFSET;
}

int mpiox_link_check_range(const mpiox_typemap *view, int64_t origin, int64_t position, int64_t length)
{
    if (!mpiox_is_within(origin, -MPIOX_LINK_MAX_OFFSET, MPIOX_LINK_MAX_OFFSET) ||
        !mpiox_is_within(position, 0, MPIOX_LINK_MAX_OFFSET) || !mpiox_is_within(length, 1, MPIOX_LINK_MAX_OFFSET))
        return MPIOX_E_CORRUPT;
    const int64_t end = position + length;
    const bool fine = view != NULL ? has_offsets_in_range(view, origin, position, end)
                                   : origin + position >= 0 && origin + end <= MPIOX_LINK_MAX_OFFSET;
    return fine ? MPIOX_OK : MPIOX_E_CORRUPT;
}

int64_t mpiox_link_walk_reach(const mpiox_link_walk *walk, int64_t offset, int64_t end)
{
    const int64_t from_origin = offset - walk->origin;
    const int64_t reached = walk->view != NULL ? mpiox_typemap_position(walk->view, from_origin) : from_origin;
    return reached < end ? reached : end;
}

/* The offset of the first unit after `unit` whose owner is the delegate, or is not; INT64_MAX / 2: there is none. */
static int64_t change_of_owner(const mpiox_link_filter *filter, int64_t unit, bool mine)
{
    int32_t range = (int32_t)(unit % filter->ranges), step = 1;
    for (; step < filter->ranges; step++) {
        range = range + 1 < filter->ranges ? range + 1 : 0;
        if ((filter->owner[range] == filter->delegate) != mine)
            break;
    }
    int64_t offset;
    if (step == filter->ranges || __builtin_mul_overflow(unit + step, filter->unit_bytes, &offset) ||
        offset > INT64_MAX / 2)
        return INT64_MAX / 2;
    return offset;
}

bool mpiox_link_walk_next(mpiox_link_walk *walk, int64_t max_bytes, int64_t *position, int64_t *length)
{
    const mpiox_link_filter *filter = walk->filter;
    while (walk->position < walk->end && walk->skips < MPIOX_LINK_MAX_SKIPS) {
        const int64_t unit = mpiox_link_walk_offset(walk, walk->position) / filter->unit_bytes;
        const bool mine = filter->owner[unit % filter->ranges] == filter->delegate;
        const int64_t until = mpiox_link_walk_reach(walk, change_of_owner(filter, unit, mine), walk->end);
        if (mine) {
            *position = walk->position;
            *length = until - walk->position < max_bytes ? until - walk->position : max_bytes;
            walk->position += *length;
            return true;
        }
        walk->position = until;
        walk->skips++;
    }
    return false;
}
