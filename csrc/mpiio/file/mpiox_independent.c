/*
 * mpiox_independent.c - one rank's access through its view: which bytes go together, and how they reach the file.
 *
 * Problem.   A view cuts a request into pieces, from a few large ones to millions of a few bytes. One system call per
 *            piece is right for the former and far too slow for the latter.
 * Algorithm. The stream is cut into windows, each as much as lies in a range of the file that is as long as the sieve
 *            buffer. An access method moves each window:
 *              contiguous  the window is one piece, or its file range has no holes: one request;
 *              sieving     read: one request reads the range, and the pieces are copied out of it. Write:
 *                          read-modify-write under a lock, only by hint (data sieving; Thakur, Gropp and Lusk, "Data
 *                          sieving and collective I/O in ROMIO", Frontiers 1999, section 3);
 *              mapping     write, many small pieces on a local file system: copied straight into a mapping of the file;
 *              list I/O    one list of requests, neighbours merged.
 *            Sieving reads pay while the holes are short; see the measured limits below.
 * Guarantee. Only bytes of the view are written (sieved writes put back what they read, under a lock that every other
 *            writer of this file takes too). Bytes are reported in stream order: after an error or the end of the file
 *            *done counts those before it. In atomic mode the whole file range is locked for the length of the access.
 */
#include "mpiox_independent.h"

#include <errno.h>
#include <stdlib.h>

#include "mpiox_count.h"
#include "mpiox_device_access.h"
#include "mpiox_independent_methods.h"
#include "mpiox_overlap.h"
#include "mpiox_storage_refresh.h"
#include "mpiox_wait.h"

enum {
    LEAST_ASKED_ABOUT = 512, /* the processor has read so many bytes of a GPU in the time of a few questions */
    DEFAULT_SIEVE_BYTES = 1024 * 1024, /* stays in the second-level cache with the user's data */
    MINIMUM_SIEVE_BYTES = 4096,
    LARGE_PIECE_BYTES = 64 * 1024, /* from here on a piece is a request of its own */
    SIEVE_COST_BYTES = 4096,       /* local file systems: a request costs as much as copying so many bytes */
    SIEVE_FACTOR = 16,             /* others: while range <= factor * data */
    SIEVE_PIECE_BYTES = 16 * 1024  /* and pieces are shorter than this on average */
};

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static int64_t sieve_bytes(const mpiox_independent_file *file, bool write)
{
    const int64_t hint = write ? file->hints->ind_wr_buffer_size : file->hints->ind_rd_buffer_size;
    if (hint <= 0)
        return DEFAULT_SIEVE_BYTES;
    return hint > MINIMUM_SIEVE_BYTES ? hint : MINIMUM_SIEVE_BYTES;
}

/* The piece that stream position `position` lies in, from there on; at most `left` bytes of it. */
static int64_t piece_at(const mpiox_independent_file *file, int64_t position, int64_t left, int64_t *offset)
{
    mpiox_cursor cursor;
    mpiox_run run;
    mpiox_cursor_init(&cursor, file->view, file->displacement, position);
    mpiox_cursor_next(&cursor, left, &run);
    *offset = run.offset;
    return run.length;
}

/* The window at window->position: one piece, or as much as ends within `bytes` bytes of the file. */
static void cut(const mpiox_independent_file *file, int64_t left, int64_t bytes, mpiox_independent_window *window)
{
    if (!mpiox_typemap_is_monotonic(file->view)) {
        const mpiox_overlap_window found = mpiox_overlap_cut(file->view, file->displacement, window->position, left,
                                                             bytes);
        window->length = found.length;
        window->offset = found.offset;
        window->span = found.span;
        window->pieces = found.pieces;
        return;
    }
    const int64_t piece = piece_at(file, window->position, left, &window->offset);
    window->length = window->span = piece;
    window->pieces = 1;
    if (piece == left || piece >= LARGE_PIECE_BYTES || piece >= bytes)
        return;
    const int64_t end = mpiox_typemap_position(file->view, window->offset + bytes - file->displacement);
    int64_t length = end - window->position;
    length = length < left ? length : left;
    if (length <= piece)
        return;
    window->length = length;
    window->span = file->displacement + mpiox_typemap_offset(file->view, window->position + length - 1) + 1 -
                   window->offset;
    if (window->span == length)
        return;
    const double share = (double)length / (double)mpiox_typemap_size(file->view);
    window->pieces = 1 + (int64_t)((double)mpiox_typemap_pieces(file->view) * share);
}

/* Sieving copies the holes and, from cache to cache, the pieces once more; list I/O makes a request of every piece. On
 * a local file system the cost of what lies in the page cache decides (a list puts the rest in flight together, see
 * mpiox_storage_uring.c); elsewhere that of a round trip to the server does. */
