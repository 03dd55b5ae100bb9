/*
 * mpiox_transport_messages.c - the transport between nodes: its state, and the order of its steps.
 *
 * Problem.   Pieces whose aggregator is on another node must travel there in few, large messages, in bounded memory,
 *            and without one rank that does the work of its node.
 * Algorithm. Write: every rank packs its pieces into the node's pool, those for one aggregator side by side. For every
 *            aggregator one rank of the node (its channel, so that all ranks send) sends them as one message. The
 *            aggregator places them in its collective buffer. Read: the same with entries without data; the aggregator
 *            answers each message, and the node's ranks copy their pieces from the answer. If ranks of a node read the
 *            same bytes, the node requests them once (`whole`): when the sum of their bytes is at least the span of
 *            their ranges. Entries: mpiox_message_entries.h. Senders and places in the pool: mpiox_exchange_rounds.h.
 *            Aggregators: mpiox_message_inbox.h.
 * Waiting.   A rank that waits receives and answers meanwhile (mpiox_message_wait.h). A rank in exchange round t waits
 *            only for others that are in t or before, and in t only for work that they do before they wait themselves:
 *            there is no circle.
 * Errors.    A node that has failed continues to send: its ranks' data is as good as before, and the others write only
 *            data that they have received.
 * Memory.    A node: two halves of the pool, each the buffers of the busiest node's aggregators and a half window; the
 *            store of views; 64 bytes an aggregator and exchange round in memory, 16 a rank. An aggregator: one
 *            message, and answers of at most that size. Only used pages need memory.
 * Source.    Two-level aggregation: Kang, Lee, Lee, Agrawal, Choudhary, Liao, "Improving all-to-many personalized
 *            communication in two-phase I/O", SC20.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_message_directions.h"
#include "mpiox_message_inbox.h"
#include "mpiox_exchange_rounds.h"
#include "mpiox_message_views.h"
#include "mpiox_message_wait.h"

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

enum { PAGE = 4096, STEP_MAX = 1 << 30, CHUNK_LEAST = 512 };

/* Of one node; the same everywhere. 0: no memory. */
static int most_aggregators(const mpiox_buffers *b)
{
    const mpiox_topology *topology = b->file->topology;
    int *here = calloc((size_t)topology->n_nodes, sizeof *here), most = here != NULL;
    for (int a = 0; here && a < b->n_aggregators; a++) {
        const int n = ++here[topology->node_of[b->aggregators[a]]];
        most = n > most ? n : most;
    }
    free(here);
    return most;
}

static bool set_sizes(mpiox_messages *m)
{
    const mpiox_buffers *b = m->base.b;
    const int64_t buffers = most_aggregators(b) * b->window_bytes;
    m->chunk_data = b->window_bytes / 4 > CHUNK_LEAST ? mpiox_round_up(b->window_bytes / 4, 8) : CHUNK_LEAST;
    m->step_bytes = mpiox_round_up((buffers < STEP_MAX ? buffers : STEP_MAX) + PAGE, PAGE);
    m->half_bytes = mpiox_round_up(m->step_bytes + 2 * m->chunk_data + 2 * (int64_t)sizeof(mpiox_message_entry), PAGE);
    return buffers > 0;
}

/* Offsets in transport_memory, in the order of the struct; returns the size of all. */
static int64_t lay_out(const mpiox_messages *m, int64_t at[4])
{
    const mpiox_buffers *b = m->base.b;
    const mpiox_topology *topology = b->file->topology;
    at[0] = mpiox_round_up((int64_t)sizeof(mpiox_exchange), MPIOX_LINE);
    at[1] = at[0] + MPIOX_EXCHANGE_ROUNDS * b->n_aggregators * (int64_t)sizeof(mpiox_destination_buffer);
    at[2] = at[1] + topology->size * (int64_t)sizeof(mpiox_known_view);
    at[3] = mpiox_round_up(at[2] + MPIOX_STORE_BYTES, PAGE);
    return at[3] + 2 * m->half_bytes;
}

static int64_t shared_bytes(const mpiox_transport *transport)
{
    int64_t at[4];
    return lay_out((const mpiox_messages *)transport, at);
}

