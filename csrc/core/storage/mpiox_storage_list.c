/*
 * mpiox_storage_list.c - many pieces of a file in one call.
 *
 * Problem.    A window with holes, or a noncontiguous independent access, is a list of (memory, file) pieces. One
 *             request each costs a system call each; and a back end with several requests in flight needs all of them
 *             together.
 * Algorithm.  The list is taken in batches of bounded size (on the stack, so that lists of any length need no memory).
 *             In a batch, pieces that follow each other in list and file become one vector call. A back end with `many`
 *             carries the calls out in any order. Then they are settled in the order of the list: blocking calls finish
 *             those that came back short or were not started, and the first call that failed ends the transfer. Without
 *             `many` the same settling does all the work, one call after another.
 * Guarantees. Because of the order of settling the error is that of the first piece in the list that did not arrive,
 *             with every back end. When it is reported no request is in flight, because `many` returns only then. No
 *             bytes are written but those of the pieces: there is no read-modify-write.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "mpiox_storage_internal.h"

enum { BATCH_CALLS = 256, BATCH_VECTORS = MPIOX_STORAGE_CALL_VECTORS };

typedef struct batch {
    mpiox_storage_call calls[BATCH_CALLS];
    struct iovec iov[BATCH_VECTORS];
    int64_t bytes[BATCH_CALLS]; /* of each call */
    int count, vectors;
} batch;

/* The first illegal piece, or `count`. */
static int64_t first_bad(const mpiox_storage_piece *pieces, int64_t count)
{
    int64_t i = 0;
    while (i < count && pieces[i].length >= 0 && pieces[i].offset >= 0 &&
           pieces[i].length <= INT64_MAX - pieces[i].offset)
        i++;
    return i;
}

/* Put a piece behind the last call when it continues it. */
static bool append_to_last(batch *b, const mpiox_storage_piece *piece)
{
    if (b->count == 0)
        return false;
    mpiox_storage_call *call = &b->calls[b->count - 1];
    int64_t *bytes = &b->bytes[b->count - 1];
    if (call->offset + *bytes != piece->offset || piece->length > MPIOX_STORAGE_CALL_BYTES - *bytes)
        return false;
    struct iovec *last = &b->iov[b->vectors - 1];
    if ((char *)last->iov_base + last->iov_len == piece->base)
        last->iov_len += (size_t)piece->length;
    else {
        b->iov[b->vectors++] = (struct iovec){.iov_base = piece->base, .iov_len = (size_t)piece->length};
        call->iov_count++;
    }
    *bytes += piece->length;
    return true;
}

/* Take pieces from `from` on until the batch is full; returns the first one that is left. Empty pieces, and pieces of a
 * read that lie wholly behind a known end of the file, need no call. */
static int64_t fill(batch *b, bool merge, const mpiox_storage_piece *pieces, int64_t count, int64_t from, int64_t end)
{
    b->count = b->vectors = 0;
    for (; from < count && b->vectors < BATCH_VECTORS; from++) {
        const mpiox_storage_piece *piece = &pieces[from];
        if (piece->length == 0 || piece->offset >= end || (merge && append_to_last(b, piece)))
            continue;
        if (b->count == BATCH_CALLS)
            break;
        b->iov[b->vectors] = (struct iovec){.iov_base = piece->base, .iov_len = (size_t)piece->length};
        b->calls[b->count] = (mpiox_storage_call){.iov = &b->iov[b->vectors++],
                                                  .iov_count = 1,
                                                  .fd = -1,
                                                  .offset = piece->offset,
                                                  .moved = MPIOX_STORAGE_NOT_STARTED};
        b->bytes[b->count++] = piece->length;
    }
    return from;
}

/* Bring one call to its end. *done = bytes that it moved in all. */
static int settle(mpiox_storage *storage, bool write, const mpiox_storage_call *call, int64_t bytes, int64_t *done,
                  mpiox_error *error)
{
    int64_t moved = call->moved;
    if (moved == MPIOX_STORAGE_NOT_STARTED || moved == -EINTR)
        return mpiox_storage_finish(storage, write, call, 0, done, error);
    if (moved == 0 && write)
        moved = -ENOSPC;
    mpiox_storage_count(storage, write, moved > 0 ? moved : 0);
    *done = moved > 0 ? moved : 0;
    if (moved < 0)
        return mpiox_storage_failed(storage, write, (int)-moved, call->offset, bytes, error);
    if (moved == 0 || moved == bytes)
        return MPIOX_OK;
    return mpiox_storage_finish(storage, write, call, moved, done, error);
}

