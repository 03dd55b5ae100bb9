/*
 * mpiox_messages_write.c - a round that writes: pack, send, receive, place. See mpiox_transport_messages.c.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_copy.h"
#include "mpiox_messages.h"

static void pack_extent(mpiox_messages *m, mpiox_call *call, int aggregator, mpiox_extent extent, mpiox_area *area,
                        char *bytes)
{
    mpiox_buffers *b = m->base.b;
    const mpiox_request *request = call->request;
    int64_t from, to;
    if (extent.offset >= call->last || extent.offset + extent.length <= call->first ||
        !mpiox_window_overlap(b->file->view, b->file->displacement, request->position, request->length, extent, &from,
                              &to))
        return;
    const int64_t room = (int64_t)sizeof(mpiox_entry) + mpiox_entry_padded(to - from),
                  at = atomic_fetch_add(&area->used, room);
    if (at + room > m->area_bytes) { /* cannot happen: areas are sized for the worst case */
        mpiox_messages_fail(m, MPIOX_E_FULL, room, "packing for another node");
        return;
    }
    const mpiox_entry head = {b->file->topology->rank, aggregator, from, to - from};
    memcpy(bytes + at, &head, sizeof head);
    const mpiox_side target = {bytes + at + sizeof head, NULL, 0, 0};
    const mpiox_side source = {request->buffer, request->memory, 0, from - request->position};
    mpiox_copy(&target, &source, to - from);
}

static void pack(mpiox_messages *m, mpiox_call *call)
{
    mpiox_buffers *b = m->base.b;
    const mpiox_topology *topology = b->file->topology;
    for (int a = 0; a < b->n_aggregators && call->first < call->last; a++) {
        const int node = topology->node_of[b->aggregators[a]];
        if (node == topology->node)
            continue;
        char *bytes;
        mpiox_area *area = mpiox_messages_area(m, call->turn, node, &bytes);
        const int64_t n = mpiox_window_extents(call, a, call->round, b->extents[0]);
        for (int64_t i = 0; i < n; i++)
            pack_extent(m, call, a, b->extents[0][i], area, bytes);
    }
}

static int local_index(const mpiox_buffers *b, int aggregator)
{
    for (int i = 0; i < b->n_local; i++)
        if (b->local[i] == aggregator)
            return i;
    return -1;
}

/* The window that entries are being placed into; its extents are in b->extents[0]. */
typedef struct placement {
    int aggregator; /* -1: none yet */
    mpiox_slot *slot;
    int64_t n;
} placement;

static bool begin_placement(mpiox_messages *m, mpiox_call *call, placement *to, int aggregator)
{
    mpiox_buffers *b = m->base.b;
    const int local = local_index(b, aggregator);
    to->aggregator = aggregator;
    to->slot = local < 0 ? NULL : mpiox_messages_slot(call, local);
    if (!to->slot)
        return false;
    to->n = mpiox_window_extents(call, aggregator, call->round, b->extents[0]);
    if (to->n > m->offsets_max) {
        int64_t *larger = realloc(m->buffer_offsets, sizeof *larger * (size_t)to->n);
        if (!larger)
            return false;
        m->buffer_offsets = larger;
        m->offsets_max = to->n;
    }
    for (int64_t i = 0, at = 0; i < to->n; at += b->extents[0][i++].length)
        m->buffer_offsets[i] = at;
    return true;
}

