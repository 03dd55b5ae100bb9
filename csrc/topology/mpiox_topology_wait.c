/* mpiox_topology_wait.c - waiting for the MPI library without spinning; see mpiox_topology.h. */
#include "mpiox_topology.h"
#include "mpiox_wait.h"

static _Thread_local bool no_mpi; /* the program's thread lets MPI make progress */

void mpiox_topology_forbid_mpi(bool forbid)
{
    no_mpi = forbid;
}

bool mpiox_topology_progress(void *context)
{
    const mpiox_topology *topology = context;
    int flag;
    if (no_mpi)
        return false;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, topology->comm, &flag, MPI_STATUS_IGNORE);
    return false;
}

/* One by one, not by MPI_Testall: whose failure ended it says only a status each. */
int mpiox_topology_wait(int n, MPI_Request *requests, bool (*work)(void *), void *context)
{
    mpiox_backoff backoff = {0};
    int code = MPIOX_OK;
    for (int i = 0; i < n;) {
        int done = 0;
        if (requests[i] != MPI_REQUEST_NULL && PMPI_Test(&requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            requests[i] = MPI_REQUEST_NULL; /* nothing more can be learnt of it */
            code = MPIOX_E_MPI;
        }
        if (requests[i] == MPI_REQUEST_NULL)
            i++;
        else if (!work || !work(context))
            mpiox_wait_backoff(&backoff);
    }
    return code;
}

int mpiox_topology_finish(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? mpiox_topology_wait(1, request, NULL, NULL) : MPIOX_E_MPI;
}
