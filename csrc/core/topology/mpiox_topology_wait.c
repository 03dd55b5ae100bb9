/* mpiox_topology_wait.c - waiting for the MPI library without spinning; see mpiox_topology.h. */
#include "mpiox_topology.h"
#include "mpiox_parts.h"
#include "mpiox_wait.h"

static _Thread_local bool no_mpi; /* the program's thread lets MPI make progress */

void mpiox_topology_forbid_mpi(bool forbid)
{
    no_mpi = forbid;
}

/* Probe for a message with a tag that hardly any program uses, the highest that MPI promises: if libraries find one,
 * they do nothing else. On a communicator that always exists, since a topology may have none. */
bool mpiox_topology_progress(void *context)
{
    enum { HIGHEST_TAG = 32767 };
    int flag = 0;
    (void)context;
    if (!no_mpi)
        PMPI_Iprobe(MPI_ANY_SOURCE, HIGHEST_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    return false;
}

/* One by one, not by MPI_Testall, which reports only by status which request has failed. */
int mpiox_topology_wait(int n, MPI_Request *requests, bool (*work)(void *), void *context)
{
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_WAITING);
    mpiox_backoff backoff = {0};
    int code = MPIOX_OK;
    for (int i = 0; i < n;) {
        int done = 0;
        if (requests[i] != MPI_REQUEST_NULL && PMPI_Test(&requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            requests[i] = MPI_REQUEST_NULL; /* its state cannot be queried any more */
            code = MPIOX_E_MPI;
        }
        if (requests[i] == MPI_REQUEST_NULL) {
            i++;
            backoff.waited = (mpiox_waited){0};
        } else if (!work || !work(context)) {
            mpiox_wait_backoff(&backoff);
        }
    }
    mpiox_parts_on(before);
    return code;
}

int mpiox_topology_finish(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? mpiox_topology_wait(1, request, NULL, NULL) : MPIOX_E_MPI;
}