static bool sieving_pays(const mpiox_independent_file *file, const mpiox_independent_window *window)
{
    if (file->layout->coherent)
        return (window->span - window->length + window->length / 4) / window->pieces < SIEVE_COST_BYTES;
    return window->length / window->pieces < SIEVE_PIECE_BYTES && window->span / SIEVE_FACTOR <= window->length;
}

typedef enum access_method { CONTIGUOUS, SIEVING, MAPPING, LIST_IO } access_method;

static access_method choose(const mpiox_independent_file *file, bool write, const mpiox_independent_window *window)
{
    if (!mpiox_typemap_is_monotonic(file->view)) /* a piece, or several that may share bytes: only read */
        return window->pieces == 1 ? CONTIGUOUS : SIEVING;
    if (window->span == window->length)
        return CONTIGUOUS;
    if (write) {
        if (file->hints->ds_write == MPIOX_ON)
            return SIEVING;
        return mpiox_independent_maps(file, window->pieces, window->length) ? MAPPING : LIST_IO;
    }
    if (file->hints->ds_read != MPIOX_AUTO)
        return file->hints->ds_read == MPIOX_ON ? SIEVING : LIST_IO;
    return sieving_pays(file, window) ? SIEVING : LIST_IO;
}

static int move_window(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                       mpiox_error *error)
{
    mpiox_independent_counters *counters = call->file->counters;
    switch (choose(call->file, call->request->write, window)) {
    case MAPPING:
        if (mpiox_independent_map_write(call, window, moved, error))
            return error->code;
        break; /* the file cannot be mapped after all */
    case SIEVING:
        mpiox_count(&counters->sieved, 1);
        return call->request->write ? mpiox_independent_sieve_write(call, window, moved, error)
                                    : mpiox_independent_sieve_read(call, window, moved, error);
    case CONTIGUOUS:
        mpiox_count(&counters->whole, 1);
        return mpiox_independent_contiguous(call, window, moved, error);
    case LIST_IO:
        break;
    }
    mpiox_count(&counters->listed, 1);
    return mpiox_independent_list(call, window, moved, error);
}

static int move_all(mpiox_independent_call *call, int64_t *done, mpiox_error *error)
{
    const mpiox_request *request = call->request;
    const int64_t sieve = sieve_bytes(call->file, request->write), mapped = mpiox_independent_map_bytes(call->file);
    while (*done < request->length) {
        mpiox_independent_window window = {.position = request->position + *done,
                                           .memory_position = request->memory_position + *done};
        int64_t moved = 0;
        cut(call->file, request->length - *done, sieve, &window);
        if (request->write && window.span > mapped && choose(call->file, true, &window) == MAPPING)
            cut(call->file, request->length - *done, mapped, &window);
        const int code = move_window(call, &window, &moved, error);
        *done += moved;
        if (code != MPIOX_OK || moved < window.length) /* an error, or the end of the file */
            return code;
    }
    return MPIOX_OK;
}

/* ---- the access ------------------------------------------------------------------------------------------------- */

static void count(const mpiox_independent_file *file, bool write, int64_t first, int64_t last, int64_t bytes,
                  double begun)
{
    mpiox_independent_counters *counters = file->counters;
    const int64_t nanoseconds = (int64_t)(1e9 * (mpiox_now() - begun));
    mpiox_count(write ? &counters->writes : &counters->reads, 1);
    mpiox_count(write ? &counters->bytes_written : &counters->bytes_read, bytes);
    mpiox_count(&counters->nanoseconds, nanoseconds);
    if (file->hints->stats)
        mpiox_stats_trail_add(&counters->trails[write], first, last, nanoseconds);
}

/* Tiles that may overlap, one after the other: each is an access through a view displaced by whole tiles. */
static int move_tiles(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done,
                      mpiox_error *error)
{
    const int64_t size = mpiox_typemap_size(file->view);
    *done = 0;
    *error = (mpiox_error){.code = MPIOX_OK};
    while (*done < request->length) {
        mpiox_independent_file one = *file;
        mpiox_request part = *request;
        const int64_t at = request->position + *done, left = size - at % size;
        int64_t moved = 0, shift;
        if (__builtin_mul_overflow(at / size, file->tile_extent, &shift) || shift > MPIOX_INDEPENDENT_MAX_OFFSET)
            return mpiox_error_set(error, MPIOX_E_ARG, EFBIG, at, request->length, "access outside of bytes 0 to 2^62");
        one.displacement += shift;
        one.tile_extent = 0;
        one.locked = file->atomic;
        one.atomic = false;
        part.position = at % size;
        part.memory_position = request->memory_position + *done;
        part.length = request->length - *done < left ? request->length - *done : left;
        const int code = mpiox_independent_access(&one, &part, &moved, error);
        *done += moved;
        if (code != MPIOX_OK || moved < part.length)
            return code;
    }
    return MPIOX_OK;
}

