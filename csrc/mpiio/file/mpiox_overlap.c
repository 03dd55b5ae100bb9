/* mpiox_overlap.c - see mpiox_overlap.h. */
#include "mpiox_overlap.h"

mpiox_overlap_window mpiox_overlap_cut(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t left,
                                       int64_t bytes)
{
    mpiox_overlap_window window = {.length = 0};
    int64_t low = INT64_MAX, high = INT64_MIN;
    mpiox_cursor cursor;
    mpiox_run run;

    mpiox_cursor_init(&cursor, view, displacement, position);
    while (left > 0) {
        left -= mpiox_cursor_next(&cursor, left, &run);
        for (int64_t i = 0; i < run.count; i++) {
            const int64_t at = run.offset + i * run.stride, end = at + run.length;
            const int64_t lowest = at < low ? at : low, highest = end > high ? end : high;

            if (window.pieces > 0 && highest - lowest > bytes)
                return window;
            low = lowest;
            high = highest;
            window.length += run.length;
            window.offset = low;
            window.span = high - low;
            window.pieces++;
        }
    }
    return window;
}

int64_t mpiox_overlap_before(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                             int64_t end)
{
    int64_t before = 0, left = length;
    mpiox_cursor cursor;
    mpiox_run run;

    mpiox_cursor_init(&cursor, view, displacement, position);
    while (left > 0) {
        left -= mpiox_cursor_next(&cursor, left, &run);
        for (int64_t i = 0; i < run.count; i++) {
            const int64_t at = run.offset + i * run.stride;

            if (at + run.length > end)
                return before + (at < end ? end - at : 0);
            before += run.length;
        }
    }
    return before;
}
