/*
 * mpiox_chunk.c - the ways to move one chunk of an independent access. See mpiox_independent.c for when each is taken.
 *
 * What is described on both sides (pieces in the file, pieces in memory) is copied once, between the user's memory and
 * the sieve buffer or the mapping. Requests take memory in large pieces as it is (vectors of pwritev and preadv); small
 * ones pass through staging.
 */
#include "mpiox_independent_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_copy.h"

enum {
    STAGING_BYTES = 1024 * 1024,
    PIECES = 256,
    LARGE_MEMORY_BYTES = 16 * 1024 /* memory in pieces of this average is not copied */
};

static int need_staging(mpiox_mover *m, int64_t bytes, mpiox_error *error) {
    if (m->staging_bytes >= bytes)
        return MPIOX_OK;
    free(m->staging);
    m->staging = malloc((size_t) bytes);
    m->staging_bytes = m->staging ? bytes : 0;
    return m->staging ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, bytes, "allocating a sieve buffer");
}

/* The user's memory from `skip` bytes into the chunk on. */
static mpiox_side memory_side(const mpiox_mover *m, const mpiox_chunk *chunk, int64_t skip) {
    return (mpiox_side) {m->request->buffer, m->request->memory, 0, chunk->memory_position + skip};
}

/* The file side of the chunk, `window` being where its byte chunk->offset lies in memory. */
static mpiox_side window_side(const mpiox_mover *m, const mpiox_chunk *chunk, void *window) {
    return (mpiox_side) {window, m->file->view, m->file->displacement - chunk->offset, chunk->position};
}

/* Contiguous memory, contiguous file; cut at stripes when the hint asks for it, under the guard when there is one. */
static int transfer(const mpiox_mover *m, char *buffer, int64_t offset, int64_t length, int64_t *moved,
                    mpiox_error *error) {
    const mpiox_independent_file *file = m->file;
    int code;
    const bool write = m->request->write, guarded = write && mpiox_independent_guard(file, offset, length, &code, error);
    const int64_t stripe = file->layout->stripe_size;
    *moved = 0;
    code = error->code;
    while (code == MPIOX_OK && *moved < length) {
        int64_t part = length - *moved, done = 0;
        const int64_t at = offset + *moved;
        if (file->hints->stripe_size_io && stripe - at % stripe < part)
            part = stripe - at % stripe;
        if (write) {
            code = mpiox_storage_write(file->storage, buffer + *moved, part, at, error);
            done = code == MPIOX_OK ? part : part - error->length; /* what did not arrive is a tail */
        } else {
            code = mpiox_storage_read(file->storage, buffer + *moved, part, at, &done, error);
        }
        *moved += done > 0 && done <= part ? done : 0;
        if (done < part)
            break;
    }
    if (guarded)
        mpiox_independent_unlock(file, offset, length);
    return code;
}

/* ---- a list of pieces -------------------------------------------------------------------------------------------- */

typedef struct batch {
    const mpiox_mover *m;
    int64_t count;
    mpiox_storage_piece pieces[PIECES];
} batch;

/* Data bytes, in stream order, that lie before a write's error or a read's end of the file. */
static int64_t arrived(const batch *b, const mpiox_error *error, int64_t end) {
    int64_t bytes = 0;
    if (error->code != MPIOX_OK && error->offset < 0) /* nothing was moved */
        return 0;
    for (int64_t i = 0; i < b->count; i++) {
        const mpiox_storage_piece *piece = &b->pieces[i];
        const int64_t last = piece->offset + piece->length;
        int64_t missing = end < last ? last - end : 0;
        if (error->code != MPIOX_OK && error->offset >= piece->offset && error->offset < last)
            missing = last - error->offset;
        if (missing > 0)
            return bytes + (missing < piece->length ? piece->length - missing : 0);
        bytes += piece->length;
    }
    return bytes;
}

/* Carry out what has been collected. False at an error or at the end of the file. */
static bool flush(batch *b, int64_t *moved, mpiox_error *error) {
    mpiox_storage *storage = b->m->file->storage;
    int64_t end = INT64_MAX, expected = 0;
    for (int64_t i = 0; i < b->count; i++)
        expected += b->pieces[i].length;
    if (b->m->request->write)
        mpiox_storage_write_list(storage, b->pieces, b->count, error);
    else
        mpiox_storage_read_list(storage, b->pieces, b->count, &end, error);
    const int64_t done = arrived(b, error, end);
    *moved += done;
    b->count = 0;
    return error->code == MPIOX_OK && done == expected;
}

