/*
 * mpiox_messages_read.c - a round that reads: gather from loaded windows, send, receive, unpack. See
 * mpiox_transport_messages.c.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_copy.h"
#include "mpiox_messages.h"

static bool append(mpiox_messages *m, int node, int64_t *used, const mpiox_entry *head, const mpiox_side *file)
{
    const int64_t need = *used + (int64_t)sizeof *head + mpiox_entry_padded(head->length);
    if (need > m->room[node]) {
        const int64_t room = need + need / 2 + 4096;
        char *larger = realloc(m->outgoing[node], (size_t)room);
        if (!larger)
            return false;
        m->outgoing[node] = larger;
        m->room[node] = room;
    }
    memcpy(m->outgoing[node] + *used, head, sizeof *head);
    const mpiox_side target = {m->outgoing[node] + *used + sizeof *head, NULL, 0, 0};
    mpiox_copy(&target, file, head->length);
    *used = need;
    return true;
}

/* Append what one rank of another node wants of one loaded window. */
static bool gather_rank(mpiox_messages *m, int rank, int local, mpiox_slot *slot, int64_t n, int64_t *used)
{
    mpiox_buffers *b = m->base.b;
    const mpiox_rank_access *want = &m->ranks[rank];
    const int64_t eof = atomic_load(&slot->eof);
    if (want->length > 0 && !m->views[rank]) /* it has a view, which has not come here */
        return false;
    for (int64_t i = 0, at = 0; i < n && want->length > 0; at += b->extents[0][i++].length) {
        mpiox_extent extent = b->extents[0][i];
        int64_t from, to;
        if (extent.offset >= eof)
            break;
        if (extent.offset + extent.length > eof)
            extent.length = eof - extent.offset;
        if (!mpiox_window_overlap(m->views[rank], want->displacement, want->position, want->length, extent, &from, &to))
            continue;
        const mpiox_entry head = {rank, b->local[local], from, to - from};
        const mpiox_side file = {mpiox_slot_buffer(b, slot) + at, m->views[rank], want->displacement - extent.offset,
                                 from};
        if (!append(m, b->file->topology->node_of[rank], used, &head, &file))
            return false;
    }
    return true;
}

static void gather_node(mpiox_messages *m, mpiox_call *call, int node)
{
    mpiox_buffers *b = m->base.b;
    const mpiox_topology *topology = b->file->topology;
    int64_t used = 0;
    bool good = true;
    for (int local = 0; local < b->n_local && good; local++) {
        mpiox_slot *slot = mpiox_messages_slot(call, local); /* leaves the window's extents in extents[0] */
        if (!slot)
            continue;
        const int64_t n = mpiox_window_extents(call, b->local[local], call->round, b->extents[0]);
        for (int i = topology->node_start[node]; i < topology->node_start[node + 1] && good; i++)
            good = gather_rank(m, topology->node_ranks[i], local, slot, n, &used);
    }
    if (!good)
        mpiox_messages_fail(m, MPIOX_E_NOMEM, used, "gathering data for another node");
    mpiox_messages_send(m, call, node, m->outgoing[node], used, good);
}

static void leader_read(mpiox_messages *m, mpiox_call *call)
{
    mpiox_buffers *b = m->base.b;
    mpiox_area_state *state = mpiox_messages_state(m);
    const mpiox_topology *topology = b->file->topology;
    const int parity = (int)(call->turn & 1);
    const uint32_t turn = (uint32_t)(call->turn / 2);
    const mpiox_idle idle = {mpiox_slots_idle, call};
    for (int node = 0; node < topology->n_nodes; node++) {
        m->requests[node] = MPI_REQUEST_NULL;
        if (node != topology->node && mpiox_messages_meet(m, topology->node, node))
            gather_node(m, call, node);
    }
    for (int local = 0; local < b->n_local; local++) {
        mpiox_slot *slot = mpiox_messages_slot(call, local);
        if (slot)
            mpiox_slot_arrive(call, slot);
    }
    /* The areas of this parity are free when all ranks have copied out of them two rounds ago. */
    mpiox_wait_reach(&state->packed[parity], turn * (uint32_t)topology->node_size, &idle);
    for (int node = 0; node < topology->n_nodes; node++) {
        char *bytes;
        mpiox_area *area = mpiox_messages_area(m, call->turn, node, &bytes);
        atomic_store(&area->used, 0);
        if (node != topology->node && mpiox_messages_meet(m, node, topology->node))
            atomic_store(&area->used, mpiox_messages_receive(m, call, node, bytes));
    }
    mpiox_word_set(&state->shipped[parity], turn + 1);
    mpiox_messages_finish_sending(m, call);
}

/* Copy this rank's entries out of the areas of the round. */
static void unpack(mpiox_messages *m, mpiox_call *call)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    const mpiox_request *request = call->request;
    for (int node = 0; node < topology->n_nodes; node++) {
        char *bytes;
        const int64_t used = atomic_load(&mpiox_messages_area(m, call->turn, node, &bytes)->used);
        for (int64_t at = 0; at + (int64_t)sizeof(mpiox_entry) <= used;) {
            mpiox_entry head;
            memcpy(&head, bytes + at, sizeof head);
            if (head.rank == topology->rank) {
                const mpiox_side source = {bytes + at + sizeof head, NULL, 0, 0};
                const mpiox_side memory = {request->buffer, request->memory, 0, head.position - request->position};
                mpiox_copy(&memory, &source, head.length);
            }
            at += (int64_t)sizeof head + mpiox_entry_padded(head.length);
        }
    }
}

void mpiox_messages_fetch(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    mpiox_area_state *state = mpiox_messages_state(m);
    const mpiox_idle idle = {mpiox_slots_idle, call};
    const int parity = (int)(call->turn & 1);
    const double begun = mpiox_now();
    if (call->hold) { /* the leader */
        mpiox_messages_span_windows(m, call);
        leader_read(m, call);
    }
    mpiox_wait_reach(&state->shipped[parity], (uint32_t)(call->turn / 2) + 1, &idle);
    if (!mpiox_buffers_failed(m->base.b))
        unpack(m, call);
    mpiox_word_add(&state->packed[parity]);
    m->base.b->file->stats.exchange_s += mpiox_now() - begun;
}
