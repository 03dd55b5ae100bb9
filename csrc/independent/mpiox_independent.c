/*
 * mpiox_independent.c - one rank's access through its view: which bytes go together, and how they reach the file.
 *
 * Problem.   A view cuts a request into pieces, from a few large ones to millions of some bytes. One system call per
 *            piece is right for the former and ruin for the latter.
 * Algorithm. The stream is cut into chunks, each as much as lies in one window of the file (the sieve buffer's size):
 *              whole    the chunk is one piece, or its file range has no holes: one request;
 *              sieved   read: the range is read in one request and the pieces are copied out (data sieving; Thakur,
 *                       Gropp, Lusk, Frontiers 1999); write: read-modify-write under a lock, only by hint;
 *              mapped   write, many small pieces on a local file system: copied straight into a mapping of the file;
 *              listed   one list of requests, neighbours merged.
 *            Sieving reads pay while the holes are short; see the measured limits below.
 * Guarantee. Only bytes of the view are written (sieved writes put back what they read, under a lock that every other
 *            writer of this file takes too). Bytes are reported in stream order: after an error or the end of the file
 *            *done counts those before it. In atomic mode the whole file range is locked for the length of the access.
 */
#include "mpiox_independent_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "mpiox_storage_lock.h"

enum {
    DEFAULT_SIEVE_BYTES = 1024 * 1024,   /* stays in the second-level cache with the user's data */
    MINIMUM_SIEVE_BYTES = 4096,
    LARGE_PIECE_BYTES = 64 * 1024,       /* from here on a piece is a request of its own */
    SIEVE_COST_BYTES = 4096,             /* local file systems: a request costs as much as copying so many bytes */
    SIEVE_FACTOR = 16,                   /* others: while range <= factor * data */
    SIEVE_PIECE_BYTES = 16 * 1024,       /* and pieces are shorter than this on average */
    MAPPED_PIECES = 16, MAPPED_PIECE_BYTES = 1024 /* at least so many, so short on average, are mapped */
};

bool mpiox_independent_range(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                             int64_t *first, int64_t *last) {
    const int64_t size = mpiox_typemap_size(view), tiles = (position + length - 1) / size + 1;
    int64_t reach;
    if (__builtin_mul_overflow(tiles, mpiox_typemap_extent(view), &reach) ||
        __builtin_add_overflow(reach, mpiox_typemap_true_ub(view), &reach) ||
        __builtin_add_overflow(reach, displacement, &reach) || reach > MPIOX_INDEPENDENT_MAX_OFFSET)
        return false;
    *first = displacement + mpiox_typemap_offset(view, position);
    *last = displacement + mpiox_typemap_offset(view, position + length - 1) + 1;
    return true;
}

bool mpiox_independent_maps(const mpiox_layout *layout) {
    return layout->fs == MPIOX_FS_TMPFS || layout->fs == MPIOX_FS_EXT || layout->fs == MPIOX_FS_XFS;
}

bool mpiox_independent_populates(const mpiox_layout *layout) { return layout->fs == MPIOX_FS_TMPFS; }

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static int64_t sieve_bytes(const mpiox_independent_file *file, bool write) {
    const int64_t hint = write ? file->hints->ind_wr_buffer_size : file->hints->ind_rd_buffer_size;
    if (hint <= 0)
        return DEFAULT_SIEVE_BYTES;
    return hint > MINIMUM_SIEVE_BYTES ? hint : MINIMUM_SIEVE_BYTES;
}

/* The piece that stream position `position` lies in, from there on; at most `left` bytes of it. */
static int64_t piece_at(const mpiox_independent_file *file, int64_t position, int64_t left, int64_t *offset) {
    mpiox_cursor cursor;
    mpiox_run run;
    mpiox_cursor_init(&cursor, file->view, file->displacement, position);
    mpiox_cursor_next(&cursor, left, &run);
    *offset = run.offset;
    return run.length;
}

/* The next chunk at chunk->position: a piece, or as much as ends within the window. */
static void cut(const mpiox_independent_file *file, int64_t left, int64_t window, mpiox_chunk *chunk) {
    const int64_t piece = piece_at(file, chunk->position, left, &chunk->offset);
    chunk->length = chunk->span = piece;
    chunk->pieces = 1;
    if (piece == left || piece >= LARGE_PIECE_BYTES || piece >= window)
        return;
    const int64_t end = mpiox_typemap_position(file->view, chunk->offset + window - file->displacement);
    int64_t length = end - chunk->position;
    length = length < left ? length : left;
    if (length <= piece)
        return;
    chunk->length = length;
    chunk->span = file->displacement + mpiox_typemap_offset(file->view, chunk->position + length - 1) + 1 - chunk->offset;
    if (chunk->span == length)
        return;
    const double share = (double) length / (double) mpiox_typemap_size(file->view);
    chunk->pieces = 1 + (int64_t) ((double) mpiox_typemap_pieces(file->view) * share);
}

