/* mpiox_mpi_descriptors.c - see mpiox_mpi_descriptors.h. */
#include "mpiox_mpi_descriptors.h"

#include <errno.h>

#include "mpiox_storage.h"

enum { MANY = 8, LIBRARY = 4 }; /* LIBRARY: what the MPI library itself takes */

bool mpiox_mpi_descriptors_are_many(void)
{
    return mpiox_storage_has_room(MANY);
}

/* One rank alone waits for nobody: the MPI library says whether it can. */
bool mpiox_mpi_descriptors_suffice(MPI_Comm comm, mpiox_error *error)
{
    int rank = 0, size = 1, first;

    mpiox_storage_make_way();
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    if (size == 1)
        return true;
    first = mpiox_storage_has_room(LIBRARY) ? size : rank;
    if (PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && first == size)
        return true;
    mpiox_error_set(error, MPIOX_E_IO, EMFILE, -1, -1, "open (few descriptors are left: raise ulimit -n)");
    error->rank = first;
    return false;
}
