/* mpiox_typemap_runs.c - see mpiox_typemap_runs.h. */
#include "mpiox_typemap_runs.h"

enum { NUMBER_BYTES = 10, RUN_BYTES = 4 * NUMBER_BYTES, SEVERAL = 1, AS_LONG = 2, FLAG_BITS = 2 };

static int put(unsigned char *bytes, uint64_t value)
{
    int n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (unsigned char)(value | 0x80);
    bytes[n++] = (unsigned char)value;
    return n;
}

/* A run as bytes; returns their number. *end: where the run before ended, *length: how long its pieces were. */
static int put_run(unsigned char *bytes, const mpiox_run *run, int64_t granule, int64_t *end, int64_t *length)
{
    const uint64_t gap = (uint64_t)((run->offset - *end) / granule);
    const bool several = run->count > 1, as_long = run->length == *length;
    int n = put(bytes, gap << FLAG_BITS | (as_long ? AS_LONG : 0) | (several ? SEVERAL : 0));
    if (!as_long)
        n += put(bytes + n, (uint64_t)(run->length / granule));
    if (several) {
        n += put(bytes + n, (uint64_t)run->count);
        n += put(bytes + n, (uint64_t)(run->stride / granule));
    }
    *length = run->length;
    *end = run->offset + (run->count - 1) * run->stride + run->length;
    return n;
}

int64_t mpiox_typemap_runs_measure(const mpiox_typemap *view, int64_t from, int64_t *to, int64_t granule, int64_t most)
{
    mpiox_cursor cursor;
    int64_t bytes = 0, end = mpiox_typemap_offset(view, from), length = 0;
    mpiox_cursor_init(&cursor, view, 0, from);
    for (int64_t position = from; position < *to;) {
        unsigned char text[RUN_BYTES];
        mpiox_run run;
        const int64_t moved = mpiox_cursor_next(&cursor, *to - position, &run);
        const int n = put_run(text, &run, granule, &end, &length);
        if (bytes + n > most) {
            *to = position;
            break;
        }
        bytes += n;
        position += moved;
    }
    return bytes;
}

void mpiox_typemap_runs_write(const mpiox_typemap *view, int64_t from, int64_t to, int64_t granule, char *bytes)
{
    mpiox_cursor cursor;
    unsigned char *at = (unsigned char *)bytes;
    int64_t end = mpiox_typemap_offset(view, from), length = 0;
    mpiox_cursor_init(&cursor, view, 0, from);
    while (from < to) {
        mpiox_run run;
        from += mpiox_cursor_next(&cursor, to - from, &run);
        at += put_run(at, &run, granule, &end, &length);
    }
}

void mpiox_typemap_runs_begin(mpiox_typemap_runs *runs, const char *bytes, int64_t n, int64_t granule, int64_t offset)
{
    *runs = (mpiox_typemap_runs){(const unsigned char *)bytes, (const unsigned char *)bytes + n, granule, offset, 0};
}

static bool get(mpiox_typemap_runs *runs, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; runs->at < runs->end && shift < 7 * NUMBER_BYTES; shift += 7) {
        const unsigned char byte = *runs->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

bool mpiox_typemap_runs_next(mpiox_typemap_runs *runs, mpiox_run *run)
{
    uint64_t gap, length = (uint64_t)(runs->length / runs->granule), count = 1, stride = 0;
    int64_t step, bytes, span;
    if (!get(runs, &gap) || (!(gap & AS_LONG) && !get(runs, &length)) ||
        ((gap & SEVERAL) && (!get(runs, &count) || !get(runs, &stride))))
        return false;
    if (__builtin_mul_overflow(gap >> FLAG_BITS, (uint64_t)runs->granule, &step) ||
        __builtin_mul_overflow(length, (uint64_t)runs->granule, &bytes) || bytes <= 0 || count == 0 ||
        __builtin_mul_overflow(stride, (uint64_t)runs->granule, &run->stride) ||
        __builtin_mul_overflow(count - 1, (uint64_t)run->stride, &span) ||
        __builtin_add_overflow(runs->offset, step, &run->offset) ||
        __builtin_add_overflow(run->offset, span, &runs->offset) ||
        __builtin_add_overflow(runs->offset, bytes, &runs->offset) || (count > 1 && run->stride < bytes) ||
        count > INT64_MAX)
        return false;
    run->length = runs->length = bytes;
    run->count = (int64_t)count;
    return true;
}
