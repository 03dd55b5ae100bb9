/*
 * mpiox_rounds.c - the rounds of a two-phase collective.
 *
 * Problem.   Move the pieces of every rank to or from the windows of all aggregators, overlapping copies with
 *            file-system requests, on possibly fewer cores than ranks.
 * Algorithm. A round works on one window of every aggregator; rounds without data are left out. A rank copies its
 *            pieces to or from the windows of its node's aggregators (buffers/mpiox_slots.c decides when, and which
 *            rank does the I/O); the transport moves data for windows of other nodes.
 * Source.    Two-phase I/O over file domains: Liao and Choudhary, SC08. One copy per byte through shared memory:
 *            docs/explanation/architecture.md.
 */
#include "mpiox_collective_impl.h"
#include "mpiox_event.h"

/* One window of one local aggregator. */
static void work_window(mpiox_call *call, int local)
{
    mpiox_buffers *b = call->b;
    const int64_t n = mpiox_window_extents(call, b->local[local], call->round, b->extents[0]);
    call->progress[local].next = call->round + 1;
    if (n == 0)
        return;
    const uint32_t sequence = call->progress[local].begun++;
    mpiox_buffer_slot *slot = mpiox_slot_of(b, local, sequence);
    mpiox_slot_await(call, slot, sequence, call->round);
    if (call->first < call->last && !mpiox_buffers_failed(b))
        mpiox_window_copy(call, slot, b->extents[0], n);
    if (call->write)
        atomic_store(&slot->window, call->round);
    if (local != call->held)
        mpiox_slot_arrive(call, slot);
}

static void run_round(mpiox_transport *transport, mpiox_call *call, int first)
{
    const mpiox_buffers *b = call->b;

    for (int i = 0; i < b->n_local; i++)
        work_window(call, (i + first) % b->n_local);
    (call->write ? transport->ops->deliver : transport->ops->fetch)(transport, call);
}

/* What rounds have left to do. */
static void finish(mpiox_transport *transport, mpiox_call *call)
{
    transport->ops->finish(transport, call);
    if (call->write)
        mpiox_slots_finish(call);
}

void mpiox_rounds_run(mpiox_transport *transport, mpiox_call *call)
{
    const mpiox_buffers *b = call->b;
    /* Ranks start at different aggregators, so that they do not all wait for the same slot. */
    const int first = b->n_local ? b->file->topology->node_rank % b->n_local : 0;
    int64_t next = mpiox_window_next_round(call, 0);

    if (next >= call->rounds)
        finish(transport, call);
    for (call->exchange_round = 0; next < call->rounds; call->exchange_round++) {
        const int64_t event = mpiox_event_begin();
        call->round = next;
        run_round(transport, call, first);
        next = mpiox_window_next_round(call, next + 1);
        if (next >= call->rounds)
            finish(transport, call);
        if (event != 0)
            mpiox_event_end(call->write ? "write_round" : "read_round", b->file->path, -1, -1, event,
                            "\"round\":%lld,\"rounds\":%lld,\"aggregators\":%d", (long long)call->round,
                            (long long)call->rounds, b->n_local);
    }
}