/* Sieving copies the holes and, from cache to cache, the pieces once more; a list makes a request of every piece. On a local
 * file system what lies in the page cache decides (a list puts what does not in flight together, mpiox_storage_uring.c);
 * elsewhere the way to the server. */
static bool sieving_pays(const mpiox_independent_file *file, const mpiox_chunk *chunk) {
    if (file->layout->coherent)
        return (chunk->span - chunk->length + chunk->length / 4) / chunk->pieces < SIEVE_COST_BYTES;
    return chunk->length / chunk->pieces < SIEVE_PIECE_BYTES && chunk->span / SIEVE_FACTOR <= chunk->length;
}

typedef enum way { WHOLE, SIEVED, MAPPED, LISTED } way;

static way choose(const mpiox_independent_file *file, bool write, const mpiox_chunk *chunk) {
    const int64_t piece = chunk->length / chunk->pieces;
    if (chunk->span == chunk->length)
        return WHOLE;
    if (write) {
        if (file->hints->ds_write == MPIOX_ON)
            return SIEVED;
        return chunk->pieces >= MAPPED_PIECES && piece <= MAPPED_PIECE_BYTES && mpiox_independent_maps(file->layout)
                   ? MAPPED
                   : LISTED;
    }
    if (file->hints->ds_read != MPIOX_AUTO)
        return file->hints->ds_read == MPIOX_ON ? SIEVED : LISTED;
    return sieving_pays(file, chunk) ? SIEVED : LISTED;
}

static int move_chunk(mpiox_mover *m, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error) {
    mpiox_independent_counters *counters = m->file->counters;
    switch (choose(m->file, m->request->write, chunk)) {
    case MAPPED:
        if (mpiox_chunk_map(m, chunk, moved, error))
            return error->code;
        break; /* not possible here after all */
    case SIEVED:
        atomic_fetch_add_explicit(&counters->sieved, 1, memory_order_relaxed);
        return m->request->write ? mpiox_chunk_sieve_write(m, chunk, moved, error)
                                 : mpiox_chunk_sieve_read(m, chunk, moved, error);
    case WHOLE:
        atomic_fetch_add_explicit(&counters->whole, 1, memory_order_relaxed);
        return mpiox_chunk_whole(m, chunk, moved, error);
    case LISTED:
        break;
    }
    atomic_fetch_add_explicit(&counters->listed, 1, memory_order_relaxed);
    return mpiox_chunk_list(m, chunk, moved, error);
}

static int move_all(mpiox_mover *m, int64_t *done, mpiox_error *error) {
    const int64_t window = sieve_bytes(m->file, m->request->write);
    while (*done < m->request->length) {
        mpiox_chunk chunk = {.position = m->request->position + *done,
                             .memory_position = m->request->memory_position + *done};
        int64_t moved = 0;
        cut(m->file, m->request->length - *done, window, &chunk);
        if (m->request->write && mpiox_independent_populates(m->file->layout) &&
            chunk.span > MPIOX_INDEPENDENT_MAP_BYTES && choose(m->file, true, &chunk) == MAPPED)
            cut(m->file, m->request->length - *done, MPIOX_INDEPENDENT_MAP_BYTES, &chunk);
        const int code = move_chunk(m, &chunk, &moved, error);
        *done += moved;
        if (code != MPIOX_OK || moved < chunk.length) /* an error, or the end of the file */
            return code;
    }
    return MPIOX_OK;
}

/* ---- locks, counters --------------------------------------------------------------------------------------------- */

int mpiox_independent_lock(const mpiox_independent_file *file, bool exclusive, int64_t offset, int64_t length,
                           mpiox_error *error) {
    pthread_mutex_lock(file->threads);
    const int code = mpiox_storage_lock(file->storage, exclusive, offset, length, error);
    if (code != MPIOX_OK)
        pthread_mutex_unlock(file->threads);
    return code;
}

void mpiox_independent_unlock(const mpiox_independent_file *file, int64_t offset, int64_t length) {
    mpiox_storage_unlock(file->storage, offset, length);
    pthread_mutex_unlock(file->threads);
}

bool mpiox_independent_guard(const mpiox_independent_file *file, int64_t offset, int64_t length, int *code,
                             mpiox_error *error) {
    *code = MPIOX_OK;
    if (file->locked || file->hints->ds_write != MPIOX_ON)
        return false;
    *code = mpiox_independent_lock(file, false, offset, length, error);
    return *code == MPIOX_OK;
}

