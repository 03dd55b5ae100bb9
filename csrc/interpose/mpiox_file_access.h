/*
 * mpiox_file_access.h - data access: the calls that are taken over.
 *
 * Each function returns false when the call is the MPI library's business (then nothing has been done, on any rank) and
 * true when it has been dealt with; *result is then what the MPI function returns. Whether a call is taken over is
 * decided by what is the same on all ranks; what only one rank sees (a bad count, a type that cannot be decoded) goes
 * into the exchange, where all ranks agree on it.
 */
#ifndef MPIOX_FILE_ACCESS_H
#define MPIOX_FILE_ACCESS_H

#include <mpi.h>
#include <stdbool.h>

#include "mpiox_file.h"

typedef struct mpiox_file_call {
    bool write, collective;
    bool explicit_offset; /* else at the individual file pointer */
    MPI_Offset offset;    /* in etypes of the view */
    void *buffer;         /* not modified by writes */
    MPI_Count count;
    MPI_Datatype datatype;
} mpiox_file_call;

/* Collective, blocking. */
bool mpiox_file_access(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result);
/* Split collectives: everything is done in begin, the status is kept for end. */
bool mpiox_file_access_begin(MPI_File fh, const mpiox_file_call *call, int *result);
bool mpiox_file_access_end(MPI_File fh, bool write, mpiox_split_kind kind, MPI_Status *status, int *result);
/* Ordered: collective, at the shared file pointer, in rank order. Its end is mpiox_file_access_end's. */
bool mpiox_file_access_ordered(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result);
bool mpiox_file_access_ordered_begin(MPI_File fh, const mpiox_file_call *call, int *result);
/* Independent. Here each rank decides for itself. */
bool mpiox_file_access_alone(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result);
/* Nonblocking, independent and collective: *request is an ordinary MPI request. */
bool mpiox_file_access_start(MPI_File fh, const mpiox_file_call *call, MPI_Request *request, int *result);
bool mpiox_file_access_start_all(MPI_File fh, const mpiox_file_call *call, MPI_Request *request, int *result);

/* At the shared file pointer, independent. */
bool mpiox_file_access_shared(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result);
bool mpiox_file_access_shared_start(MPI_File fh, const mpiox_file_call *call, MPI_Request *request, int *result);

/* Are this file's collectives carried out here? The same on all ranks. NULL-safe. */
bool mpiox_file_collective_is_ours(const mpiox_file *file);

#endif