/* Pieces one after the other, data contiguous at `buffer`. With stripe-size I/O each is cut as its stripes want it. */
static int transfer_pieces(const mpiox_mover *m, const mpiox_chunk *chunk, char *buffer, int64_t *moved,
                           mpiox_error *error) {
    mpiox_cursor cursor;
    batch b = {.m = m, .count = 0};
    int64_t left = chunk->length;
    mpiox_cursor_init(&cursor, m->file->view, m->file->displacement, chunk->position);
    while (left > 0) {
        mpiox_run run;
        left -= mpiox_cursor_next(&cursor, left, &run);
        for (int64_t i = 0; i < run.count; i++, buffer += run.length) {
            const int64_t offset = run.offset + i * run.stride;
            int64_t done = 0;
            if (!m->file->hints->stripe_size_io) {
                b.pieces[b.count++] = (mpiox_storage_piece) {buffer, run.length, offset};
                if (b.count == PIECES && !flush(&b, moved, error))
                    return error->code;
                continue;
            }
            const int code = transfer(m, buffer, offset, run.length, &done, error);
            *moved += done;
            if (code != MPIOX_OK || done < run.length)
                return code;
        }
    }
    if (b.count > 0)
        flush(&b, moved, error);
    return error->code;
}

/* ---- memory in large pieces -------------------------------------------------------------------------------------- */

typedef struct piece_cursor { /* a description piece by piece, which may be taken in parts */
    mpiox_cursor cursor;
    mpiox_run run;  /* the present piece is the first block of it */
    int64_t taken;  /* bytes of that block */
    int64_t unseen; /* bytes behind the run */
} piece_cursor;

static void pieces_init(piece_cursor *p, const mpiox_typemap *access, int64_t origin, int64_t position, int64_t length) {
    mpiox_cursor_init(&p->cursor, access, origin, position);
    p->run.count = 0;
    p->taken = 0;
    p->unseen = length;
}

/* Bytes left of the present piece, from *offset on. */
static int64_t pieces_peek(piece_cursor *p, int64_t *offset) {
    if (p->run.count == 0)
        p->unseen -= mpiox_cursor_next(&p->cursor, p->unseen, &p->run);
    *offset = p->run.offset + p->taken;
    return p->run.length - p->taken;
}

static void pieces_take(piece_cursor *p, int64_t bytes) {
    p->taken += bytes;
    if (p->taken < p->run.length)
        return;
    p->run.offset += p->run.stride;
    p->run.count--;
    p->taken = 0;
}

/* Is the memory better left where it is? Stripe-size I/O and the guard of sieved writes go through transfer(). */
static bool is_vectored(const mpiox_mover *m) {
    const mpiox_typemap *memory = m->request->memory;
    const mpiox_hints *hints = m->file->hints;
    return memory && !hints->stripe_size_io && !(m->request->write && hints->ds_write == MPIOX_ON) &&
           mpiox_typemap_size(memory) / mpiox_typemap_pieces(memory) >= LARGE_MEMORY_BYTES;
}

