/*
 * mpiox_window_io.c - the file-system requests of one window.
 *
 * Write: a window whose every byte is known to be covered goes out as one request per extent; otherwise the coverage map
 * is scanned and exactly the covered runs are written, many small ones through a mapping on local file systems. Nothing is ever read to be written back, so that no byte that no
 * rank wrote reaches the file. Read: one request per extent, cut at the end of the file.
 * Stripe-size I/O (Liao and Choudhary, SC08) cuts every request at stripe boundaries.
 * After an error on this node no further request is made: the collective has failed and says so.
 */
#include <string.h>

#include "mpiox_exchange_impl.h"

enum { MAPPED_RUNS = 16, MAPPED_RUN_BYTES = 1024 }; /* at least so many runs, so short on average, are mapped */

/* Bytes from `offset` to the end of the request that may start there: all of `length`, or up to the stripe's end. */
static int64_t request_bytes(const mpiox_exchange *x, int64_t offset, int64_t length) {
    if (!x->hints.stripe_size_io)
        return length;
    const int64_t stripe = x->layout.stripe_size, left = stripe - offset % stripe;
    return left < length ? left : length;
}

static void write_range(mpiox_call *call, const char *buffer, int64_t offset, int64_t length) {
    mpiox_exchange *x = call->x;
    while (length > 0 && !mpiox_agree_failed(x)) {
        mpiox_error error = {.code = MPIOX_OK};
        const int64_t part = request_bytes(x, offset, length);
        if (mpiox_storage_write(x->storage, buffer, part, offset, &error) != MPIOX_OK)
            mpiox_agree_fail(x, &error);
        buffer += part;
        offset += part;
        length -= part;
    }
}

/* ---- windows with holes ------------------------------------------------------------------------------------------ */

/* The next covered run of map[*from .. cells): its first cell and the one behind it. False when there is none. */
static bool next_run(const unsigned char *map, int64_t cells, int64_t *from, int64_t *to) {
    const unsigned char *begin = memchr(map + *from, 1, (size_t) (cells - *from));
    if (!begin)
        return false;
    const unsigned char *stop = memchr(begin, 0, (size_t) (map + cells - begin));
    *from = begin - map;
    *to = stop ? stop - map : cells;
    return true;
}

typedef struct coverage { /* of one extent, in cells */
    int64_t runs, covered, last_from, last_to;
} coverage;

static coverage measure(const unsigned char *map, int64_t cells) {
    coverage c = {0, 0, 0, 0};
    for (int64_t from = 0, to; next_run(map, cells, &from, &to); from = to) {
        c.runs++;
        c.covered += to - from;
        c.last_from = from;
        c.last_to = to;
    }
    return c;
}

/* File systems whose page cache is the file, and that reserve space ahead of a mapping's page faults. */
static bool maps_coherently(mpiox_fs fs) { return fs == MPIOX_FS_TMPFS || fs == MPIOX_FS_EXT || fs == MPIOX_FS_XFS; }

/* Many small runs on a local file system: store them through a mapping of the file. The last run goes out as a request,
 * which extends the file as far as the mapping reaches. False: nothing but that last run was written. */
static bool store_runs(mpiox_call *call, const char *buffer, const unsigned char *map, mpiox_extent extent, coverage c) {
    mpiox_exchange *x = call->x;
    mpiox_storage_mapping mapping;
    const int64_t unit = call->granule;
    if (!maps_coherently(x->layout.fs) || c.runs < MAPPED_RUNS || c.covered * unit / c.runs > MAPPED_RUN_BYTES)
        return false;
    write_range(call, buffer + c.last_from * unit, extent.offset + c.last_from * unit, (c.last_to - c.last_from) * unit);
    if (mpiox_agree_failed(x) || mpiox_storage_map(x->storage, extent.offset, c.last_to * unit, &mapping) != MPIOX_OK)
        return false;
    for (int64_t from = 0, to; from < c.last_from && next_run(map, c.last_from, &from, &to); from = to)
        memcpy((char *) mapping.data + from * unit, buffer + from * unit, (size_t) ((to - from) * unit));
    mpiox_storage_unmap(x->storage, &mapping, c.covered * unit);
    return true;
}

/* Write the covered runs of an extent; map[i] stands for granule bytes. Returns whether there was a hole. */
static bool write_covered(mpiox_call *call, const char *buffer, const unsigned char *map, mpiox_extent extent) {
    const int64_t cells = extent.length / call->granule;
    const coverage c = measure(map, cells);
    if (store_runs(call, buffer, map, extent, c))
        return true;
    for (int64_t from = 0, to; next_run(map, cells, &from, &to); from = to)
        write_range(call, buffer + from * call->granule, extent.offset + from * call->granule,
                    (to - from) * call->granule);
    return c.covered < cells;
}

void mpiox_window_write(mpiox_call *call, mpiox_slot *slot) {
    mpiox_exchange *x = call->x;
    const double begun = mpiox_now();
    const char *buffer = mpiox_slot_buffer(x, slot);
    unsigned char *map = mpiox_slot_map(x, slot);
    mpiox_extent *extents = x->extents[1];
    const int aggregator = x->local[mpiox_slot_local(x, slot)];
    const int64_t n = mpiox_rounds_extents(call, aggregator, atomic_load(&slot->window), extents);
    int64_t at = 0;
    bool hole = false;
    for (int64_t i = 0; i < n; at += extents[i++].length) {
        if (call->mark)
            hole |= write_covered(call, buffer + at, map + at / call->granule, extents[i]);
        else
            write_range(call, buffer + at, extents[i].offset, extents[i].length);
    }
    if (call->mark)
        memset(map, 0, (size_t) (at / call->granule));
    if (hole)
        x->stats.windows_holes++;
    else
        x->stats.windows_full++;
    x->stats.io_s += mpiox_now() - begun;
}

/* Fill [offset, offset + length); returns the file offset where the data ends (beyond the range: no end seen). */
static int64_t read_range(mpiox_call *call, char *buffer, int64_t offset, int64_t length) {
    mpiox_exchange *x = call->x;
    while (length > 0) {
        mpiox_error error = {.code = MPIOX_OK};
        const int64_t part = request_bytes(x, offset, length);
        int64_t done = 0;
        if (mpiox_agree_failed(x))
            return offset;
        if (mpiox_storage_read(x->storage, buffer, part, offset, &done, &error) != MPIOX_OK) {
            mpiox_agree_fail(x, &error);
            return offset;
        }
        if (done < part)
            return offset + done;
        buffer += part;
        offset += part;
        length -= part;
    }
    return INT64_MAX;
}

static void lower(_Atomic int64_t *word, int64_t value) {
    int64_t seen = atomic_load(word);
    while (value < seen && !atomic_compare_exchange_weak(word, &seen, value))
        ;
}

void mpiox_window_read(mpiox_call *call, mpiox_slot *slot) {
    mpiox_exchange *x = call->x;
    const double begun = mpiox_now();
    char *buffer = mpiox_slot_buffer(x, slot);
    mpiox_extent *extents = x->extents[1];
    const int aggregator = x->local[mpiox_slot_local(x, slot)];
    const int64_t n = mpiox_rounds_extents(call, aggregator, atomic_load(&slot->window), extents);
    int64_t eof = INT64_MAX;
    for (int64_t i = 0, at = 0; i < n && eof == INT64_MAX; at += extents[i++].length)
        eof = read_range(call, buffer + at, extents[i].offset, extents[i].length);
    atomic_store(&slot->eof, eof);
    lower(&x->board->eof, eof);
    x->stats.io_s += mpiox_now() - begun;
}
