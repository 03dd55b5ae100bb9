/* mpiox_typemap_order.c - see mpiox_typemap_order.h. */
#include "mpiox_typemap_order.h"

mpiox_typemap_order mpiox_typemap_order_of(const mpiox_typemap *map)
{
    mpiox_typemap_order found = {.reaches_back = mpiox_typemap_size(map) > 0 && mpiox_typemap_true_lb(map) < 0};
    int64_t left = mpiox_typemap_size(map), last = INT64_MIN, end = INT64_MIN;
    mpiox_cursor cursor;
    mpiox_run run;

    if (left == 0 || mpiox_typemap_is_monotonic(map))
        return found;
    mpiox_cursor_init(&cursor, map, 0, 0);
    while (left > 0 && !found.descends) {
        left -= mpiox_cursor_next(&cursor, left, &run);
        found.descends = run.offset < last || (run.count > 1 && run.stride < 0);
        found.overlaps |= run.offset < end || (run.count > 1 && run.stride < run.length);
        last = run.offset + (run.count - 1) * run.stride;
        end = last + run.length > end ? last + run.length : end;
    }
    return found;
}
