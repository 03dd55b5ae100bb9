/* mpiox_topology_bcast.c - rank 0's choices before a topology is chosen; see mpiox_topology.h. */
#include "mpiox_topology.h"

int mpiox_topology_bcast(MPI_Comm comm, void *data, int64_t bytes)
{
    mpiox_topology *t;
    while (bytes <= MPIOX_TOPOLOGY_TEXT_BYTES && (t = mpiox_topology_of(comm)) != NULL) {
        if (mpiox_topology_tell(t, data, bytes))
            return MPI_SUCCESS;
        mpiox_topology_free(t);
    }
    return PMPI_Bcast(data, (int)bytes, MPI_BYTE, 0, comm);
}
