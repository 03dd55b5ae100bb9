/*
 * mpiox_direct.c - no exchange: every rank moves its own pieces.
 *
 * Walks the strided runs of the view. A piece whose memory is contiguous goes straight from or to the user's buffer;
 * otherwise it passes through a staging buffer. Neighbouring pieces are one request (the description has merged them).
 * An error ends this rank's part; it is agreed at the end of the collective like any other.
 */
#include <stdlib.h>

#include "mpiox_exchange_impl.h"

enum { STAGING_BYTES = 1024 * 1024 };

typedef struct mover {
    mpiox_call *call;
    char *staging; /* NULL while not needed */
    int64_t memory_position;
} mover;

/* The largest part of the request: everything, a stripe's rest, or what staging holds. */
static int64_t part_bytes(const mover *m, int64_t offset, int64_t length) {
    const mpiox_exchange *x = m->call->x;
    if (m->call->request->memory && length > STAGING_BYTES)
        length = STAGING_BYTES;
    if (x->hints.stripe_size_io) {
        const int64_t stripe = x->layout.stripe_size, left = stripe - offset % stripe;
        length = left < length ? left : length;
    }
    return length;
}

/* One file piece; *done grows by what was moved. Returns false at an error or at the end of the file. */
static bool move_piece(mover *m, int64_t offset, int64_t length, int64_t *done) {
    mpiox_exchange *x = m->call->x;
    const mpiox_request *request = m->call->request;
    while (length > 0) {
        const int64_t part = part_bytes(m, offset, length);
        mpiox_error error = {.code = MPIOX_OK};
        char *buffer = request->memory ? m->staging : (char *) request->buffer + m->memory_position;
        const mpiox_side staged = {m->staging, NULL, 0, 0};
        const mpiox_side memory = {request->buffer, request->memory, 0, m->memory_position};
        int64_t moved = part;
        if (request->memory && request->write)
            mpiox_copy(&staged, &memory, part);
        const double begun = mpiox_now();
        if (request->write)
            mpiox_storage_write(x->storage, buffer, part, offset, &error);
        else
            mpiox_storage_read(x->storage, buffer, part, offset, &moved, &error);
        x->stats.io_s += mpiox_now() - begun;
        if (error.code != MPIOX_OK) {
            mpiox_agree_fail(x, &error);
            return false;
        }
        if (request->memory && !request->write)
            mpiox_copy(&memory, &staged, moved);
        *done += moved;
        m->memory_position += moved;
        if (moved < part)
            return false;
        offset += part;
        length -= part;
    }
    return true;
}

void mpiox_direct_run(mpiox_call *call, int64_t *done) {
    mpiox_exchange *x = call->x;
    const mpiox_request *request = call->request;
    mover m = {call, NULL, 0};
    int64_t left = request->length;
    mpiox_cursor cursor;
    *done = 0;
    if (left == 0)
        return;
    if (request->memory && !(m.staging = malloc(STAGING_BYTES))) {
        mpiox_error error = {.code = MPIOX_OK};
        mpiox_error_set(&error, MPIOX_E_NOMEM, 0, -1, STAGING_BYTES, "allocating a staging buffer");
        mpiox_agree_fail(x, &error);
        return;
    }
    bool more = true;
    mpiox_cursor_init(&cursor, x->view, x->displacement, request->position);
    while (more && left > 0) {
        mpiox_run run;
        left -= mpiox_cursor_next(&cursor, left, &run);
        for (int64_t i = 0; i < run.count && more; i++)
            more = move_piece(&m, run.offset + i * run.stride, run.length, done);
    }
    free(m.staging);
}
