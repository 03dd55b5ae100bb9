/*
 * mpiox_message_views.c - the views that every node knows, so that messages need not list pieces.
 *
 * Problem.   A view of a regular pattern is some hundred bytes, whatever its pieces; a view of a mesh is as large as
 *            its list, and with thousands of ranks no node has room for all lists.
 * Algorithm. After a view has changed the leaders exchange the views of their ranks, if they are small enough for a
 *            contribution and for the node's share of the store. Views that differ only in their starts are stored as
 *            one. Each view is checked once, stored in the memory of the node, and used there. A missing view is no
 *            error: the entries of its rank list their pieces.
 * Guarantee. All nodes store the same views, in MPIOX_STORE_BYTES at most, and 16 bytes a rank.
 */
#include "mpiox_message_views.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_message_sends.h"

enum { SHARE_BYTES = 4 * 1024 * 1024, SHARE_LEAST = 4096, SLOTS = 8192, BLOCK_VIEWS_BYTES = 512 };

typedef struct packed_view { /* of one rank, in a node's message */
    int64_t at;              /* in the node's views; MPIOX_VIEW_UNKNOWN, MPIOX_VIEW_EMPTY */
    int64_t displacement;
} packed_view;

/* ---- sets of views ----------------------------------------------------------------------------------------------- */

typedef struct view_set { /* different views, one behind the other */
    char *bytes;
    int64_t used, max;
    int64_t *slots; /* [SLOTS] hash table of their positions + 1, 0: free */
    int n;
} view_set;

