/*
 * mpiox_message_views.c - before the rounds: what leaders know of all ranks.
 *
 * Views travel only after one was changed: every rank's serialized view goes to its leader, the leaders spread them.
 * Per call a rank's position, length and range. Where something cannot be gathered, every node learns of it and the
 * collective ends with an error: a missing view must not be taken for one without data.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_messages.h"

/* counts[] and displs[] of a gather over nodes of one item per rank, in node order. */
static void node_counts(const mpiox_topology *topology, int item_bytes, int *counts, int *displs)
{
    for (int n = 0; n < topology->n_nodes; n++) {
        counts[n] = (topology->node_start[n + 1] - topology->node_start[n]) * item_bytes;
        displs[n] = topology->node_start[n] * item_bytes;
    }
}

/* Leaders: everyone's range and position of this call, from the posts in shared memory. */
static void gather_ranges(mpiox_messages *m)
{
    mpiox_topology *topology = m->base.b->file->topology;
    for (int i = 0; i < topology->node_size; i++) {
        const mpiox_post *post = &m->base.b->posts[i];
        m->by_node[topology->node_start[topology->node] + i] = (mpiox_rank_access){
            post->position, post->length, post->first, post->last, post->displacement};
    }
    node_counts(topology, (int)sizeof *m->by_node, m->counts, m->counts + topology->n_nodes);
    MPI_Request request;
    if (mpiox_topology_finish(PMPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, m->by_node, m->counts,
                                               m->counts + topology->n_nodes, MPI_BYTE, topology->leader_comm,
                                               &request),
                              &request) != MPIOX_OK)
        mpiox_file_give_up(m->base.b->file, MPIOX_E_MPI, -1, -1, "agreeing on who sends to whom");
    for (int i = 0; i < topology->size; i++)
        m->ranks[topology->node_ranks[i]] = m->by_node[i];
    for (int n = 0; n < topology->n_nodes; n++) {
        m->nodes[n] = (mpiox_interval){INT64_MAX, INT64_MIN};
        for (int i = topology->node_start[n]; i < topology->node_start[n + 1]; i++) {
            if (m->by_node[i].length == 0)
                continue;
            m->nodes[n].first = m->by_node[i].first < m->nodes[n].first ? m->by_node[i].first : m->nodes[n].first;
            m->nodes[n].last = m->by_node[i].last > m->nodes[n].last ? m->by_node[i].last : m->nodes[n].last;
        }
    }
}

/* This rank's serialized view, to be freed. *bytes: its size, 0 for a view without data, -1 if it cannot be sent. */
static char *serialize_view(const mpiox_file *file, int *bytes)
{
    const int64_t size = file->view ? mpiox_typemap_blob_bytes(file->view) : 0;
    char *blob = file->view && size > 0 && size <= INT32_MAX ? malloc((size_t)size) : NULL;
    *bytes = file->empty_view ? 0 : blob && mpiox_typemap_to_blob(file->view, blob, size) == MPIOX_OK ? (int)size : -1;
    return blob;
}

/* At the leader: where the node's views go, and room for them; NULL when one of them, or memory, is missing. */
static char *room_for_views(const mpiox_topology *topology, const int *sizes, int *displs, int64_t *total)
{
    *total = 0;
    for (int i = 0; displs && i < topology->node_size; *total += sizes[i++]) {
        if (sizes[i] < 0 || *total > INT32_MAX)
            return NULL;
        displs[i] = (int)*total;
    }
    return displs && *total <= INT32_MAX ? malloc((size_t)*total + 8) : NULL;
}

/* Every rank's serialized view to its leader, back to back; the leader gets them in *all and their sizes in
 * m->sizes[0 .. node_size - 1], others NULL. If a view cannot be sent, or the leader has no memory, nothing is
 * gathered, *total is -1. */
static int gather_node_views(mpiox_messages *m, char **all, int64_t *total)
{
    mpiox_topology *topology = m->base.b->file->topology;
    MPI_Request request;
    int mine, *sizes = m->sizes, *displs = NULL, go = 1;
    char *blob = serialize_view(m->base.b->file, &mine);
    *all = NULL;
    *total = 0;
    int code = mpiox_topology_finish(
        PMPI_Igather(&mine, 1, MPI_INT, sizes, 1, MPI_INT, 0, topology->node_comm, &request), &request);
    if (topology->node_rank == 0) {
        displs = calloc((size_t)topology->node_size, sizeof *displs);
        *all = code == MPIOX_OK ? room_for_views(topology, sizes, displs, total) : NULL;
        go = *all != NULL;
    }
    const int told = mpiox_topology_finish(PMPI_Ibcast(&go, 1, MPI_INT, 0, topology->node_comm, &request), &request);
    if (told != MPIOX_OK && topology->node_rank != 0)
        go = 1; /* most likely */
    code = code == MPIOX_OK ? told : code;
    if (go) {
        const int moved = mpiox_topology_finish(PMPI_Igatherv(blob, mine < 0 ? 0 : mine, MPI_BYTE, *all, sizes, displs,
                                                              MPI_BYTE, 0, topology->node_comm, &request),
                                                &request);
        code = code == MPIOX_OK ? moved : code;
    }
    if (!go || (topology->node_rank == 0 && code != MPIOX_OK))
        *total = -1;
    free(displs);
    free(blob);
    return code == MPIOX_OK && *total < 0 ? MPIOX_E_NOMEM : code;
}