/* The error of a call speaks of all that is left of it, which may be several pieces: cut it to the first of them. */
static void name_piece(const mpiox_storage_piece *pieces, int64_t from, int64_t to, mpiox_error *error)
{
    for (int64_t i = from; error != NULL && i < to; i++) {
        int64_t into = error->offset - pieces[i].offset;
        if (into >= 0 && into < pieces[i].length) {
            error->length = pieces[i].length - into;
            return;
        }
    }
}

/* Of legal pieces. */
static int move_pieces(mpiox_storage *storage, bool write, const mpiox_storage_piece *pieces, int64_t count,
                       int64_t *end, mpiox_error *error)
{
    batch b;
    int64_t done;
    for (int64_t from = 0, next; from < count; from = next) {
        next = fill(&b, !storage->backend->separate, pieces, count, from, *end);
        if (storage->backend->many != NULL && b.count > 1)
            storage->backend->many(storage, write, b.calls, b.count);
        for (int i = 0; i < b.count; i++) {
            int code = settle(storage, write, &b.calls[i], b.bytes[i], &done, error);
            if (code != MPIOX_OK) {
                name_piece(pieces, from, next, error);
                return code;
            }
            if (done < b.bytes[i] && b.calls[i].offset + done < *end)
                *end = b.calls[i].offset + done;
        }
    }
    return MPIOX_OK;
}

static int list_transfer(mpiox_storage *storage, bool write, const mpiox_storage_piece *pieces, int64_t count,
                         int64_t *end, mpiox_error *error)
{
    const int64_t bad = first_bad(pieces, count);
    *end = INT64_MAX;
    if (count < 0 || bad < count)
        return mpiox_error_set(error, MPIOX_E_ARG, EINVAL, count < 0 ? -1 : pieces[bad].offset,
                               count < 0 ? -1 : pieces[bad].length, write ? "write" : "read");
    if (count == 0)
        return MPIOX_OK;
    if (mpiox_storage_pin(storage, error) != MPIOX_OK)
        return mpiox_error_set(error, MPIOX_E_IO, error ? error->sys_errno : 0, pieces[0].offset, pieces[0].length,
                               write ? "write" : "read");
    const int code = move_pieces(storage, write, pieces, count, end, error);
    mpiox_storage_unpin(storage);
    return code;
}

int mpiox_storage_write_list(mpiox_storage *storage, const mpiox_storage_piece *pieces, int64_t count,
                             mpiox_error *error)
{
    int64_t end;
    return list_transfer(storage, true, pieces, count, &end, error);
}

int mpiox_storage_read_list(mpiox_storage *storage, const mpiox_storage_piece *pieces, int64_t count, int64_t *end,
                            mpiox_error *error)
{
    return list_transfer(storage, false, pieces, count, end, error);
}

/* ---- lists that are collected piece by piece --------------------------------------------------------------------- */

void mpiox_storage_list_begin(mpiox_storage_list *list, mpiox_storage *storage, bool write, mpiox_error *error)
{
    assert(error->code == MPIOX_OK);
    list->storage = storage;
    list->error = error;
    list->write = write;
    list->moved = list->count = 0;
}

/* Bytes of the collected pieces, in list order, that lie before the error or before the end of the file. */
static int64_t arrived_bytes(const mpiox_storage_list *list, int64_t end)
{
    const mpiox_error *error = list->error;
    int64_t bytes = 0;
    if (error->code != MPIOX_OK && error->offset < 0) /* nothing was moved */
        return 0;
    for (int64_t i = 0; i < list->count; i++) {
        const mpiox_storage_piece *piece = &list->pieces[i];
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

bool mpiox_storage_list_finish(mpiox_storage_list *list)
{
    int64_t end = INT64_MAX, expected = 0;
    for (int64_t i = 0; i < list->count; i++)
        expected += list->pieces[i].length;
    if (list->write)
        mpiox_storage_write_list(list->storage, list->pieces, list->count, list->error);
    else
        mpiox_storage_read_list(list->storage, list->pieces, list->count, &end, list->error);
    const int64_t arrived = arrived_bytes(list, end);
    list->moved += arrived;
    list->count = 0;
    return list->error->code == MPIOX_OK && arrived == expected;
}

bool mpiox_storage_list_add(mpiox_storage_list *list, void *base, int64_t length, int64_t offset)
{
    assert(list->count < MPIOX_STORAGE_LIST_PIECES && list->error->code == MPIOX_OK);
    list->pieces[list->count++] = (mpiox_storage_piece){base, length, offset};
    return list->count < MPIOX_STORAGE_LIST_PIECES || mpiox_storage_list_finish(list);
}
