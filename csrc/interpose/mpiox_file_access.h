/*
 * mpiox_file_access.h - the data access calls.
 *
 * Each function returns true when it has dealt with the call: *result is then what the MPI function returns. It
 * returns false when the call is left to the MPI library: the wrapper then calls PMPI. A collective is taken over or
 * left by what is the same on all ranks. What only one rank sees (a bad count, a type that cannot be decoded) goes
 * into the exchange, where all ranks agree on it.
 */
#ifndef MPIOX_FILE_ACCESS_H
#define MPIOX_FILE_ACCESS_H

#include "mpiox_file_prepare.h"

/* Blocking. */
bool mpiox_file_access(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result);
/* Split collective: begin does everything and keeps the status for end. */
bool mpiox_file_access_begin(MPI_File fh, const mpiox_file_call *call, int *result);
bool mpiox_file_access_end(MPI_File fh, bool write, mpiox_positioning positioning, MPI_Status *status, int *result);
/* Nonblocking. *request is an ordinary MPI request. */
bool mpiox_file_access_start(MPI_File fh, const mpiox_file_call *call, MPI_Request *request, int *result);

#endif
