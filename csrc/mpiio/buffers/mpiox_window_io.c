/*
 * mpiox_window_io.c - the file-system requests of one window.
 *
 * Write: if every byte of a window is known to be covered, the rank writes the window by one request per extent.
 * Otherwise it scans the coverage map and writes exactly the covered runs, many small ones through a mapping on local
 * file systems. No rank reads bytes to write them back: only bytes that some rank wrote reach the file. Read: one
 * request per extent, cut at the end of the file. Stripe-size I/O (Liao and Choudhary, SC08) cuts every request at
 * stripe boundaries. After an error on this node no further request is made: the collective fails and reports it.
 */
#include <string.h>

#include "mpiox_buffers.h"
#include "mpiox_parts.h"

/* The file as this collective accesses it. */
static mpiox_independent_file through(const mpiox_call *call)
{
    mpiox_independent_file file = mpiox_file_independent(call->b->file);
    file.stripe_size_io = call->stripe_size_io;
    return file;
}

static void write_range(mpiox_call *call, const char *buffer, int64_t offset, int64_t length)
{
    const mpiox_independent_file file = through(call);
    mpiox_error error = {.code = MPIOX_OK};
    int64_t moved;
    if (!mpiox_buffers_failed(call->b) &&
        mpiox_independent_transfer(&file, true, (char *)buffer, offset, length, &moved, &error) != MPIOX_OK)
        mpiox_buffers_fail(call->b, &error);
}

/* ---- windows with holes ------------------------------------------------------------------------------------------ */

/* The next covered run of map[*from .. cells): its first cell and the one behind it. False when there is none. */
static bool next_run(const unsigned char *map, int64_t cells, int64_t *from, int64_t *to)
{
    const unsigned char *begin = memchr(map + *from, 1, (size_t)(cells - *from));
    if (!begin)
        return false;
    const unsigned char *stop = memchr(begin, 0, (size_t)(map + cells - begin));
    *from = begin - map;
    *to = stop ? stop - map : cells;
    return true;
}

typedef struct coverage { /* of one extent, in cells */
    int64_t runs, covered, last_from, last_to;
} coverage;

static coverage measure(const unsigned char *map, int64_t cells)
{
    coverage c = {0, 0, 0, 0};
    for (int64_t from = 0, to; next_run(map, cells, &from, &to); from = to) {
        c.runs++;
        c.covered += to - from;
        c.last_from = from;
        c.last_to = to;
    }
    return c;
}

/* Store the runs that begin in cells [from, to) of an extent through a mapping that ends with the last of them.
 * Returns the cell to go on from, or -1: no mapping, nothing stored. */
static int64_t store_part(mpiox_call *call, const char *buffer, const unsigned char *map, mpiox_extent extent,
                          int64_t from, int64_t to)
{
    const mpiox_independent_file file = through(call);
    mpiox_storage_mapping mapping;
    const int64_t unit = call->granule, cells = extent.length / unit;
    int64_t first = from, end, stored = 0, last = -1;
    if (!next_run(map, cells, &first, &end) || first >= to)
        return to;
    last = to < cells ? to : cells; /* the run that reaches over the part's end belongs to it */
    while (last < cells && map[last] && map[last - 1])
        last++;
    const int64_t offset = extent.offset + first * unit;
    if (mpiox_independent_map(&file, offset, (last - first) * unit, &mapping) != MPIOX_OK)
        return -1;
    for (int64_t at = first, stop; at < last && next_run(map, last, &at, &stop); at = stop) {
        memcpy((char *)mapping.data + (at - first) * unit, buffer + at * unit, (size_t)((stop - at) * unit));
        stored += (stop - at) * unit;
    }
    mpiox_storage_unmap(file.storage, &mapping, stored);
    return last;
}

/* Many small runs on a local file system: store them through mappings of the file. The last run goes out as a request,
 * which extends the file as far as the mappings reach. False: what has not been stored must be written by requests. */
static bool store_runs(mpiox_call *call, const char *buffer, const unsigned char *map, mpiox_extent extent, coverage c)
{
    const mpiox_independent_file file = through(call);
    const int64_t unit = call->granule, cells = extent.length / unit, limit = mpiox_independent_map_bytes(&file);
    const int64_t step = limit < extent.length ? limit / unit + 1 : cells;
    if (!mpiox_independent_maps(&file, c.runs, c.covered * unit))
        return false;
    write_range(call, buffer + c.last_from * unit, extent.offset + c.last_from * unit,
                (c.last_to - c.last_from) * unit);
    for (int64_t at = 0; at < c.last_from;) {
        const int64_t to = at + step < c.last_from ? at + step : c.last_from;
        if (mpiox_buffers_failed(call->b))
            return true;
        at = store_part(call, buffer, map, extent, at, to);
        if (at < 0)
            return false;
    }
    return true;
}

