/*
 * mpiox_mpi_access.h - the data access calls.
 *
 * Each function returns true when it has dealt with the call: *result is then what the MPI function returns. It
 * returns false when the call is left to the MPI library: the wrapper then calls PMPI. A collective is taken over or
 * left by what is the same on all ranks. What only one rank sees (a bad count, a type that cannot be decoded) goes
 * into the collective, where all ranks agree on it.
 */
#ifndef MPIOX_MPI_ACCESS_H
#define MPIOX_MPI_ACCESS_H

#include "mpiox_mpi_prepare.h"

/* Blocking. */
bool mpiox_mpi_access(MPI_File fh, const mpiox_mpi_call *call, MPI_Status *status, int *result);
/* Split collective: begin does everything and keeps the status for end. */
bool mpiox_mpi_access_begin(MPI_File fh, const mpiox_mpi_call *call, int *result);
bool mpiox_mpi_access_end(MPI_File fh, bool write, mpiox_positioning positioning, MPI_Status *status, int *result);
/* Nonblocking. *request is an ordinary MPI request. */
bool mpiox_mpi_access_start(MPI_File fh, const mpiox_mpi_call *call, MPI_Request *request, int *result);

#endif
