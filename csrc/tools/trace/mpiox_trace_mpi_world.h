/*
 * mpiox_trace_mpi_world.h - handles of the program's MPI library, and the rank of this process.
 *
 * The handles that mpi.h names are objects of the MPI library, to which the tracer is not linked.
 */
#ifndef MPIOX_TRACE_MPI_WORLD_H
#define MPIOX_TRACE_MPI_WORLD_H

#include <stdbool.h>

#include <mpi.h>

#ifndef MPI_VERSION
#error "mpi.h of an MPI library is needed"
#endif

MPI_Comm mpiox_trace_mpi_world(void);
MPI_Comm mpiox_trace_mpi_self(void);
MPI_Request mpiox_trace_mpi_no_request(void);
MPI_Info mpiox_trace_mpi_no_info(void);

/* MPIOX_COMM_*, of a communicator with all ranks in the order of MPI_COMM_WORLD, or of another. */
int mpiox_trace_mpi_kind_of(MPI_Comm comm, bool all);

/* Record the rank in MPI_COMM_WORLD, once; nothing before MPI_Init. */
void mpiox_trace_mpi_learn_rank(void);

#endif