/* Place one entry: it lies inside one extent of the window, because it was cut there when it was packed. */
static bool place(mpiox_messages *m, mpiox_call *call, placement *to, const mpiox_entry *head, const char *data)
{
    mpiox_buffers *b = m->base.b;
    if (head->rank < 0 || head->rank >= b->file->topology->size || !m->views[head->rank] ||
        (head->aggregator != to->aggregator && !begin_placement(m, call, to, head->aggregator)) || !to->slot)
        return false;
    const mpiox_typemap *view = m->views[head->rank];
    const int64_t displacement = m->ranks[head->rank].displacement;
    const int64_t first = displacement + mpiox_typemap_offset(view, head->position);
    int64_t low = 0, high = to->n;
    while (high - low > 1) { /* the extent that holds `first` */
        const int64_t middle = low + (high - low) / 2;
        if (b->extents[0][middle].offset <= first)
            low = middle;
        else
            high = middle;
    }
    const mpiox_extent extent = b->extents[0][low];
    const int64_t at = m->buffer_offsets[low];
    if (first < extent.offset || first >= extent.offset + extent.length)
        return false;
    const mpiox_side file = {mpiox_slot_buffer(b, to->slot) + at, view, displacement - extent.offset, head->position};
    const mpiox_side source = {(void *)data, NULL, 0, 0};
    mpiox_copy(&file, &source, head->length);
    if (call->mark)
        mpiox_copy_mark(mpiox_slot_map(b, to->slot) + at / call->granule, 0, call->granule, &file, head->length);
    return true;
}

static void place_message(mpiox_messages *m, mpiox_call *call, const char *message, int64_t bytes)
{
    placement to = {.aggregator = -1};
    for (int64_t at = 0; at + (int64_t)sizeof(mpiox_entry) <= bytes;) {
        mpiox_entry head;
        memcpy(&head, message + at, sizeof head);
        if (!place(m, call, &to, &head, message + at + sizeof head)) {
            mpiox_messages_fail(m, MPIOX_E_CORRUPT, head.length, "placing data from another node");
            return;
        }
        at += (int64_t)sizeof head + mpiox_entry_padded(head.length);
    }
}

static void leader_write(mpiox_messages *m, mpiox_call *call)
{
    mpiox_buffers *b = m->base.b;
    const mpiox_topology *topology = b->file->topology;
    char *bytes;
    for (int node = 0; node < topology->n_nodes; node++) {
        m->requests[node] = MPI_REQUEST_NULL;
        if (node == topology->node || !mpiox_messages_meet(m, node, topology->node))
            continue;
        mpiox_area *area = mpiox_messages_area(m, call->turn, node, &bytes);
        const int64_t used = atomic_load(&area->used);
        mpiox_messages_send(m, call, node, bytes, used, used <= m->area_bytes);
    }
    for (int node = 0; node < topology->n_nodes; node++)
        if (node != topology->node && mpiox_messages_meet(m, topology->node, node))
            place_message(m, call, m->incoming, mpiox_messages_receive(m, call, node, m->incoming));
    for (int local = 0; local < b->n_local; local++) {
        mpiox_slot *slot = mpiox_messages_slot(call, local);
        if (slot)
            mpiox_slot_arrive(call, slot);
    }
    mpiox_messages_finish_sending(m, call);
    for (int node = 0; node < topology->n_nodes; node++)
        atomic_store(&mpiox_messages_area(m, call->turn, node, &bytes)->used, 0);
}

void mpiox_messages_deliver(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    mpiox_area_state *state = mpiox_messages_state(m);
    const mpiox_topology *topology = m->base.b->file->topology;
    const mpiox_idle idle = {mpiox_slots_idle, call};
    const int parity = (int)(call->turn & 1);
    const uint32_t turn = (uint32_t)(call->turn / 2);
    const double begun = mpiox_now();
    mpiox_wait_reach(&state->shipped[parity], turn, &idle);
    pack(m, call); /* after an error too: other nodes go on writing, and must not write windows with holes */
    mpiox_word_add(&state->packed[parity]);
    if (topology->node_rank == 0) {
        mpiox_messages_span_windows(m, call);
        mpiox_wait_reach(&state->packed[parity], (turn + 1) * (uint32_t)topology->node_size, &idle);
        leader_write(m, call);
        mpiox_word_set(&state->shipped[parity], turn + 1);
    }
    m->base.b->file->stats.exchange_s += mpiox_now() - begun;
}