/* The covered runs as lists of requests. */
static void list_runs(mpiox_call *call, const char *buffer, const unsigned char *map, mpiox_extent extent)
{
    mpiox_buffers *b = call->b;
    const int64_t cells = extent.length / call->granule, unit = call->granule;
    mpiox_error error = {.code = MPIOX_OK};
    mpiox_storage_list list;
    bool more = true;
    mpiox_storage_list_begin(&list, b->file->storage, true, &error);
    for (int64_t from = 0, to; more && next_run(map, cells, &from, &to); from = to)
        more = !mpiox_buffers_failed(b) && mpiox_storage_list_add(&list, (char *)buffer + from * unit,
                                                                  (to - from) * unit, extent.offset + from * unit);
    if (more)
        mpiox_storage_list_finish(&list);
    if (error.code != MPIOX_OK)
        mpiox_buffers_fail(b, &error);
}

/* Write the covered runs of an extent; map[i] stands for granule bytes. Returns whether there was a hole. */
static bool write_covered(mpiox_call *call, const char *buffer, const unsigned char *map, mpiox_extent extent)
{
    const int64_t cells = extent.length / call->granule;
    const coverage c = measure(map, cells);
    if (store_runs(call, buffer, map, extent, c))
        return true;
    if (c.runs > 1 && !call->stripe_size_io && call->b->file->hints.ds_write != MPIOX_ON) {
        list_runs(call, buffer, map, extent);
        return true;
    }
    for (int64_t from = 0, to; next_run(map, cells, &from, &to); from = to)
        write_range(call, buffer + from * call->granule, extent.offset + from * call->granule,
                    (to - from) * call->granule);
    return c.covered < cells;
}

void mpiox_window_write(mpiox_call *call, mpiox_buffer_slot *slot)
{
    mpiox_buffers *b = call->b;
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_STORAGE);
    const char *buffer = mpiox_slot_buffer(b, slot);
    unsigned char *map = mpiox_slot_map(b, slot);
    mpiox_extent *extents = b->extents[1];
    const int aggregator = b->local[mpiox_slot_local(b, slot)];
    const int64_t n = mpiox_window_extents(call, aggregator, atomic_load(&slot->window), extents);
    int64_t at = 0;
    bool hole = false;
    for (int64_t i = 0; i < n; at += extents[i++].length) {
        if (call->mark)
            hole |= write_covered(call, buffer + at, map + at / call->granule, extents[i]);
        else
            write_range(call, buffer + at, extents[i].offset, extents[i].length);
    }
    if (call->mark)
        memset(map, 0, (size_t)(at / call->granule));
    if (hole)
        b->file->stats.windows_holes++;
    else
        b->file->stats.windows_full++;
    mpiox_parts_on(before);
}

/* Fill [offset, offset + length); returns the file offset where the data ends (beyond the range: no end seen). */
static int64_t read_range(mpiox_call *call, char *buffer, int64_t offset, int64_t length)
{
    const mpiox_independent_file file = through(call);
    mpiox_error error = {.code = MPIOX_OK};
    int64_t moved = 0;
    if (mpiox_buffers_failed(call->b))
        return offset;
    if (mpiox_independent_transfer(&file, false, buffer, offset, length, &moved, &error) != MPIOX_OK)
        mpiox_buffers_fail(call->b, &error);
    return moved < length ? offset + moved : INT64_MAX;
}

static void lower(_Atomic int64_t *word, int64_t value)
{
    int64_t seen = atomic_load(word);
    while (value < seen && !atomic_compare_exchange_weak(word, &seen, value))
        ;
}

void mpiox_window_read(mpiox_call *call, mpiox_buffer_slot *slot)
{
    mpiox_buffers *b = call->b;
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_STORAGE);
    char *buffer = mpiox_slot_buffer(b, slot);
    mpiox_extent *extents = b->extents[1];
    const int aggregator = b->local[mpiox_slot_local(b, slot)];
    const int64_t n = mpiox_window_extents(call, aggregator, atomic_load(&slot->window), extents);
    int64_t eof = INT64_MAX;
    for (int64_t i = 0, at = 0; i < n && eof == INT64_MAX; at += extents[i++].length)
        eof = read_range(call, buffer + at, extents[i].offset, extents[i].length);
    atomic_store(&slot->eof, eof);
    lower(&b->state->eof, eof);
    mpiox_parts_on(before);
}
