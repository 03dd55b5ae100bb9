/*
 * mpiox_datatype.h - questions about a datatype that come before its description.
 *
 * Is it committed? MPI has no such query. But every MPI library refuses to communicate with a type that is not
 * committed. So the library sends an element of it to MPI_PROC_NULL (no memory is touched), on a communicator whose
 * errors are returned.
 */
#ifndef MPIOX_DATATYPE_H
#define MPIOX_DATATYPE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of an element when the datatype is a predefined one without gaps, which needs neither a commit nor a
 * description; else 0. The last one is remembered: most programs move small accesses of one type. */
int64_t mpiox_datatype_plain_bytes(MPI_Datatype datatype);
bool mpiox_datatype_is_committed(MPI_Datatype datatype);
/* Free the communicator, while MPI_Finalize runs. A later need makes another one. */
void mpiox_datatype_finalize(void);

#endif
