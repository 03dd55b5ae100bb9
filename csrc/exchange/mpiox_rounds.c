/*
 * mpiox_rounds.c - two-phase rounds inside a node.
 *
 * Problem.   Move the pieces of every rank of the node to or from the windows of the node's aggregators, overlapping
 *            copies with file-system requests, on possibly fewer cores than ranks.
 * Algorithm. Every rank walks the same sequence of windows. Write: wait until the window's slot is free, copy own pieces
 *            in, arrive; whoever arrives last does the I/O at once, while the data is still in cache, and the others are
 *            already filling the aggregator's next buffer. Read: whoever comes first to a free slot claims it and loads
 *            it; a rank that would wait loads one of the next windows instead; all copy out and arrive; the last frees
 *            the slot. With mpiox_io_rank=owner only the aggregator itself does the I/O.
 * Guarantee. Slots pass through their phases (mpiox_board.h) in one order that every rank computes alike, so there is no
 *            cycle of waits; after an error the walk goes on without moving data.
 * Source.    Two-phase I/O over file domains: Liao and Choudhary, SC08. One copy per byte through shared memory: docs/architecture.md.
 */
#include <stdlib.h>

#include "mpiox_exchange_impl.h"

/* ---- geometry of a window ---------------------------------------------------------------------------------------- */

int64_t mpiox_rounds_extents(const mpiox_call *call, int aggregator, int64_t window, mpiox_extent *list) {
    const mpiox_exchange *x = call->x;
    const mpiox_summary *s = &call->summary;
    const int64_t room = x->extents_max - MPIOX_OCCUPIED_MAX;
    /* The plan's extents go to the end of the scratch list, the kept parts to its front: a window gains at most one
     * extent per occupied interval, so the two never meet. */
    mpiox_extent *planned = list + MPIOX_OCCUPIED_MAX;
    const int64_t n = mpiox_plan_window(x->plan, aggregator, x->window_bytes, window, planned, room);
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
            list[kept++] = (mpiox_extent) {from, to - from};
        }
    }
    return kept;
}

