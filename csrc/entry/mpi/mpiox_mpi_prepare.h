/* mpiox_mpi_prepare.h - from the arguments of a data access to a mpiox_request, and back to a status. */
#ifndef MPIOX_MPI_PREPARE_H
#define MPIOX_MPI_PREPARE_H

#include "mpiox_handle.h"
#include "mpiox_independent.h"

typedef struct mpiox_mpi_call {
    bool write, collective;        /* else the access reads; else it is independent */
    mpiox_positioning positioning; /* where the access begins */
    MPI_Offset offset;             /* explicit, in etypes of the view; else 0 */
    void *buffer;                  /* not modified by writes */
    MPI_Count count;               /* items of `datatype` */
    MPI_Datatype datatype;         /* of the memory; the program's */
} mpiox_mpi_call;

/* The state of a data access from its start to its end. */
typedef struct mpiox_prepared {
    mpiox_request request;   /* what the library carries out */
    mpiox_typemap *memory;   /* owned */
    char *packed;            /* owned: stands in for memory of a type that cannot be described; NULL as a rule */
    void *user_buffer;       /* then: the program's memory... */
    MPI_Datatype user_type;  /* ...and a duplicate of its type... */
    MPI_Count user_count;    /* ...and count */
    MPI_Offset pointer_from; /* the individual file pointer was moved from here... */
    MPI_Offset pointer_to;   /* ...to here, in etypes; both -1: it was not */
} mpiox_prepared;

/* Check the arguments, describe the memory, find the position; moves the individual file pointer by the requested
 * bytes. Problems are left in request.local_error: MPIOX_E_UNSUPPORTED means that only the MPI library can carry out
 * the call. Memory of a type that cannot be described (nested too deeply) passes through a packed copy. Local. */
void mpiox_mpi_prepare(mpiox_handle *handle, const mpiox_mpi_call *call, mpiox_prepared *out);
/* The access did not take place: move the individual file pointer back, unless another call has moved it since. */
void mpiox_mpi_prepare_undo(mpiox_handle *handle, const mpiox_prepared *prepared);
/* The data has arrived: put it where the program wants it (packed reads only). In a thread that may call MPI. */
void mpiox_mpi_prepare_finish(mpiox_prepared *prepared);
void mpiox_mpi_prepare_release(mpiox_prepared *prepared);

void mpiox_mpi_fill_status(MPI_Status *status, int64_t bytes);

#endif
