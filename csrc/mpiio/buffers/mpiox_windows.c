/*
 * mpiox_windows.c - what of the file a window holds, and copying to and from it.
 *
 * The plan says which extents of an aggregator's file domain belong to a window; those parts that no rank accesses are
 * left out, so that they take no room in the collective buffer and are neither read nor written. Every rank computes
 * the same.
 */
#include "mpiox_buffers.h"
#include "mpiox_copy.h"
#include "mpiox_wait.h"

int64_t mpiox_window_extents(const mpiox_call *call, int aggregator, int64_t window, mpiox_extent *list)
{
    const mpiox_buffers *b = call->b;
    const mpiox_reduction *s = &call->reduction;
    const int64_t room = b->extents_max - MPIOX_OCCUPIED_MAX;
    /* The plan's extents go to the end of the scratch list, the kept parts to its front: a window gains at most one
     * extent per occupied interval, so the two never meet. */
    mpiox_extent *planned = list + MPIOX_OCCUPIED_MAX;
    const int64_t n = mpiox_plan_window(b->plan, aggregator, b->window_bytes, window, planned, room);
    int64_t kept = 0;
    int32_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        const mpiox_extent extent = planned[i];
        const int64_t end = extent.offset + extent.length;
        while (k < s->n_occupied && s->occupied[k].last <= extent.offset)
            k++;
        for (int32_t j = k; j < s->n_occupied && s->occupied[j].first < end; j++) {
            const int64_t from = s->occupied[j].first > extent.offset ? s->occupied[j].first : extent.offset;
            const int64_t to = s->occupied[j].last < end ? s->occupied[j].last : end;
            list[kept++] = (mpiox_extent){from, to - from};
        }
    }
    return kept;
}

int64_t mpiox_window_next_round(const mpiox_call *call, int64_t round)
{
    int64_t low = 0, high = call->n_used;
    if (call->n_used == 0)
        return round;
    while (low < high) { /* the first span that ends behind `round` */
        const int64_t middle = low + (high - low) / 2;
        if (call->used[middle].last <= round)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == call->n_used)
        return call->rounds;
    return call->used[low].first > round ? call->used[low].first : round;
}

bool mpiox_window_overlap(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                          mpiox_extent extent, int64_t *from, int64_t *to)
{
    int64_t p = mpiox_typemap_position(view, extent.offset - displacement);
    int64_t q = mpiox_typemap_position(view, extent.offset + extent.length - displacement);
    *from = p > position ? p : position;
    *to = q < position + length ? q : position + length;
    return *from < *to;
}

void mpiox_window_copy(mpiox_call *call, mpiox_buffer_slot *slot, const mpiox_extent *extents, int64_t n)
{
    mpiox_buffers *b = call->b;
    const mpiox_request *request = call->request;
    char *buffer = mpiox_slot_buffer(b, slot);
    const int64_t eof = call->write ? INT64_MAX : atomic_load(&slot->eof);
    const double begun = mpiox_now();
    for (int64_t i = 0, at = 0; i < n; at += extents[i++].length) {
        mpiox_extent extent = extents[i];
        int64_t from, to;
        if (extent.offset >= eof)
            break;
        if (extent.offset + extent.length > eof)
            extent.length = eof - extent.offset;
        if (extent.offset >= call->last || extent.offset + extent.length <= call->first ||
            !mpiox_window_overlap(b->file->view, b->file->displacement, request->position, request->length, extent,
                                  &from, &to))
            continue;
        const mpiox_memory_layout file = {buffer + at, b->file->view, b->file->displacement - extent.offset, from};
        const mpiox_memory_layout memory = {request->buffer, request->memory, 0, from - request->position};
        if (call->write)
            mpiox_copy(&file, &memory, to - from);
        else
            mpiox_copy(&memory, &file, to - from);
        if (call->mark)
            mpiox_copy_mark(mpiox_slot_map(b, slot) + at / call->granule, 0, call->granule, &file, to - from);
    }
    b->file->stats.exchange_s += mpiox_now() - begun;
}
