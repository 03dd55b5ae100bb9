/*
 * mpiox_topology_memory.c - memory that the ranks of a node share; see mpiox_topology.h.
 *
 * Rank 0 of the node makes it and sends its place, the others attach, and all agree that every rank could. With several
 * nodes, and before there is a page, they communicate by MPI; else in the page.
 */
#include <string.h>

#include "mpiox_topology.h"

typedef struct offer { /* of the node's rank 0 */
    mpiox_segment_address address;
    int32_t code;
} offer;

_Static_assert(sizeof(offer) <= MPIOX_TOPOLOGY_NOTE_BYTES, "where memory is to be found is a note");

static bool by_page(const mpiox_topology *t)
{
    return t->page && t->n_nodes == 1;
}

static bool announce(mpiox_topology *t, offer *made)
{
    if (by_page(t))
        return mpiox_topology_spread(t, 0, made, sizeof *made) == MPIOX_OK;
    return PMPI_Bcast(made, sizeof *made, MPI_BYTE, 0, t->node_comm) == MPI_SUCCESS;
}

static int lowest_of_node(mpiox_topology *t, int code)
{
    int worst = code;
    if (by_page(t))
        return mpiox_topology_lowest(t, code);
    return PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, t->node_comm) == MPI_SUCCESS ? worst : MPIOX_E_MPI;
}

/* One attempt; the same answer on all ranks of the node. */
static int try_share(mpiox_topology *t, mpiox_segment_kind kind, int64_t bytes, mpiox_segment *out, mpiox_error *error)
{
    offer made;
    memset(&made, 0, sizeof made);
    *out = (mpiox_segment){.fd = -1};
    if (t->node_rank == 0)
        made.code = mpiox_segment_create(kind, bytes, &made.address, out, error);
    const mpiox_segment_address own = made.address; /* a broadcast that fails leaves its buffer undefined */
    if (!announce(t, &made))
        made.code = mpiox_error_set(error, MPIOX_E_MPI, 0, -1, bytes, "announcing shared memory");
    int code = made.code;
    if (code == MPIOX_OK && t->node_rank != 0)
        code = mpiox_segment_attach(&made.address, out, error);
    const int worst = lowest_of_node(t, code);
    if (t->node_rank == 0)
        mpiox_segment_seal(out, &own);
    if (worst == MPIOX_OK)
        return MPIOX_OK;
    mpiox_segment_free(out);
    return mpiox_error_set(error, worst, code == worst ? error->sys_errno : 0, -1, bytes, "shared memory on this node");
}

int mpiox_topology_share(mpiox_topology *t, int64_t bytes, mpiox_segment *out, mpiox_error *error)
{
    int code = MPIOX_E_NOMEM;
    for (int kind = 0; kind < MPIOX_SEGMENT_KINDS && code != MPIOX_OK; kind++)
        code = try_share(t, kind, bytes, out, error);
    return code;
}

bool mpiox_topology_segment_fits(const mpiox_topology *t, int64_t bytes, uint64_t layout)
{
    return t->segment.base && t->segment.bytes == bytes && t->segment_layout == layout;
}

static int renew_segment(mpiox_topology *t, int64_t bytes, uint64_t layout, mpiox_error *error)
{
    if (mpiox_topology_segment_fits(t, bytes, layout))
        return MPIOX_OK;
    t->segment_layout = layout;
    t->segment_placed = false;
    mpiox_segment_free(&t->segment);
    return mpiox_topology_share(t, bytes, &t->segment, error);
}

int mpiox_topology_segment(mpiox_topology *t, int64_t bytes, uint64_t layout, mpiox_error *error)
{
    const int code = renew_segment(t, bytes, layout, error),
              worst = t->n_nodes > 1 ? mpiox_topology_lowest(t, code) : code;
    if (code == MPIOX_OK && worst != MPIOX_OK)
        mpiox_error_set(error, worst, 0, -1, bytes, "shared memory on another node");
    return worst;
}