/* A list of the pieces in which both file and memory are contiguous; neighbours in the file become one request. */
static int transfer_vectors(const mpiox_mover *m, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error) {
    const mpiox_request *request = m->request;
    batch b = {.m = m, .count = 0};
    piece_cursor file, memory;
    int64_t left = chunk->length;
    pieces_init(&file, m->file->view, m->file->displacement, chunk->position, left);
    pieces_init(&memory, request->memory, 0, chunk->memory_position, left);
    while (left > 0) {
        int64_t offset, address;
        const int64_t in_file = pieces_peek(&file, &offset), in_memory = pieces_peek(&memory, &address);
        const int64_t part = in_file < in_memory ? in_file : in_memory;
        b.pieces[b.count++] = (mpiox_storage_piece) {(char *) request->buffer + address, part, offset};
        pieces_take(&file, part);
        pieces_take(&memory, part);
        left -= part;
        if ((b.count == PIECES || left == 0) && !flush(&b, moved, error))
            break;
    }
    return error->code;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

int mpiox_chunk_whole(mpiox_mover *m, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error) {
    const mpiox_request *request = m->request;
    if (!request->memory)
        return transfer(m, (char *) request->buffer + chunk->memory_position, chunk->offset, chunk->length, moved, error);
    if (is_vectored(m))
        return transfer_vectors(m, chunk, moved, error);
    const int64_t room = chunk->length < STAGING_BYTES ? chunk->length : STAGING_BYTES;
    int code = need_staging(m, room, error);
    for (int64_t at = 0; code == MPIOX_OK && at < chunk->length; at += room) {
        const int64_t part = chunk->length - at < room ? chunk->length - at : room;
        const mpiox_side staged = {m->staging, NULL, 0, 0}, memory = memory_side(m, chunk, at);
        int64_t done;
        if (request->write)
            mpiox_copy(&staged, &memory, part);
        code = transfer(m, m->staging, chunk->offset + at, part, &done, error);
        if (!request->write)
            mpiox_copy(&memory, &staged, done);
        *moved += done;
        if (done < part)
            break;
    }
    return code;
}

int mpiox_chunk_list(mpiox_mover *m, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error) {
    const mpiox_request *request = m->request;
    if (!request->memory)
        return transfer_pieces(m, chunk, (char *) request->buffer + chunk->memory_position, moved, error);
    if (is_vectored(m))
        return transfer_vectors(m, chunk, moved, error);
    if (need_staging(m, chunk->length, error) != MPIOX_OK) /* at most a window */
        return error->code;
    const mpiox_side staged = {m->staging, NULL, 0, 0}, memory = memory_side(m, chunk, 0);
    if (request->write)
        mpiox_copy(&staged, &memory, chunk->length);
    const int code = transfer_pieces(m, chunk, m->staging, moved, error);
    if (!request->write)
        mpiox_copy(&memory, &staged, *moved);
    return code;
}

/* ---- data sieving ------------------------------------------------------------------------------------------------ */

int mpiox_chunk_sieve_read(mpiox_mover *m, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error) {
    int64_t got = 0;
    if (need_staging(m, chunk->span, error) != MPIOX_OK)
        return error->code;
    const int code = transfer(m, m->staging, chunk->offset, chunk->span, &got, error);
    int64_t data = chunk->length;
    if (got < chunk->span)
        data = mpiox_typemap_position(m->file->view, chunk->offset + got - m->file->displacement) - chunk->position;
    data = data > 0 ? data : 0;
    const mpiox_side window = window_side(m, chunk, m->staging), memory = memory_side(m, chunk, 0);
    mpiox_copy(&memory, &window, data);
    *moved = data;
    return code;
}

/* Read-modify-write of the chunk's range. What lies beyond the end of the file reads as zeros, which is what a hole in a
 * file is, and the range ends with this chunk's last byte. */
static int modify(mpiox_mover *m, const mpiox_chunk *chunk, mpiox_error *error) {
    mpiox_storage *storage = m->file->storage;
    int64_t got = 0;
    if (mpiox_storage_read(storage, m->staging, chunk->span, chunk->offset, &got, error) != MPIOX_OK)
        return error->code;
    memset(m->staging + got, 0, (size_t) (chunk->span - got));
    const mpiox_side window = window_side(m, chunk, m->staging), memory = memory_side(m, chunk, 0);
    mpiox_copy(&window, &memory, chunk->length);
    return mpiox_storage_write(storage, m->staging, chunk->span, chunk->offset, error);
}

int mpiox_chunk_sieve_write(mpiox_mover *m, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error) {
    if (need_staging(m, chunk->span, error) != MPIOX_OK)
        return error->code;
    if (!m->file->locked && mpiox_independent_lock(m->file, true, chunk->offset, chunk->span, error) != MPIOX_OK)
        return error->code;
    const int code = modify(m, chunk, error);
    if (!m->file->locked)
        mpiox_independent_unlock(m->file, chunk->offset, chunk->span);
    *moved = code == MPIOX_OK ? chunk->length : 0;
    return code;
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

/* The chunk's last byte goes out as a request, which extends the file as far as the mapping reaches. */
static int write_last_byte(mpiox_mover *m, const mpiox_chunk *chunk, mpiox_error *error) {
    char staged;
    int64_t moved;
    const mpiox_side target = {&staged, NULL, 0, 0}, byte = memory_side(m, chunk, chunk->length - 1);
    mpiox_copy(&target, &byte, 1);
    return transfer(m, &staged, chunk->offset + chunk->span - 1, 1, &moved, error);
}

bool mpiox_chunk_map(mpiox_mover *m, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error) {
    mpiox_storage_mapping mapping;
    const bool populate = mpiox_independent_populates(m->file->layout);
    if (mpiox_storage_map(m->file->storage, chunk->offset, chunk->span, populate, &mapping) != MPIOX_OK) {
        if (write_last_byte(m, chunk, error) != MPIOX_OK)
            return true;
        if (mpiox_storage_map(m->file->storage, chunk->offset, chunk->span, populate, &mapping) != MPIOX_OK)
            return false;
    }
    const mpiox_side window = window_side(m, chunk, mapping.data), memory = memory_side(m, chunk, 0);
    mpiox_copy(&window, &memory, chunk->length);
    mpiox_storage_unmap(m->file->storage, &mapping, chunk->length);
    atomic_fetch_add_explicit(&m->file->counters->mapped, 1, memory_order_relaxed);
    *moved = chunk->length;
    return true;
}