bool mpiox_rounds_overlap(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                          mpiox_extent extent, int64_t *from, int64_t *to) {
    int64_t p = mpiox_typemap_position(view, extent.offset - displacement);
    int64_t q = mpiox_typemap_position(view, extent.offset + extent.length - displacement);
    *from = p > position ? p : position;
    *to = q < position + length ? q : position + length;
    return *from < *to;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static bool may_do_io(const mpiox_call *call, int local) {
    const mpiox_exchange *x = call->x;
    return x->hints.io_rank == MPIOX_IO_ANY || x->aggregators[x->local[local]] == x->team->rank;
}

static bool claim(mpiox_slot *slot, uint32_t use) {
    return atomic_compare_exchange_strong(&slot->claimed, &use, use + 1);
}

void mpiox_rounds_arrive(mpiox_call *call, mpiox_slot *slot) {
    if (atomic_fetch_add(&slot->arrived, 1) + 1 < (uint32_t) call->participants)
        return;
    const uint32_t phase = mpiox_word_get(&slot->phase);
    atomic_store(&slot->arrived, 0);
    if (!call->write) { /* phase is odd: everybody has copied out */
        mpiox_word_set(&slot->phase, phase + 1);
    } else if (may_do_io(call, mpiox_slot_local(call->x, slot)) && claim(slot, phase / 2)) {
        mpiox_window_write(call, slot);
        mpiox_word_set(&slot->phase, phase + 2);
    } else {
        mpiox_word_set(&slot->phase, phase + 1); /* the owner will see it */
    }
}

/* Write, owner only: I/O of full windows of this rank's file domains. */
static bool write_full(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    bool worked = false;
    for (int local = 0; local < x->n_local; local++) {
        if (!may_do_io(call, local))
            continue;
        for (int b = 0; b < x->buffers; b++) {
            mpiox_slot *slot = mpiox_slot_of(x, local, (uint32_t) b);
            const uint32_t phase = mpiox_word_get(&slot->phase);
            if (phase % 2 == 0 || !claim(slot, phase / 2))
                continue;
            mpiox_window_write(call, slot);
            mpiox_word_set(&slot->phase, phase + 1);
            worked = true;
        }
    }
    return worked;
}

/* Read: load window `window` into its slot if the slot is free and nobody else has taken it on. */
static bool load(mpiox_call *call, mpiox_slot *slot, uint32_t sequence, int64_t window) {
    const uint32_t use = sequence / (uint32_t) call->x->buffers;
    if (mpiox_word_get(&slot->phase) != 2 * use || !may_do_io(call, mpiox_slot_local(call->x, slot)) ||
        !claim(slot, use))
        return false;
    atomic_store(&slot->window, window);
    mpiox_window_read(call, slot);
    mpiox_word_set(&slot->phase, 2 * use + 1);
    return true;
}

/* Read: load one of the windows that this rank will come to next, as far as there are free buffers. */
static bool load_ahead(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    for (int local = 0; local < x->n_local; local++) {
        if (!may_do_io(call, local))
            continue;
        uint32_t sequence = call->progress[local].begun;
        const uint32_t stop = sequence + (uint32_t) x->buffers;
        for (int64_t window = call->progress[local].next; window < call->rounds && sequence != stop; window++) {
            if (mpiox_rounds_extents(call, x->local[local], window, x->extents[1]) == 0)
                continue;
            if (load(call, mpiox_slot_of(x, local, sequence), sequence, window))
                return true;
            sequence++;
        }
    }
    return false;
}

bool mpiox_rounds_idle(void *context) {
    mpiox_call *call = context;
    if (call->write ? write_full(call) : load_ahead(call))
        return true;
    return mpiox_agree_poke(call->x);
}

void mpiox_rounds_await(mpiox_call *call, mpiox_slot *slot, uint32_t sequence, int64_t window) {
    const mpiox_idle idle = {mpiox_rounds_idle, call};
    const uint32_t use = sequence / (uint32_t) call->x->buffers, target = call->write ? 2 * use : 2 * use + 1;
    uint32_t phase = mpiox_word_get(&slot->phase);
    if (phase == target || (!call->write && load(call, slot, sequence, window)))
        return;
    const double begun = mpiox_now(), io_before = call->x->stats.io_s;
    while ((phase = mpiox_word_get(&slot->phase)) != target) {
        if (!call->write && load(call, slot, sequence, window))
            break;
        mpiox_wait_while(&slot->phase, phase, &idle);
    }
    call->x->stats.wait_s += mpiox_now() - begun - (call->x->stats.io_s - io_before);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Move this rank's pieces of one window between its memory and the collective buffer. */
static void move(mpiox_call *call, mpiox_slot *slot, const mpiox_extent *extents, int64_t n) {
    mpiox_exchange *x = call->x;
    const mpiox_request *request = call->request;
    char *buffer = mpiox_slot_buffer(x, slot);
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
            !mpiox_rounds_overlap(x->view, x->displacement, request->position, request->length, extent, &from, &to))
            continue;
        const mpiox_side file = {buffer + at, x->view, x->displacement - extent.offset, from};
        const mpiox_side memory = {request->buffer, request->memory, 0, from - request->position};
        if (call->write)
            mpiox_copy(&file, &memory, to - from);
        else
            mpiox_copy(&memory, &file, to - from);
        if (call->mark)
            mpiox_copy_mark(mpiox_slot_map(x, slot) + at / call->granule, 0, call->granule, &file, to - from);
    }
    x->stats.exchange_s += mpiox_now() - begun;
}

/* One window of one local aggregator. The leader arrives a second time, for the other nodes, in mpiox_messages.c. */
static void work_window(mpiox_call *call, int local) {
    mpiox_exchange *x = call->x;
    const int64_t n = mpiox_rounds_extents(call, x->local[local], call->round, x->extents[0]);
    call->progress[local].next = call->round + 1;
    if (n == 0)
        return;
    const uint32_t sequence = call->progress[local].begun++;
    mpiox_slot *slot = mpiox_slot_of(x, local, sequence);
    mpiox_rounds_await(call, slot, sequence, call->round);
    if (call->first < call->last && !mpiox_agree_failed(x))
        move(call, slot, x->extents[0], n);
    if (call->write)
        atomic_store(&slot->window, call->round);
    if (!mpiox_messages_hold(call))
        mpiox_rounds_arrive(call, slot);
}

static void walk(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    /* Ranks start at different aggregators, so that they do not all wait for the same slot. */
    const int turn = x->n_local ? x->team->node_rank % x->n_local : 0;
    for (call->round = 0; call->round < call->rounds; call->round++) {
        for (int i = 0; i < x->n_local; i++)
            work_window(call, (i + turn) % x->n_local);
        if (x->messages)
            mpiox_messages_round(call);
    }
}

void mpiox_rounds_write(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    const mpiox_idle idle = {mpiox_rounds_idle, call};
    walk(call);
    if (x->hints.io_rank == MPIOX_IO_ANY)
        return;
    for (int local = 0; local < x->n_local; local++) /* the owner leaves when its windows are written */
        for (uint32_t b = 0; may_do_io(call, local) && b < (uint32_t) x->buffers; b++) {
            const uint32_t uses = (call->progress[local].begun + (uint32_t) x->buffers - 1 - b) / (uint32_t) x->buffers;
            mpiox_wait_reach(&mpiox_slot_of(x, local, b)->phase, 2 * uses, &idle);
        }
}

void mpiox_rounds_read(mpiox_call *call) { walk(call); }