static uint64_t hash_of(const char *bytes, int64_t n)
{
    uint64_t hash = UINT64_C(1469598103934665603), word; /* FNV-1a, by words */
    for (int64_t i = 0; i + 8 <= n; i += 8) {
        memcpy(&word, bytes + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Where the view lies in the set, added if it is new; MPIOX_VIEW_UNKNOWN: no room. */
static int64_t add_view(view_set *set, const char *blob, int64_t bytes)
{
    if (!set->slots || bytes <= 0)
        return MPIOX_VIEW_UNKNOWN;
    uint64_t slot = hash_of(blob, bytes) % SLOTS;
    for (; set->slots[slot] != 0; slot = (slot + 1) % SLOTS) {
        const char *other = set->bytes + set->slots[slot] - 1;
        const mpiox_typemap *view = (const mpiox_typemap *)(const void *)other;
        if (mpiox_typemap_blob_bytes(view) == bytes && memcmp(other, blob, (size_t)bytes) == 0)
            return set->slots[slot] - 1;
    }
    if (set->used + bytes > set->max || set->n == SLOTS / 2)
        return MPIOX_VIEW_UNKNOWN;
    memcpy(set->bytes + set->used, blob, (size_t)bytes);
    set->slots[slot] = set->used + 1;
    set->n++;
    set->used += bytes;
    return set->slots[slot] - 1;
}

/* ---- a node's message -------------------------------------------------------------------------------------------- */

static packed_view pack(const mpiox_contribution *contribution, view_set *set)
{
    packed_view packed = {MPIOX_VIEW_UNKNOWN, contribution->displacement};
    mpiox_typemap *view = NULL, *moved = NULL;
    int64_t shift = 0;
    if (contribution->flags & MPIOX_CONTRIBUTION_EMPTY)
        packed.at = MPIOX_VIEW_EMPTY;
    else if (contribution->view_bytes > 0 &&
             mpiox_typemap_from_blob(contribution->view, contribution->view_bytes, &view) == MPIOX_OK &&
             mpiox_typemap_at_zero(view, &shift, &moved) == MPIOX_OK &&
             !__builtin_add_overflow(contribution->displacement, shift, &packed.displacement)) {
        _Alignas(8) char blob[2 * MPIOX_CONTRIBUTION_VIEW_BYTES];
        const int64_t bytes = mpiox_typemap_blob_bytes(moved);
        if (mpiox_typemap_to_blob(moved, blob, (int64_t)sizeof blob) == MPIOX_OK)
            packed.at = add_view(set, blob, bytes);
    }
    mpiox_typemap_free(view);
    mpiox_typemap_free(moved);
    return packed;
}

/* The ranks' packed_views, then their different views; to be freed, NULL without memory. */
static char *pack_node(const mpiox_messages *m, int64_t *bytes)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    const int64_t head = topology->node_size * (int64_t)sizeof(packed_view), share = SHARE_BYTES / topology->n_nodes,
                  most = share < SHARE_LEAST ? SHARE_LEAST : share;
    char *all = malloc((size_t)(head + most));
    view_set set = {all ? all + head : NULL, 0, most, calloc(SLOTS, sizeof(int64_t)), 0};
    *bytes = 0;
    for (int i = 0; all && i < topology->node_size; i++)
        ((packed_view *)(void *)all)[i] = pack(&m->base.b->contributions[i], &set);
    if (all)
        *bytes = head + set.used;
    free(set.slots);
    return all;
}

/* ---- all nodes' messages ----------------------------------------------------------------------------------------- */

static void unpack_node(mpiox_messages *m, int node, const char *packed, int64_t bytes, view_set *set)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    const int first = topology->node_start[node], n = topology->node_start[node + 1] - first;
    const int64_t head = n * (int64_t)sizeof(packed_view);
    for (int i = 0; i < n; i++) {
        mpiox_known_view *known = &m->known[topology->node_ranks[first + i]];
        packed_view one = {MPIOX_VIEW_UNKNOWN, 0};
        if (bytes >= head)
            memcpy(&one, packed + i * (int64_t)sizeof one, sizeof one);
        *known = (mpiox_known_view){one.at == MPIOX_VIEW_EMPTY ? MPIOX_VIEW_EMPTY : MPIOX_VIEW_UNKNOWN,
                                    one.displacement};
        if (one.at < 0 || one.at + (int64_t)sizeof(int64_t) * 4 > bytes - head)
            continue;
        const char *blob = packed + head + one.at;
        mpiox_typemap *checked = NULL;
        const int64_t size = mpiox_typemap_blob_bytes((const mpiox_typemap *)(const void *)blob);
        if (size <= 0 || size > bytes - head - one.at)
            continue;
        const int64_t used = set->used, at = add_view(set, blob, size);
        if (at == used && mpiox_typemap_from_blob(blob, size, &checked) != MPIOX_OK)
            mpiox_file_give_up(m->base.b->file, MPIOX_E_CORRUPT, -1, size, "the view of another node");
        mpiox_typemap_free(checked);
        known->at = at;
    }
}

/* What the leaders exchange: the size of a node's message, and its first bytes, which are most messages, so that one
 * operation is enough. Room for the packed_views of the largest node, and for some views. */
static size_t block_bytes(const mpiox_topology *topology)
{
    int most = 0;
    for (int n = 0; n < topology->n_nodes; n++)
        most = mpiox_max(most, topology->node_start[n + 1] - topology->node_start[n]);
    return sizeof(int64_t) + (size_t)most * sizeof(packed_view) + BLOCK_VIEWS_BYTES;
}

/* Leaders: all nodes' messages, one behind the other, in blocks only if all of them fit into these. */
static void exchange(mpiox_messages *m, const char *mine, int64_t *sizes, const char *blocks, size_t block, char *all)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    int *counts = calloc(2 * (size_t)topology->n_nodes, sizeof *counts), *displs = counts + topology->n_nodes;
    bool fit = true;
    MPI_Request request;
    if (!counts)
        mpiox_file_give_up(m->base.b->file, MPIOX_E_NOMEM, -1, -1, "exchanging views");
    for (int n = 0, at = 0; n < topology->n_nodes; at += counts[n++]) {
        counts[n] = (int)sizes[n];
        displs[n] = at;
        fit = fit && sizes[n] <= (int64_t)(block - sizeof *sizes);
    }
    for (int n = 0; fit && n < topology->n_nodes; n++)
        memcpy(all + displs[n], blocks + (size_t)n * block + sizeof *sizes, (size_t)sizes[n]);
    if (!fit && mpiox_topology_finish(PMPI_Iallgatherv(mine, counts[topology->node], MPI_BYTE, all, counts, displs,
                                                       MPI_BYTE, topology->leader_comm, &request),
                                      &request) != MPIOX_OK)
        mpiox_file_give_up(m->base.b->file, MPIOX_E_MPI, -1, -1, "exchanging views");
    free(counts);
}

