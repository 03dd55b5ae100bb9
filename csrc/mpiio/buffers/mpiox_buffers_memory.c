/*
 * mpiox_buffers_memory.c - sizes, addresses and placement in the node's shared memory (content:
 * mpiox_collective_memory.h).
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpiox_buffers.h"

/* More than one memory node? Then it matters who touches a page first. */
static bool has_numa(void)
{
    static atomic_int known; /* 1: no, 2: yes */
    if (known == 0)
        known = access("/sys/devices/system/node/node1", F_OK) == 0 ? 2 : 1;
    return known == 2;
}

/* A page lies in the memory near the rank that touches it first: every aggregator touches its own collective buffers,
 * once per segment, so that its requests and most of its ranks' copies stay in that memory. The segment is all
 * zeros still. */
static void place_buffers(mpiox_buffers *b)
{
    mpiox_topology *topology = b->file->topology;
    const int64_t page = sysconf(_SC_PAGESIZE), bytes = b->per_aggregator * b->window_bytes;
    if (topology->segment_placed || !has_numa())
        return;
    topology->segment_placed = true;
    for (int local = 0; local < b->n_local; local++) {
        if (b->aggregators[b->local[local]] != topology->rank)
            continue;
        volatile char *own = b->buffers + (int64_t)local * bytes;
        for (int64_t at = 0; at < bytes; at += page)
            own[at] = 0;
    }
}

/* Where each part begins, and where the last one ends. */
typedef struct places {
    int64_t state, contributions, nodes, slots, maps, transport, end;
    uint64_t layout;
} places;

static places lay_out(const mpiox_buffers *b, int64_t transport_bytes)
{
    enum { PAGE = 4096 };
    const mpiox_topology *topology = b->file->topology;
    const int64_t slots = (int64_t)b->n_local * b->per_aggregator;
    places at;
    at.state = mpiox_round_up(slots * b->window_bytes, PAGE); /* behind the buffers, which begin with a huge page */
    at.contributions = mpiox_round_up(at.state + (int64_t)sizeof(mpiox_call_state), MPIOX_LINE);
    at.nodes = at.contributions + (int64_t)sizeof(mpiox_contribution) * topology->node_size;
    at.slots = mpiox_round_up(at.nodes + (int64_t)sizeof(mpiox_node_access) * topology->n_nodes, MPIOX_LINE);
    at.maps = mpiox_round_up(at.slots + (int64_t)sizeof(mpiox_buffer_slot) * slots, PAGE);
    at.transport = mpiox_round_up(at.maps + slots * b->window_bytes, PAGE);
    at.end = at.transport + transport_bytes;
    /* Sizes follow from the number of buffers and the size of one; equal totals of different layouts are
     * distinguished. */
    at.layout = (uint64_t)b->window_bytes << 24 | (uint64_t)slots;
    return at;
}

bool mpiox_buffers_are_there(const mpiox_buffers *b, int64_t transport_bytes)
{
    const places at = lay_out(b, transport_bytes);
    return mpiox_topology_segment_fits(b->file->topology, at.end, at.layout);
}

int mpiox_buffers_attach(mpiox_buffers *b, int64_t transport_bytes, bool there, mpiox_error *error)
{
    mpiox_topology *topology = b->file->topology;
    const places at = lay_out(b, transport_bytes);
    const int code = there ? MPIOX_OK : mpiox_topology_segment(topology, at.end, at.layout, error);
    if (code != MPIOX_OK)
        return code;
    char *base = topology->segment.base;
    b->buffers = base;
    b->state = (mpiox_call_state *)(base + at.state);
    b->contributions = (mpiox_contribution *)(base + at.contributions);
    b->nodes = (mpiox_node_access *)(base + at.nodes);
    b->slots = (mpiox_buffer_slot *)(base + at.slots);
    b->maps = (unsigned char *)base + at.maps;
    b->transport_memory = base + at.transport;
    place_buffers(b);
    return MPIOX_OK;
}

void mpiox_buffers_reset(mpiox_buffers *b)
{
    for (int64_t i = 0; i < (int64_t)b->n_local * b->per_aggregator; i++) {
        mpiox_buffer_slot *slot = &b->slots[i];
        atomic_store(&slot->phase.value, 0);
        atomic_store(&slot->arrived, 0);
        atomic_store(&slot->claimed, 0);
        atomic_store(&slot->window, -1);
        atomic_store(&slot->eof, INT64_MAX);
    }
    atomic_store(&b->state->failed, 0);
    atomic_store(&b->state->eof, INT64_MAX);
}

void mpiox_buffers_free(mpiox_buffers *b)
{
    mpiox_plan_free(b->plan);
    free(b->extents[0]);
    free(b->extents[1]);
    free(b->aggregators);
    free(b->local);
}

void mpiox_buffers_fail(mpiox_buffers *b, const mpiox_error *error)
{
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&b->state->failed, &none, 1)) {
        b->state->error = *error;
        b->state->error.rank = b->file->topology->rank;
        atomic_store(&b->state->failed, 2);
    }
}