static void count(const mpiox_independent_file *file, bool write, int64_t bytes, const struct timespec *begun) {
    mpiox_independent_counters *counters = file->counters;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_fetch_add_explicit(write ? &counters->writes : &counters->reads, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(write ? &counters->bytes_written : &counters->bytes_read, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->nanoseconds,
                              (now.tv_sec - begun->tv_sec) * 1000000000L + now.tv_nsec - begun->tv_nsec,
                              memory_order_relaxed);
}

/* Tiles that may overlap, one after the other: each is an access through a view displaced by whole tiles. */
static int move_tiles(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done,
                        mpiox_error *error) {
    const int64_t size = mpiox_typemap_size(file->view);
    *done = 0;
    *error = (mpiox_error) {.code = MPIOX_OK};
    while (*done < request->length) {
        mpiox_independent_file one = *file;
        mpiox_request part = *request;
        const int64_t at = request->position + *done, left = size - at % size;
        int64_t moved = 0, shift;
        if (__builtin_mul_overflow(at / size, file->tile_extent, &shift) || shift > MPIOX_INDEPENDENT_MAX_OFFSET)
            return mpiox_error_set(error, MPIOX_E_ARG, EFBIG, at, request->length, "access beyond 2^62 bytes");
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

/* In atomic mode under a lock on the whole file. */
static int access_tiles(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done,
                        mpiox_error *error) {
    *done = 0;
    if (file->atomic && mpiox_independent_lock(file, request->write, 0, 0, error) != MPIOX_OK)
        return error->code;
    const int code = move_tiles(file, request, done, error);
    if (file->atomic)
        mpiox_independent_unlock(file, 0, 0);
    return code;
}

/* One run of memory and of the file that no lock and no hint cuts: the way of most small accesses, so nothing is looked up
 * for it. */
static bool is_one_run(const mpiox_independent_file *file, const mpiox_request *request) {
    return !request->memory && mpiox_typemap_is_contiguous(file->view) && !file->atomic && !file->locked &&
           !file->hints->stripe_size_io && file->hints->ds_write != MPIOX_ON &&
           request->position <= MPIOX_INDEPENDENT_MAX_OFFSET / 4 && request->length <= MPIOX_INDEPENDENT_MAX_OFFSET / 4 &&
           file->displacement <= MPIOX_INDEPENDENT_MAX_OFFSET / 4;
}

static int access_run(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done,
                      mpiox_error *error) {
    struct timespec begun;
    char *buffer = (char *) request->buffer + request->memory_position;
    const int64_t offset = file->displacement + mpiox_typemap_true_lb(file->view) + request->position;
    int code;
    *error = (mpiox_error) {.code = MPIOX_OK};
    clock_gettime(CLOCK_MONOTONIC, &begun);
    if (request->write) {
        code = mpiox_storage_write(file->storage, buffer, request->length, offset, error);
        *done = code == MPIOX_OK ? request->length : request->length - error->length; /* what did not arrive is a tail */
    } else {
        code = mpiox_storage_read(file->storage, buffer, request->length, offset, done, error);
    }
    *done = *done > 0 && *done <= request->length ? *done : 0;
    atomic_fetch_add_explicit(&file->counters->whole, 1, memory_order_relaxed);
    count(file, request->write, *done, &begun);
    return code;
}

int mpiox_independent_access(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done,
                             mpiox_error *error) {
    struct timespec begun;
    if (file->tile_extent)
        return access_tiles(file, request, done, error);
    if (is_one_run(file, request))
        return access_run(file, request, done, error);
    int64_t first, last;
    mpiox_independent_file held = *file;
    mpiox_mover m = {.file = &held, .request = request};
    *done = 0;
    *error = (mpiox_error) {.code = MPIOX_OK};
    clock_gettime(CLOCK_MONOTONIC, &begun);
    if (!mpiox_independent_range(file->view, file->displacement, request->position, request->length, &first, &last))
        return mpiox_error_set(error, MPIOX_E_ARG, EFBIG, request->position, request->length, "access beyond 2^62 bytes");
    if (file->atomic && mpiox_independent_lock(file, request->write, first, last - first, error) != MPIOX_OK)
        return error->code;
    if (file->atomic)
        atomic_fetch_add_explicit(&file->counters->locks, 1, memory_order_relaxed);
    held.locked = file->locked || file->atomic;
    const int code = move_all(&m, done, error);
    if (file->atomic)
        mpiox_independent_unlock(file, first, last - first);
    free(m.staging);
    count(file, request->write, *done, &begun);
    return code;
}