/* Leaders: exchange blocks; the sizes of all, and room for all. */
static char *exchange_blocks(mpiox_messages *m, const char *mine, int64_t bytes, int64_t *sizes)
{
    mpiox_topology *topology = m->base.b->file->topology;
    const size_t block = block_bytes(topology), most = block - sizeof bytes;
    const size_t others = block * (size_t)topology->n_nodes;
    char *blocks = malloc(others + block), *own = blocks + others;
    int64_t total = 0;
    if (blocks) {
        memcpy(own, &bytes, sizeof bytes);
        memcpy(own + sizeof bytes, mine, (size_t)bytes < most ? (size_t)bytes : most);
    }
    if (!blocks || !mpiox_topology_gather_nodes(topology, own, block, blocks))
        mpiox_file_give_up(m->base.b->file, blocks ? MPIOX_E_MPI : MPIOX_E_NOMEM, -1, -1, "exchanging views");
    for (int n = 0; n < topology->n_nodes; n++) {
        memcpy(&sizes[n], blocks + (size_t)n * block, sizeof sizes[n]);
        total += sizes[n];
    }
    char *all = total <= INT32_MAX ? malloc((size_t)total + 8) : NULL;
    if (!all)
        mpiox_file_give_up(m->base.b->file, MPIOX_E_NOMEM, -1, total, "exchanging views");
    exchange(m, mine, sizes, blocks, block, all);
    free(blocks);
    return all;
}

/* Is it proven that no two ranks' views share a byte, wherever they are accessed? About a microsecond a pair. */
static int all_disjoint(const mpiox_messages *m)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    enum { RANKS_MAX = 128 };
    for (int i = 0; i < topology->size && topology->size <= RANKS_MAX; i++) {
        const mpiox_known_view *one = &m->known[i];
        if (one->at == MPIOX_VIEW_UNKNOWN)
            return 0;
        for (int j = i + 1; one->at >= 0 && j < topology->size; j++) {
            const mpiox_known_view *other = &m->known[j];
            if (other->at == MPIOX_VIEW_UNKNOWN ||
                (other->at >= 0 &&
                 !mpiox_typemap_disjoint((const mpiox_typemap *)(const void *)(m->store + one->at), one->displacement,
                                         (const mpiox_typemap *)(const void *)(m->store + other->at),
                                         other->displacement)))
                return 0;
        }
    }
    return topology->size <= RANKS_MAX;
}

/* The leader, while the ranks of its node wait. */
static void renew(void *context)
{
    mpiox_messages *m = context;
    const mpiox_topology *topology = m->base.b->file->topology;
    int64_t bytes, *sizes = calloc((size_t)topology->n_nodes, sizeof *sizes);
    view_set set = {m->store, 0, MPIOX_STORE_BYTES, calloc(SLOTS, sizeof(int64_t)), 0};
    char *mine = pack_node(m, &bytes);
    if (!sizes || !set.slots)
        mpiox_file_give_up(m->base.b->file, MPIOX_E_NOMEM, -1, -1, "exchanging views");
    char *all = exchange_blocks(m, mine, bytes, sizes);
    int64_t at = 0;
    for (int n = 0; n < topology->n_nodes; at += sizes[n++])
        unpack_node(m, n, all + at, sizes[n], &set);
    m->exchange->disjoint = all_disjoint(m);
    free(all);
    free(mine);
    free(set.slots);
    free(sizes);
}

void mpiox_message_views_renew(mpiox_messages *m)
{
    mpiox_topology_barrier(m->base.b->file->topology, renew, m);
    m->views_spread = true; /* taken back when the collective fails */
}
