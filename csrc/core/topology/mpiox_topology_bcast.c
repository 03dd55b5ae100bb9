/* mpiox_topology_bcast.c - rank 0's choices before a topology is chosen; see mpiox_topology.h. */
#include "mpiox_parts.h"
#include "mpiox_topology.h"

int mpiox_topology_bcast(MPI_Comm comm, void *data, int64_t bytes)
{
    mpiox_topology *t;
    int size = 1;
    PMPI_Comm_size(comm, &size);
    if (size == 1) /* it does not wait */
        return MPI_SUCCESS;
    while (bytes <= MPIOX_TOPOLOGY_TEXT_BYTES && (t = mpiox_topology_of(comm)) != NULL) {
        if (mpiox_topology_publish(t, data, bytes))
            return MPI_SUCCESS;
        mpiox_topology_free(t);
    }
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_WAITING);
    const int result = PMPI_Bcast(data, (int)bytes, MPI_BYTE, 0, comm);
    mpiox_parts_on(before);
    return result;
}
