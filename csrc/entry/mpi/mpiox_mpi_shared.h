/*
 * mpiox_mpi_shared.h - places at the shared file pointer.
 *
 * The pointer belongs to the library where it carries out all accesses of the file (file->all_ours), else to the MPI
 * library. Both functions set request->position of a request that was prepared at offset 0; an error becomes
 * request->local_error. An access takes whole etypes, so no etype belongs to two accesses.
 */
#ifndef MPIOX_MPI_SHARED_H
#define MPIOX_MPI_SHARED_H

#include "mpiox_handle.h"
#include "mpiox_independent.h"

/* A place for this rank alone. Local. */
void mpiox_mpi_shared_reserve(mpiox_handle *handle, mpiox_request *request);
/* Places in the order of the ranks. Collective. A rank whose request has an error takes part with nothing: all ranks
 * then fail alike and the pointer stays. */
void mpiox_mpi_shared_reserve_ordered(mpiox_handle *handle, mpiox_request *request);

#endif
