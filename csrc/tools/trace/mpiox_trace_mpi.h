/*
 * mpiox_trace_mpi.h - the records of the generated MPI entry points (csrc/tools/trace/generate.py).
 *
 * The tracer is linked to no MPI library: it must not bring one into programs that have another one, or none. Functions
 * of the MPI library are looked up at their first use.
 */
#ifndef MPIOX_TRACE_MPI_H
#define MPIOX_TRACE_MPI_H

#include <mpi.h>

#include "mpiox_trace_wrap.h"

#define MPIOX_TRACE_HANDLE(handle) ((int64_t)(intptr_t)(handle))

enum { MPIOX_TRACE_REQUESTS = 32 };

typedef struct mpiox_trace_noted {
    int index; /* in the program's list */
    int64_t request;
} mpiox_trace_noted;

/* The I/O requests among those that a call waits for. */
typedef struct mpiox_trace_waiting {
    mpiox_tracefile_record call;
    const MPI_Request *requests;
    int n, capacity;
    mpiox_trace_noted *noted; /* `few`, or memory of the kernel */
    mpiox_trace_noted few[MPIOX_TRACE_REQUESTS];
} mpiox_trace_waiting;

/* A call on an open file. */
void mpiox_trace_mpi_enter(mpiox_tracefile_record *call, int operation, int64_t handle);
/* A call on a file by its name. */
void mpiox_trace_mpi_enter_name(mpiox_tracefile_record *call, int operation, const char *name);
/* The call is over; in a recording it has the class of its error. */
void mpiox_trace_mpi_leave(mpiox_tracefile_record *call, int result);
void mpiox_trace_mpi_opened(mpiox_tracefile_record *call, MPI_Comm comm, MPI_File file, int result);
/* Whether hints were given. */
void mpiox_trace_mpi_hints(mpiox_tracefile_record *call, MPI_Info info);
void mpiox_trace_mpi_data(mpiox_tracefile_record *call, int64_t count, MPI_Datatype datatype);
void mpiox_trace_mpi_view(mpiox_tracefile_record *call, int64_t displacement, MPI_Datatype etype, MPI_Datatype filetype,
                          const char *datarep);
/* The same values of all MPI libraries: MPICH's for the access mode, those of <stdio.h> for the origin. */
int64_t mpiox_trace_mpi_amode(int amode);
int64_t mpiox_trace_mpi_whence(int whence);
/* A nonblocking access has been started. */
void mpiox_trace_mpi_request(mpiox_tracefile_record *call, MPI_Request request, int result);
/* Whether there are I/O requests among these; then the call has been begun. */
bool mpiox_trace_mpi_wait(mpiox_trace_waiting *waiting, int operation, int count, const MPI_Request *requests);
/* A record for each that is complete. */
void mpiox_trace_mpi_waited(mpiox_trace_waiting *waiting, int result);
/* For a call that queries and completes nothing: a record if it has found something. */
void mpiox_trace_mpi_probed(mpiox_trace_waiting *waiting, int result, bool found);

#endif
