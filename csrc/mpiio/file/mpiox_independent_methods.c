/*
 * mpiox_independent_methods.c - the access methods; mpiox_independent.c chooses one for each window.
 *
 * Pieces that are described on both sides, in the file and in memory, are copied once, between the user's memory and
 * the sieve buffer or the mapping. Requests take memory in large pieces where it lies (vectors of pwritev and preadv);
 * small pieces pass through the sieve buffer.
 */
#include "mpiox_independent_methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_copy.h"
#include "mpiox_count.h"
#include "mpiox_overlap.h"

enum {
    STAGING_BYTES = 1024 * 1024,
    LARGE_MEMORY_BYTES = 16 * 1024 /* memory in pieces of this average is not copied */
};

static int transfer(const mpiox_independent_call *call, char *buffer, int64_t offset, int64_t length, int64_t *moved,
                    mpiox_error *error)
{
    return mpiox_independent_transfer(call->file, call->request->write, buffer, offset, length, moved, error);
}

static int need_staging(mpiox_independent_call *call, int64_t bytes, mpiox_error *error)
{
    if (call->staging_bytes >= bytes)
        return MPIOX_OK;
    free(call->staging);
    call->staging = malloc((size_t)bytes);
    call->staging_bytes = call->staging ? bytes : 0;
    if (!call->staging)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, bytes, "allocating a sieve buffer");
    return MPIOX_OK;
}

/* The user's memory from `skip` bytes into the window on. */
static mpiox_memory_layout memory_layout(const mpiox_independent_call *call, const mpiox_independent_window *window,
                                         int64_t skip)
{
    return (mpiox_memory_layout){call->request->buffer, call->request->memory, 0, window->memory_position + skip};
}

/* The file side of the window, `base` being where its byte window->offset lies in memory. */
static mpiox_memory_layout file_layout(const mpiox_independent_call *call, const mpiox_independent_window *window,
                                       void *base)
{
    return (mpiox_memory_layout){base, call->file->view, call->file->displacement - window->offset, window->position};
}

/* ---- a list of pieces -------------------------------------------------------------------------------------------- */

/* Pieces in stream order, data contiguous at `buffer`. With stripe-size I/O every piece is cut at stripe boundaries. */
static int transfer_pieces(const mpiox_independent_call *call, const mpiox_independent_window *window, char *buffer,
                           int64_t *moved, mpiox_error *error)
{
    const bool by_stripes = call->file->stripe_size_io;
    mpiox_storage_list list;
    mpiox_cursor cursor;
    bool more = true;
    int64_t left = window->length;
    mpiox_storage_list_begin(&list, call->file->storage, call->request->write, error);
    mpiox_cursor_init(&cursor, call->file->view, call->file->displacement, window->position);
    while (left > 0 && more) {
        mpiox_run run;
        left -= mpiox_cursor_next(&cursor, left, &run);
        for (int64_t i = 0; i < run.count && more; i++, buffer += run.length) {
            const int64_t offset = run.offset + i * run.stride;
            int64_t done = 0;
            if (by_stripes) {
                more = transfer(call, buffer, offset, run.length, &done, error) == MPIOX_OK && done == run.length;
                *moved += done;
            } else {
                more = mpiox_storage_list_add(&list, buffer, run.length, offset);
            }
        }
    }
    if (more)
        mpiox_storage_list_finish(&list);
    *moved += list.moved;
    return error->code;
}

/* ---- memory in large pieces -------------------------------------------------------------------------------------- */

typedef struct piece_cursor { /* a typemap piece by piece; a piece may be taken in parts */
    mpiox_cursor cursor;
    mpiox_run run;  /* the present piece is the first block of it */
    int64_t taken;  /* bytes of that block */
    int64_t unseen; /* bytes behind the run */
} piece_cursor;