static void attach(mpiox_messages *m)
{
    char *memory = m->base.b->transport_memory;
    int64_t at[4];
    lay_out(m, at);
    m->exchange = (mpiox_exchange *)(void *)memory;
    m->destinations = (mpiox_destination_buffer *)(void *)(memory + at[0]);
    m->known = (mpiox_known_view *)(void *)(memory + at[1]);
    m->store = memory + at[2];
    m->halves = memory + at[3];
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static void release(mpiox_transport *transport)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    for (int half = 0; half < 2; half++) {
        free(m->sends[half].requests);
        free(m->sends[half].copies);
        free(m->receives[half].requests);
        free(m->receives[half].copies);
    }
    mpiox_inbox_free(&m->inbox);
    free(m->due);
    free(m->shares);
    free(m);
}

static mpiox_transport *create(mpiox_buffers *b)
{
    mpiox_messages *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->base = (mpiox_transport){&mpiox_transport_messages, b};
    m->idle = (mpiox_idle){mpiox_messages_idle, m};
    m->inbox.local = -1;
    m->inbox.request = MPI_REQUEST_NULL;
    m->due = calloc((size_t)b->n_aggregators + 1, sizeof *m->due);
    if (set_sizes(m) && m->due)
        return &m->base;
    release(&m->base);
    return NULL;
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

/* Reads: do the node's ranks read at least as many bytes as their ranges span? Then they read some bytes twice, or
 * leave none out, and extents are shorter than lists of pieces. */
static bool asks_for_extents(const mpiox_buffers *b)
{
    const mpiox_topology *topology = b->file->topology;
    const mpiox_node_access *node = &b->nodes[topology->node];
    return topology->node_size > 1 && !(b->contributions[0].flags & MPIOX_CONTRIBUTION_WRITE) &&
           node->range.first < node->range.last && node->bytes >= node->range.last - node->range.first;
}

static void reset(mpiox_transport *transport)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    if (!m->exchange) { /* the memory may have been another file's */
        attach(m);
        memset(m->destinations, 0,
               sizeof *m->destinations * (size_t)MPIOX_EXCHANGE_ROUNDS * (size_t)m->base.b->n_aggregators);
    }
    mpiox_exchange *exchange = m->exchange;
    for (int i = 0; i < MPIOX_EXCHANGE_ROUNDS; i++)
        atomic_store(&exchange->counted[i].value, 0);
    for (int half = 0; half < 2; half++) {
        atomic_store(&exchange->packed[half].value, 0);
        atomic_store(&exchange->arrived[half].value, 0);
        atomic_store(&exchange->released[half].value, 0);
    }
    exchange->whole = asks_for_extents(m->base.b);
}

static void begin(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    m->call = call;
    if (!m->exchange)
        attach(m);
    if (!m->views_spread)
        mpiox_message_views_renew(m);
    call->reduction.disjoint |= m->exchange->disjoint;
    if (call->write)
        call->participants++; /* aggregators arrive for the other nodes, too */
}

static int start(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    const mpiox_buffers *b = m->base.b;
    m->inbox.local = -1;
    for (int i = 0; i < b->n_local; i++)
        if (b->aggregators[b->local[i]] == b->file->topology->rank) {
            m->inbox.local = i;
            m->inbox.aggregator = b->local[i];
        }
    if (!call->write)
        call->held = m->inbox.local; /* it keeps a window until it has served the other nodes from it */
    m->n_issued = 0;
    for (int half = 0; half < 2; half++)
        m->sends[half].reported = m->receives[half].reported = true;
    const int code = mpiox_exchange_rounds_begin(m);
    return code == MPIOX_OK ? mpiox_inbox_begin(m) : code;
}

static void forget(mpiox_transport *transport)
{
    ((mpiox_messages *)transport)->views_spread = false;
}

const mpiox_transport_ops mpiox_transport_messages = {
    .name = "messages",
    .create = create,
    .free = release,
    .shared_bytes = shared_bytes,
    .reset = reset,
    .begin = begin,
    .start = start,
    .deliver = mpiox_messages_deliver,
    .fetch = mpiox_messages_fetch,
    .finish = mpiox_messages_finish,
    .forget = forget,
};