/* The lock of the atomic mode: its owner sees what was written under it before, on other nodes, too. */
static int hold(const mpiox_independent_file *file, bool write, int64_t offset, int64_t length, mpiox_error *error)
{
    if (!file->atomic || mpiox_independent_lock(file, write, offset, length, error) != MPIOX_OK)
        return error->code;
    if (file->refreshes && mpiox_storage_refresh(file->storage, error) != MPIOX_OK)
        mpiox_independent_unlock(file, offset, length);
    return error->code;
}

static int let_go(const mpiox_independent_file *file, bool write, int64_t offset, int64_t length, int code,
                  mpiox_error *error)
{
    if (!file->atomic)
        return code;
    if (file->refreshes && write && code == MPIOX_OK)
        code = mpiox_storage_sync(file->storage, error);
    mpiox_independent_unlock(file, offset, length);
    return code;
}

/* In atomic mode under a lock on the whole file. */
static __attribute__((noinline)) int access_tiles(const mpiox_independent_file *file, const mpiox_request *request,
                                                  int64_t *done, mpiox_error *error)
{
    *done = 0;
    *error = (mpiox_error){.code = MPIOX_OK};
    if (hold(file, request->write, 0, 0, error) != MPIOX_OK)
        return error->code;
    return let_go(file, request->write, 0, 0, move_tiles(file, request, done, error), error);
}

/* One run of memory and of the file that no lock and no hint cuts, as most small accesses are, and that only the kernel
 * copies, which direct I/O does not promise: nothing need be looked up for it. */
static inline __attribute__((always_inline)) bool is_one_run(const mpiox_independent_file *file,
                                                             const mpiox_request *request)
{
    return !request->memory && mpiox_typemap_is_contiguous(file->view) && !file->atomic && !file->locked &&
           !file->stripe_size_io && file->hints->ds_write != MPIOX_ON && !file->hints->direct_read &&
           !file->hints->direct_write && request->position <= MPIOX_INDEPENDENT_MAX_OFFSET / 4 &&
           request->length <= MPIOX_INDEPENDENT_MAX_OFFSET / 4 &&
           file->displacement <= MPIOX_INDEPENDENT_MAX_OFFSET / 4;
}

/* The memory of a GPU is refused, as the kernel does where the processor cannot access it. */
static __attribute__((noinline)) int refuse_device(const mpiox_request *request, double now, int64_t *done,
                                                   mpiox_error *error)
{
    mpiox_device device;
    *done = 0;
    mpiox_error_clear(error);
    if (mpiox_device_has(request, now, &device))
        mpiox_error_set(error, MPIOX_E_IO, EFAULT, -1, request->length, "access of the memory of a GPU");
    return error->code;
}

static inline __attribute__((always_inline)) int
access_run(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done, mpiox_error *error)
{
    char *buffer = (char *)request->buffer + request->memory_position;
    const int64_t offset = file->displacement + mpiox_typemap_true_lb(file->view) + request->position;
    const double begun = mpiox_now();
    if (request->length >= LEAST_ASKED_ABOUT && mpiox_memory_any_mapped(begun) &&
        refuse_device(request, begun, done, error) != MPIOX_OK)
        return error->code;
    mpiox_error_clear(error);
    const int code = mpiox_independent_transfer(file, request->write, buffer, offset, request->length, done, error);
    if (code != MPIOX_OK && error->sys_errno == EFAULT) /* of a device, perhaps: it is not over */
        return code;
    mpiox_count(&file->counters->whole, 1);
    count(file, request->write, offset, offset + *done, *done, begun);
    return code;
}

static __attribute__((noinline)) int access_windows(const mpiox_independent_file *file, const mpiox_request *request,
                                                    int64_t *done, mpiox_error *error)
{
    int64_t first, last;
    mpiox_independent_file held = *file;
    mpiox_independent_call call = {.file = &held, .request = request};
    const double begun = mpiox_now();
    if (refuse_device(request, begun, done, error) != MPIOX_OK)
        return error->code;
    if (!mpiox_independent_range(file->view, file->displacement, request->position, request->length, &first, &last))
        return mpiox_error_set(error, MPIOX_E_ARG, EFBIG, request->position, request->length,
                               "access outside of bytes 0 to 2^62");
    if (hold(file, request->write, first, last - first, error) != MPIOX_OK)
        return error->code;
    if (file->atomic)
        mpiox_count(&file->counters->locks, 1);
    held.locked = file->locked || file->atomic;
    const int code = let_go(file, request->write, first, last - first, move_all(&call, done, error), error);
    free(call.staging);
    count(file, request->write, first, last, *done, begun);
    return code;
}

int mpiox_independent_access(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done,
                             mpiox_error *error)
{
    if (file->tile_extent)
        return access_tiles(file, request, done, error);
    return is_one_run(file, request) ? access_run(file, request, done, error)
                                     : access_windows(file, request, done, error);
}