static void pieces_init(piece_cursor *p, const mpiox_typemap *typemap, int64_t origin, int64_t position, int64_t length)
{
    mpiox_cursor_init(&p->cursor, typemap, origin, position);
    p->run.count = 0;
    p->taken = 0;
    p->unseen = length;
}

/* Bytes left of the present piece, from *offset on. */
static int64_t pieces_peek(piece_cursor *p, int64_t *offset)
{
    if (p->run.count == 0)
        p->unseen -= mpiox_cursor_next(&p->cursor, p->unseen, &p->run);
    *offset = p->run.offset + p->taken;
    return p->run.length - p->taken;
}

static void pieces_take(piece_cursor *p, int64_t bytes)
{
    p->taken += bytes;
    if (p->taken < p->run.length)
        return;
    p->run.offset += p->run.stride;
    p->run.count--;
    p->taken = 0;
}

/* Is the memory better left where it is? Stripe-size I/O and the guard of sieved writes need transfer(). */
static bool is_vectored(const mpiox_independent_call *call)
{
    const mpiox_typemap *memory = call->request->memory;
    const mpiox_hints *hints = call->file->hints;
    return memory && !call->file->stripe_size_io && !(call->request->write && hints->ds_write == MPIOX_ON) &&
           mpiox_typemap_size(memory) / mpiox_typemap_pieces(memory) >= LARGE_MEMORY_BYTES;
}