/* Leaders: fine on all of them? *code becomes MPIOX_E_NOMEM if not; after a failure the others are taken to be fine. */
static bool all_leaders(const mpiox_messages *m, int fine, int *code)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    MPI_Request request;
    int all = fine;
    if (mpiox_topology_finish(PMPI_Iallreduce(&fine, &all, 1, MPI_INT, MPI_MIN, topology->leader_comm, &request),
                              &request) != MPIOX_OK) {
        *code = MPIOX_E_MPI;
        all = fine;
    }
    if (!all && *code == MPIOX_OK)
        *code = MPIOX_E_NOMEM;
    return all != 0;
}

/* Leaders: every rank's description from the blobs of all nodes. */
static int rebuild_views(mpiox_messages *m, const char *blobs, const int *sizes)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    int64_t at = 0;
    int code = MPIOX_OK;
    for (int i = 0; i < topology->size; at += sizes[i++]) {
        mpiox_typemap **view = &m->views[topology->node_ranks[i]];
        mpiox_typemap_free(*view);
        *view = NULL;
        if (sizes[i] && code == MPIOX_OK) /* blob sizes are multiples of 8, so every blob is aligned */
            code = mpiox_typemap_from_blob(blobs + at, sizes[i], view);
    }
    return code;
}

/* Leaders: spread the blobs of all nodes and rebuild every rank's description. node_total < 0: this leader has none. */
static int spread_views(mpiox_messages *m, const char *node_blobs, int64_t node_total)
{
    mpiox_topology *topology = m->base.b->file->topology;
    MPI_Request request;
    int *sizes = calloc((size_t)topology->size, sizeof *sizes), *displs = m->counts + topology->n_nodes,
        code = MPIOX_OK;
    int64_t total = 0;
    if (!all_leaders(m, sizes != NULL && node_total >= 0, &code)) {
        free(sizes);
        return code;
    }
    node_counts(topology, 1, m->counts, displs);
    const int sized = mpiox_topology_finish(PMPI_Iallgatherv(m->sizes, topology->node_size, MPI_INT, sizes, m->counts,
                                                             displs, MPI_INT, topology->leader_comm, &request),
                                            &request);
    for (int n = 0; n < topology->n_nodes; n++) {
        displs[n] = (int)total;
        m->counts[n] = 0;
        for (int i = topology->node_start[n]; i < topology->node_start[n + 1]; total += sizes[i++])
            m->counts[n] += sizes[i];
    }
    /* counts of MPI_Allgatherv are ints */
    char *all = sized == MPIOX_OK && total <= INT32_MAX ? malloc((size_t)total + 8) : NULL;
    code = code == MPIOX_OK ? sized : code;
    if (all_leaders(m, all != NULL, &code)) {
        const int moved = mpiox_topology_finish(PMPI_Iallgatherv(node_blobs, (int)node_total, MPI_BYTE, all, m->counts,
                                                                 displs, MPI_BYTE, topology->leader_comm, &request),
                                                &request);
        code = code == MPIOX_OK ? moved : code;
        if (code == MPIOX_OK)
            code = rebuild_views(m, all, sizes);
    }
    free(all);
    free(sizes);
    return code;
}

/* Leaders: is it proven that no two ranks' views share a byte, wherever they are accessed? About a microsecond a
 * pair. */
static int all_views_disjoint(const mpiox_messages *m)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    enum { RANKS_MAX = 128 };
    for (int i = 0; i < topology->size && topology->size <= RANKS_MAX; i++)
        for (int j = i + 1; m->views[i] && j < topology->size; j++)
            if (m->views[j] &&
                !mpiox_typemap_disjoint(m->views[i], m->ranks[i].displacement, m->views[j], m->ranks[j].displacement))
                return 0;
    return topology->size <= RANKS_MAX;
}

/* Leaders get the present views of all ranks; the same proof of their being disjoint on all ranks of a node. */
static int renew_views(mpiox_messages *m)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    const bool leader = topology->node_rank == 0;
    MPI_Request request;
    int64_t total;
    char *blobs;
    int code = gather_node_views(m, &blobs, &total);
    if (leader) {
        const int spread = spread_views(m, blobs, code == MPIOX_OK ? total : -1);
        code = code == MPIOX_OK ? spread : code;
    }
    free(blobs);
    m->views_spread = true; /* taken back when the collective fails */
    if (leader)
        gather_ranges(m); /* with the displacements */
    m->views_disjoint = leader && code == MPIOX_OK && all_views_disjoint(m);
    const int told = mpiox_topology_finish(
        PMPI_Ibcast(&m->views_disjoint, 1, MPI_INT, 0, topology->node_comm, &request), &request);
    if (told != MPIOX_OK)
        m->views_disjoint = 0;
    return code == MPIOX_OK ? told : code;
}

void mpiox_messages_begin(mpiox_transport *transport, mpiox_call *call)
{
    mpiox_messages *m = (mpiox_messages *)transport;
    const mpiox_topology *topology = m->base.b->file->topology;
    const bool leader = topology->node_rank == 0;
    int code = MPIOX_OK;
    if (!m->views_spread)
        code = renew_views(m);
    else if (leader)
        gather_ranges(m);
    if (code != MPIOX_OK) {
        mpiox_messages_fail(m, code, -1, "gathering the views of other nodes");
        for (int r = 0; r < topology->size; r++) { /* old views would put data in wrong places */
            mpiox_typemap_free(m->views[r]);
            m->views[r] = NULL;
        }
    }
    call->summary.disjoint |= m->views_disjoint;
    call->hold = leader && !call->write; /* the leader keeps a window until it has served the other nodes from it */
    call->participants += call->write;   /* the leader arrives for the other nodes, too */
}
