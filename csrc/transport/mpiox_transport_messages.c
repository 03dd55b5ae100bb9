/*
 * mpiox_transport_messages.c - the transport between nodes: leaders, messages, and who sends in a round.
 *
 * Problem.   Pieces whose aggregator lies on another node must travel there with few, large messages.
 * Algorithm. Write (mpiox_messages_write.c): every rank packs its pieces for node d into the node's message area for d
 *            (an atomic cursor hands out room), the leader sends the area as one message per node pair and round, and
 *            the receiving leader places the pieces in the collective buffers. Read (mpiox_messages_read.c): the
 *            aggregators' leader gathers the pieces of each other node from the loaded buffers, sends one message, and
 *            the receiving node's ranks copy their entries out of the area. An entry says (rank, aggregator, stream
 *            position, length): the receiver knows that rank's view (mpiox_message_views.c), so that no offset-length
 *            list is sent. Areas are double: round r+1 is packed while r is on its way.
 * Errors.    A node that has failed goes on sending: its ranks' data is as good as before, and the others write only
 *            what they were sent. If a message cannot be put together, the message says so and the receiver stops
 *            writing.
 * Who sends. Node s sends to node d in a round if and only if a window of d (write) or s (read) in that round meets the
 *            file range of the other node's ranks. Both sides compute it, so nobody waits for a message that never
 *            comes.
 * Memory.    Areas are sized for the worst case, every local rank filling every window of every other node; only pages
 *            that are really used take memory, because the segment is not reserved.
 * Source.    Two-level aggregation: Kang, Lee, Lee, Agrawal, Choudhary, Liao, "Improving all-to-many personalized
 *            communication in two-phase I/O", SC20.
 */
#include <stdlib.h>

#include "mpiox_messages.h"

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static int most_aggregators(const mpiox_buffers *b)
{
    const mpiox_topology *topology = b->file->topology;
    int most = 0;
    for (int n = 0; n < topology->n_nodes; n++) {
        int here = 0;
        for (int a = 0; a < b->n_aggregators; a++)
            here += topology->node_of[b->aggregators[a]] == n;
        most = here > most ? here : most;
    }
    return most;
}

static int largest_node(const mpiox_topology *topology)
{
    int most = 0;
    for (int n = 0; n < topology->n_nodes; n++) {
        const int here = topology->node_start[n + 1] - topology->node_start[n];
        most = here > most ? here : most;
    }
    return most;
}

/* Worst case of one message: every rank of a node accesses every byte of every window of another node. A window has at
 * most one extent per stripe plus the occupied intervals. */
static int64_t largest_message(const mpiox_buffers *b)
{
    const int64_t extents = b->window_bytes / b->file->layout.stripe_size + 2 * MPIOX_OCCUPIED_MAX + 2;
    const int64_t window = b->window_bytes + extents * (int64_t)(sizeof(mpiox_entry) + 8);
    return largest_node(b->file->topology) * (int64_t)most_aggregators(b) * window;
}

/* MPI sends at most so much at once. */
static bool fits(const mpiox_buffers *b)
{
    return largest_message(b) <= INT32_MAX;
}

static int64_t shared_bytes(const mpiox_transport *transport)
{
    const mpiox_messages *m = (const mpiox_messages *)transport;
    return mpiox_messages_areas_offset(m) + 2 * (int64_t)m->base.b->file->topology->n_nodes * m->area_bytes;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static void release(mpiox_transport *transport)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    const mpiox_topology *topology = m->base.b->file->topology;
    for (int r = 0; m->views && r < topology->size; r++)
        mpiox_typemap_free(m->views[r]);
    for (int n = 0; m->outgoing && n < topology->n_nodes; n++)
        free(m->outgoing[n]);
    free(m->ranks);
    free(m->views);
    free(m->nodes);
    free(m->outgoing);
    free(m->room);
    free(m->incoming);
    free(m->requests);
    free(m->by_node);
    free(m->sizes);
    free(m->counts);
    free(m->windows);
    free(m->buffer_offsets);
    free(m);
}

static mpiox_transport *create(mpiox_buffers *b)
{
    const mpiox_topology *topology = b->file->topology;
    const size_t size = (size_t)topology->size, nodes = (size_t)topology->n_nodes;
    mpiox_messages *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->base = (mpiox_transport){&mpiox_transport_messages, b};
    m->area_bytes = largest_message(b);
    m->ranks = calloc(size, sizeof *m->ranks);
    m->views = calloc(size, sizeof *m->views);
    m->nodes = calloc(nodes, sizeof *m->nodes);
    m->outgoing = calloc(nodes, sizeof *m->outgoing);
    m->room = calloc(nodes, sizeof *m->room);
    m->requests = calloc(nodes, sizeof *m->requests);
    m->by_node = calloc(size, sizeof *m->by_node);
    m->sizes = calloc(size, sizeof *m->sizes);
    m->counts = calloc(2 * nodes, sizeof *m->counts);
    m->windows = calloc((size_t)b->n_aggregators, sizeof *m->windows);
    m->incoming = topology->node_rank == 0 ? malloc((size_t)m->area_bytes) : NULL;
    if (m->ranks && m->views && m->nodes && m->outgoing && m->room && m->requests && m->by_node && m->sizes &&
        m->counts && m->windows && (m->incoming || topology->node_rank != 0))
        return &m->base;
    release(&m->base);
    return NULL;
}

static void reset(mpiox_transport *transport)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    mpiox_area_state *state = mpiox_messages_state(m);
    char *bytes;
    for (int parity = 0; parity < 2; parity++) {
        atomic_store(&state->packed[parity].value, 0);
        atomic_store(&state->shipped[parity].value, 0);
        for (int node = 0; node < m->base.b->file->topology->n_nodes; node++)
            atomic_store(&mpiox_messages_area(m, parity, node, &bytes)->used, 0);
    }
}

static void forget(mpiox_transport *transport)
{
    ((mpiox_messages *)transport)->views_spread = false;
}

const mpiox_transport_ops mpiox_transport_messages = {
    .name = "messages",
    .fits = fits,
    .create = create,
    .free = release,
    .shared_bytes = shared_bytes,
    .reset = reset,
    .begin = mpiox_messages_begin,
    .deliver = mpiox_messages_deliver,
    .fetch = mpiox_messages_fetch,
    .forget = forget,
};
