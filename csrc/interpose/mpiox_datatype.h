/*
 * mpiox_datatype.h - is a datatype committed? MPI has no such query, but every MPI library refuses to communicate with
 * a type that is not, so one is asked to send an element of it to nobody (no memory is touched), on a communicator
 * whose errors are returned.
 */
#ifndef MPIOX_DATATYPE_H
#define MPIOX_DATATYPE_H

#include <mpi.h>
#include <stdbool.h>

bool mpiox_datatype_is_committed(MPI_Datatype datatype);
/* Free the communicator; before PMPI_Finalize. */
void mpiox_datatype_finalize(void);

#endif
