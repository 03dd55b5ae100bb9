/*
 * mpiox_mpi_reduce.h - statistics of a file or of the run over its ranks, by PMPI_Reduce. Rank 0 has the results; each
 * function returns the MPI library's error code unless stated otherwise.
 */
#ifndef MPIOX_MPI_REDUCE_H
#define MPIOX_MPI_REDUCE_H

#include "mpiox_handle.h"

/* Sums and maxima of counters, of `files` too, and the slowest rank. `rank`: this one's in comm; handle: NULL for the
 * run. Collective over comm. */
int mpiox_mpi_reduce_stats(mpiox_stats *stats, const mpiox_handle *handle, int rank, MPI_Comm comm, int64_t files[2],
                           mpiox_stats_slowest *slowest);
/* The slowest rank if this rank reports alone. Local. */
void mpiox_mpi_slowest_alone(const mpiox_stats *stats, const mpiox_handle *handle, mpiox_stats_slowest *out);
/* When the file was in use on any rank, s. Collective over handle->comm unless handle->reports_alone. */
int mpiox_mpi_reduce_span(mpiox_handle *handle, mpiox_stats_span *out);
/* Write to stats->delegation whether delegates would have paid. Collective over handle->comm. */
int mpiox_mpi_reduce_paying(const mpiox_handle *handle, mpiox_stats *stats);

/* The counters of all ranks' delegates. Collective over MPI_COMM_WORLD. False: there are none, or not for all ranks. */
bool mpiox_mpi_reduce_delegates(int rank, mpiox_stats_delegates *out);
bool mpiox_mpi_own_delegates(mpiox_stats_delegates *out); /* those that this process sees; local */

#endif
