/*
 * mpiox_file_coherence.c - files of several nodes whose caches nothing keeps coherent.
 *
 * Problem.   On NFS, FUSE and the like every node has caches of its own. MPI promises a rank that it sees what another
 *            has written once both have called MPI_File_sync with a barrier between, and what it has written itself at
 *            once (MPI-4.1, section 14.6.1). Between nodes the second is as hard as the first: the bytes that a rank
 *            writes in a collective leave by an aggregator's node, and may come back through the rank's own node.
 * Algorithm. Every rank knows whether it has written by its descriptor since the last flush. To make the file coherent,
 *            each rank that has written flushes its descriptor. If any rank has flushed, one rank of every node then
 *            drops the bytes that its client has cached (storage/mpiox_storage_refresh.h). The ranks do this after the
 *            opening, in MPI_File_sync, and, with several nodes, around every two-phase collective that writes or
 *            follows a write. Locks of the atomic mode and of the shared file pointer do the same for one rank. No rank
 *            reads bytes to write them back, or maps the file, and file domains are whole blocks.
 * Guarantee. MPI's rules, also among files of other communicators, where writes of two clients into one page are kept
 *            apart by the client (NFS and FUSE without its write-back cache do so).
 */
#include "mpiox_file.h"
#include "mpiox_storage_refresh.h"

typedef struct refreshing {
    mpiox_file *file;
    mpiox_error *error;
} refreshing;

static void refresh(void *context)
{
    const refreshing *mine = context;
    mpiox_storage_refresh(mine->file->storage, mine->error);
}

int mpiox_file_settle(mpiox_file *file, mpiox_error *error)
{
    const int64_t written = atomic_load(&file->storage->counters.write_requests);
    *error = (mpiox_error){.code = MPIOX_OK};
    if (!file->refreshes || written == file->settled)
        return MPIOX_OK;
    file->settled = written;
    return mpiox_storage_sync(file->storage, error);
}

void mpiox_file_unsettle(mpiox_file *file)
{
    file->settled = -1;
}

int mpiox_file_refresh(mpiox_file *file, mpiox_error *error)
{
    refreshing mine = {file, error};
    *error = (mpiox_error){.code = MPIOX_OK};
    if (!file->refreshes)
        return MPIOX_OK;
    mpiox_topology_barrier(file->topology, refresh, &mine);
    return mpiox_topology_agree_error(file->topology, error);
}

int mpiox_file_make_coherent(mpiox_file *file, mpiox_error *error)
{
    *error = (mpiox_error){.code = MPIOX_OK};
    if (!file->refreshes || mpiox_topology_one_node(file->topology))
        return MPIOX_OK;
    int untouched = atomic_load(&file->storage->counters.write_requests) == file->settled;
    mpiox_file_settle(file, error);
    if (mpiox_topology_agree(file->topology, error, 1, &untouched) != MPIOX_OK || untouched)
        return error->code;
    return mpiox_file_refresh(file, error);
}
