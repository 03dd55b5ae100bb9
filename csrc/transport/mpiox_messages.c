/*
 * mpiox_messages.c - message areas, sending and receiving: what both directions of the transport between nodes use. See
 * mpiox_transport_messages.c.
 */
#include "mpiox_messages.h"

#include <stdio.h>

/* The only entry of a message whose sender could not put it together: the receiver must not use the round's data. */
static const mpiox_entry failed_entry = {.rank = -1};

/* ---- message areas ----------------------------------------------------------------------------------------------- */

static int64_t round_up(int64_t bytes, int64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

int64_t mpiox_messages_areas_offset(const mpiox_messages *m)
{
    enum { PAGE = 4096 };
    const int64_t areas = 2 * (int64_t)m->base.b->file->topology->n_nodes;
    return round_up((int64_t)sizeof(mpiox_area_state) + areas * (int64_t)sizeof(mpiox_area), PAGE);
}

mpiox_area_state *mpiox_messages_state(mpiox_messages *m)
{
    return m->base.b->transport_memory;
}

mpiox_area *mpiox_messages_area(mpiox_messages *m, int64_t turn, int node, char **bytes)
{
    const int64_t index = (turn & 1) * m->base.b->file->topology->n_nodes + node;
    char *memory = m->base.b->transport_memory;
    *bytes = memory + mpiox_messages_areas_offset(m) + index * m->area_bytes;
    return (mpiox_area *)(void *)(memory + sizeof(mpiox_area_state)) + index;
}

void mpiox_messages_fail(mpiox_messages *m, int code, int64_t bytes, const char *what)
{
    mpiox_error error = {.code = MPIOX_OK};
    mpiox_error_set(&error, code, 0, -1, bytes, what);
    mpiox_buffers_fail(m->base.b, &error);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

void mpiox_messages_span_windows(mpiox_messages *m, mpiox_call *call)
{
    mpiox_buffers *b = m->base.b;
    for (int a = 0; a < b->n_aggregators; a++) {
        const mpiox_extent *list = b->extents[0];
        const int64_t n = mpiox_window_extents(call, a, call->round, b->extents[0]);
        m->windows[a] = (mpiox_interval){INT64_MAX, INT64_MIN};
        if (n > 0)
            m->windows[a] = (mpiox_interval){list[0].offset, list[n - 1].offset + list[n - 1].length};
    }
}

bool mpiox_messages_meet(const mpiox_messages *m, int owner, int other)
{
    const mpiox_buffers *b = m->base.b;
    const mpiox_topology *topology = b->file->topology;
    const mpiox_interval range = m->nodes[other];
    for (int a = 0; a < b->n_aggregators; a++)
        if (topology->node_of[b->aggregators[a]] == owner && m->windows[a].first < range.last &&
            m->windows[a].last > range.first)
            return true;
    return false;
}

static int tag_of(int64_t turn)
{
    return 1 + (int)(turn & 0x3fff);
}

mpiox_slot *mpiox_messages_slot(mpiox_call *call, int local)
{
    mpiox_buffers *b = call->b;
    if (mpiox_window_extents(call, b->local[local], call->round, b->extents[0]) == 0)
        return NULL;
    return mpiox_slot_of(b, local, call->progress[local].begun - 1);
}

/* A message that does not fit the area made for the largest possible one: the nodes do not run the same program,
 * and no later word of the other side could be trusted. Ending the job is the only end that is neither a hang nor
 * wrong data. */
static void protocol_error(const mpiox_buffers *b, int source, int64_t bytes)
{
    const mpiox_topology *topology = b->file->topology;
    fprintf(stderr,
            "mpiio_ext: rank %d: %s: a message of %lld bytes from node %d does not fit; do all ranks run the same "
            "version of libmpiio_ext.so with the same hints?\n",
            topology->rank, b->file->path, (long long)bytes, source);
    PMPI_Abort(topology->comm, 1);
}

int64_t mpiox_messages_receive(mpiox_messages *m, mpiox_call *call, int source, char *buffer)
{
    const mpiox_topology *topology = m->base.b->file->topology;
    MPI_Message message;
    MPI_Status status;
    MPI_Count bytes = 0;
    int there = 0;
    mpiox_backoff backoff = {0};
    while (!there) {
        if (PMPI_Improbe(source, tag_of(call->turn), topology->leader_comm, &there, &message, &status) != MPI_SUCCESS)
            mpiox_file_give_up(m->base.b->file, MPIOX_E_MPI, -1, -1, "looking for a message from another node");
        if (!there && !mpiox_slots_idle(call))
            mpiox_wait_backoff(&backoff); /* ranks may outnumber cores, and the sender may be one of this machine's */
    }
    if (PMPI_Get_elements_x(&status, MPI_BYTE, &bytes) != MPI_SUCCESS) /* of any length, unlike MPI_Get_count */
        bytes = -1;
    if (bytes < 0 || bytes > m->area_bytes)
        protocol_error(m->base.b, source, bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    if (PMPI_Imrecv(buffer, (int)bytes, MPI_BYTE, &message, &request) != MPI_SUCCESS)
        mpiox_file_give_up(m->base.b->file, MPIOX_E_MPI, -1, bytes, "receiving a message from another node");
    if (mpiox_topology_wait(1, &request, mpiox_slots_idle, call) != MPIOX_OK) {
        mpiox_messages_fail(m, MPIOX_E_MPI, bytes, "receiving from another node");
        return 0;
    }
    if (bytes == (MPI_Count)sizeof failed_entry && ((const mpiox_entry *)(const void *)buffer)->rank < 0) {
        mpiox_messages_fail(m, MPIOX_E_IO, -1, "collecting data on another node");
        return 0;
    }
    return bytes;
}

void mpiox_messages_send(mpiox_messages *m, mpiox_call *call, int node, const char *bytes, int64_t length,
                         bool complete)
{
    mpiox_buffers *b = m->base.b;
    if (!complete || length > INT32_MAX) {
        bytes = (const char *)&failed_entry;
        length = sizeof failed_entry;
    }
    if (PMPI_Isend(bytes, (int)length, MPI_BYTE, node, tag_of(call->turn), b->file->topology->leader_comm,
                   &m->requests[node]) != MPI_SUCCESS)
        mpiox_file_give_up(b->file, MPIOX_E_MPI, -1, length, "sending a message to another node");
    b->file->stats.messages++;
    b->file->stats.message_bytes += length;
}

void mpiox_messages_finish_sending(mpiox_messages *m, mpiox_call *call)
{
    if (mpiox_topology_wait(m->base.b->file->topology->n_nodes, m->requests, mpiox_slots_idle, call) != MPIOX_OK)
        mpiox_messages_fail(m, MPIOX_E_MPI, -1, "sending to another node");
}
