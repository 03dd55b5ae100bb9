/*
 * mpiox_slots.c - the states of the collective buffers: the window in each, and the rank that does its I/O.
 *
 * Algorithm. Every rank passes through the same sequence of windows. Write: a rank waits until the window's slot is
 *            free, copies its pieces in and arrives. A rank that would wait, or has no window left to fill, writes a
 *            full window instead. The last rank to arrive does not write the window at once: meanwhile it would not
 *            arrive at the next windows, no rank could write these windows, and a node would have one request at a
 *            time. Read: the first rank that arrives at a free slot claims the slot and loads the window. A rank that
 *            would wait loads one of the next windows instead. All ranks copy out and arrive; the last one frees the
 *            slot. With mpiox_io_rank=owner only the aggregator itself does the I/O.
 * Guarantee. Slots pass through their phases (mpiox_collective_memory.h) in one order that every rank computes alike,
 *            so there is no cycle of waits; after an error the sequence continues without moving data.
 */
#include "mpiox_buffers.h"
#include "mpiox_parts.h"
#include "mpiox_wait.h"

static bool may_do_io(const mpiox_call *call, int local)
{
    const mpiox_buffers *b = call->b;
    return b->file->hints.io_rank == MPIOX_IO_ANY || b->aggregators[b->local[local]] == b->file->topology->rank;
}

static bool claim(mpiox_buffer_slot *slot, uint32_t use)
{
    return atomic_compare_exchange_strong(&slot->claimed, &use, use + 1);
}

void mpiox_slot_arrive(mpiox_call *call, mpiox_buffer_slot *slot)
{
    if (atomic_fetch_add(&slot->arrived, 1) + 1 < (uint32_t)call->participants)
        return;
    const uint32_t phase = mpiox_futex_get(&slot->phase);
    atomic_store(&slot->arrived, 0);
    mpiox_futex_set(&slot->phase, phase + 1); /* full, or if phase is odd: everybody has copied out */
}

/* Write: I/O of full windows. */
static bool write_full(mpiox_call *call)
{
    mpiox_buffers *b = call->b;
    bool worked = false;
    for (int local = 0; local < b->n_local; local++) {
        if (!may_do_io(call, local))
            continue;
        for (int i = 0; i < b->per_aggregator; i++) {
            mpiox_buffer_slot *slot = mpiox_slot_of(b, local, (uint32_t)i);
            const uint32_t phase = mpiox_futex_get(&slot->phase);
            if (phase % 2 == 0 || !claim(slot, phase / 2))
                continue;
            mpiox_window_write(call, slot);
            mpiox_futex_set(&slot->phase, phase + 1);
            worked = true;
        }
    }
    return worked;
}

/* Read: load window `window` into its slot if the slot is free by its phase, and no other rank has claimed it. */
static bool load(mpiox_call *call, mpiox_buffer_slot *slot, uint32_t phase, uint32_t sequence, int64_t window)
{
    const uint32_t use = sequence / (uint32_t)call->b->per_aggregator;
    if (phase != 2 * use || !may_do_io(call, mpiox_slot_local(call->b, slot)) || !claim(slot, use))
        return false;
    atomic_store(&slot->window, window);
    mpiox_window_read(call, slot);
    mpiox_futex_set(&slot->phase, 2 * use + 1);
    return true;
}

/* Read: load one of the windows that this rank will come to next, as far as there are free buffers. */
static bool load_ahead(mpiox_call *call)
{
    mpiox_buffers *b = call->b;
    for (int local = 0; local < b->n_local; local++) {
        if (!may_do_io(call, local))
            continue;
        uint32_t sequence = call->progress[local].begun;
        const uint32_t stop = sequence + (uint32_t)b->per_aggregator;
        for (int64_t window = mpiox_window_next_round(call, call->progress[local].next);
             window < call->rounds && sequence != stop; window = mpiox_window_next_round(call, window + 1)) {
            if (mpiox_window_extents(call, b->local[local], window, b->extents[1]) == 0)
                continue;
            mpiox_buffer_slot *slot = mpiox_slot_of(b, local, sequence);
            if (load(call, slot, mpiox_futex_get(&slot->phase), sequence, window))
                return true;
            sequence++;
        }
    }
    return false;
}

bool mpiox_slots_idle(void *context)
{
    mpiox_call *call = context;
    if (call->write ? write_full(call) : load_ahead(call))
        return true;
    return mpiox_topology_progress(call->b->file->topology);
}

/* Wait until the slot has left this phase, and do I/O meanwhile. */
static uint32_t leave(mpiox_call *call, mpiox_buffer_slot *slot, uint32_t phase, const char *what, int64_t window)
{
    const mpiox_idle idle = {mpiox_slots_idle, call};
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_WAITING);
    mpiox_wait_for(what, window);
    const uint32_t next = mpiox_wait_while(&slot->phase, phase, &idle);
    mpiox_wait_for(NULL, -1);
    mpiox_parts_on(before);
    return next;
}

void mpiox_slot_await(mpiox_call *call, mpiox_buffer_slot *slot, uint32_t sequence, int64_t window)
{
    const uint32_t use = sequence / (uint32_t)call->b->per_aggregator, target = call->write ? 2 * use : 2 * use + 1;
    uint32_t phase = mpiox_futex_get(&slot->phase);
    while (phase != target && (call->write || !load(call, slot, phase, sequence, window)))
        phase = leave(call, slot, phase, "other ranks to fill, write or read window", window);
}

/* A rank leaves when the windows that it may write are written. */
void mpiox_slots_finish(mpiox_call *call)
{
    mpiox_buffers *b = call->b;
    const uint32_t each = (uint32_t)b->per_aggregator;
    while (write_full(call))
        continue;
    for (int local = 0; local < b->n_local; local++)
        for (uint32_t i = 0; may_do_io(call, local) && i < each; i++) {
            mpiox_buffer_slot *slot = mpiox_slot_of(b, local, i);
            const uint32_t end = 2 * ((call->progress[local].begun + each - 1 - i) / each);
            uint32_t phase = mpiox_futex_get(&slot->phase);
            while (phase != end)
                phase = leave(call, slot, phase, "other ranks to fill and write the last windows", -1);
        }
}