/* A list of the pieces in which both file and memory are contiguous; neighbours in the file become one request. */
static int transfer_vectors(const mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                            mpiox_error *error)
{
    const mpiox_request *request = call->request;
    mpiox_storage_list list;
    piece_cursor file, memory;
    bool more = true;
    int64_t left = window->length;
    mpiox_storage_list_begin(&list, call->file->storage, request->write, error);
    pieces_init(&file, call->file->view, call->file->displacement, window->position, left);
    pieces_init(&memory, request->memory, 0, window->memory_position, left);
    while (left > 0 && more) {
        int64_t offset, address;
        const int64_t in_file = pieces_peek(&file, &offset), in_memory = pieces_peek(&memory, &address);
        const int64_t part = in_file < in_memory ? in_file : in_memory;
        pieces_take(&file, part);
        pieces_take(&memory, part);
        left -= part;
        more = mpiox_storage_list_add(&list, (char *)request->buffer + address, part, offset);
    }
    if (more)
        mpiox_storage_list_finish(&list);
    *moved += list.moved;
    return error->code;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

int mpiox_independent_contiguous(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                                 mpiox_error *error)
{
    const mpiox_request *request = call->request;
    if (!request->memory)
        return transfer(call, (char *)request->buffer + window->memory_position, window->offset, window->length, moved,
                        error);
    if (is_vectored(call))
        return transfer_vectors(call, window, moved, error);
    const int64_t room = window->length < STAGING_BYTES ? window->length : STAGING_BYTES;
    int code = need_staging(call, room, error);
    for (int64_t at = 0; code == MPIOX_OK && at < window->length; at += room) {
        const int64_t part = window->length - at < room ? window->length - at : room;
        const mpiox_memory_layout staged = {call->staging, NULL, 0, 0}, memory = memory_layout(call, window, at);
        int64_t done;
        if (request->write)
            mpiox_copy(&staged, &memory, part);
        code = transfer(call, call->staging, window->offset + at, part, &done, error);
        if (!request->write)
            mpiox_copy(&memory, &staged, done);
        *moved += done;
        if (done < part)
            break;
    }
    return code;
}

int mpiox_independent_list(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                           mpiox_error *error)
{
    const mpiox_request *request = call->request;
    if (!request->memory)
        return transfer_pieces(call, window, (char *)request->buffer + window->memory_position, moved, error);
    if (is_vectored(call))
        return transfer_vectors(call, window, moved, error);
    if (need_staging(call, window->length, error) != MPIOX_OK) /* at most a window */
        return error->code;
    const mpiox_memory_layout staged = {call->staging, NULL, 0, 0}, memory = memory_layout(call, window, 0);
    if (request->write)
        mpiox_copy(&staged, &memory, window->length);
    const int code = transfer_pieces(call, window, call->staging, moved, error);
    if (!request->write)
        mpiox_copy(&memory, &staged, *moved);
    return code;
}

/* ---- data sieving ------------------------------------------------------------------------------------------------ */

int mpiox_independent_sieve_read(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                                 mpiox_error *error)
{
    int64_t got = 0;
    if (need_staging(call, window->span, error) != MPIOX_OK)
        return error->code;
    const int code = transfer(call, call->staging, window->offset, window->span, &got, error);
    int64_t data = window->length;
    if (got < window->span && !mpiox_typemap_is_monotonic(call->file->view))
        data = mpiox_overlap_before(call->file->view, call->file->displacement, window->position, window->length,
                                    window->offset + got);
    else if (got < window->span)
        data = mpiox_typemap_position(call->file->view, window->offset + got - call->file->displacement) -
               window->position;
    data = data > 0 ? data : 0;
    const mpiox_memory_layout range = file_layout(call, window, call->staging), memory = memory_layout(call, window, 0);
    mpiox_copy(&memory, &range, data);
    *moved = data;
    return code;
}

/* Read-modify-write of the window's range. What lies beyond the end of the file is taken as zeros, as a hole in a file
 * is; the range ends with the window's last byte, so that the file does not grow beyond it. */
static int modify(mpiox_independent_call *call, const mpiox_independent_window *window, mpiox_error *error)
{
    mpiox_storage *storage = call->file->storage;
    int64_t got = 0;
    if (mpiox_storage_read(storage, call->staging, window->span, window->offset, &got, error) != MPIOX_OK)
        return error->code;
    memset(call->staging + got, 0, (size_t)(window->span - got));
    const mpiox_memory_layout range = file_layout(call, window, call->staging), memory = memory_layout(call, window, 0);
    mpiox_copy(&range, &memory, window->length);
    return mpiox_storage_write(storage, call->staging, window->span, window->offset, error);
}

int mpiox_independent_sieve_write(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                                  mpiox_error *error)
{
    if (need_staging(call, window->span, error) != MPIOX_OK)
        return error->code;
    const bool locks = !call->file->locked;
    if (locks && mpiox_independent_lock(call->file, true, window->offset, window->span, error) != MPIOX_OK)
        return error->code;
    const int code = modify(call, window, error);
    if (locks)
        mpiox_independent_unlock(call->file, window->offset, window->span);
    *moved = code == MPIOX_OK ? window->length : 0;
    return code;
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

/* The window's last byte goes out as a request, which extends the file as far as the mapping reaches. */
static int write_last_byte(mpiox_independent_call *call, const mpiox_independent_window *window, mpiox_error *error)
{
    char staged;
    int64_t moved;
    const mpiox_memory_layout target = {&staged, NULL, 0, 0}, byte = memory_layout(call, window, window->length - 1);
    mpiox_copy(&target, &byte, 1);
    return transfer(call, &staged, window->offset + window->span - 1, 1, &moved, error);
}

bool mpiox_independent_map_write(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                                 mpiox_error *error)
{
    mpiox_storage_mapping mapping;
    if (mpiox_independent_map(call->file, window->offset, window->span, &mapping) != MPIOX_OK) {
        if (write_last_byte(call, window, error) != MPIOX_OK)
            return true;
        if (mpiox_independent_map(call->file, window->offset, window->span, &mapping) != MPIOX_OK)
            return false;
    }
    const mpiox_memory_layout range = file_layout(call, window, mapping.data), memory = memory_layout(call, window, 0);
    mpiox_copy(&range, &memory, window->length);
    mpiox_storage_unmap(call->file->storage, &mapping, window->length);
    mpiox_count(&call->file->counters->mapped, 1);
    *moved = window->length;
    return true;
}
