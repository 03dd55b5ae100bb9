/*
 * mpiox_mpi_report.h - statistics of a file at its close, and of the run at MPI_Finalize.
 */
#ifndef MPIOX_MPI_REPORT_H
#define MPIOX_MPI_REPORT_H

#include "mpiox_handle.h"

void mpiox_mpi_stats(mpiox_handle *handle, mpiox_stats *out); /* this rank's counters so far */
void mpiox_mpi_run_stats(mpiox_stats *out);                   /* of this process: closed files and open ones */

/* Adds the file to the run's totals and prints its own. Collective when handle->comm is set. */
void mpiox_mpi_report_close(mpiox_handle *handle);
/* All ranks of MPI_COMM_WORLD have opened a file together, and rank 0 of it wants (or not) the run's statistics. */
void mpiox_mpi_run_agreed(bool wanted);
bool mpiox_mpi_run_wanted(void); /* local: MPIOX_STATS requests the run's statistics */
/* Prints the run's totals. Collective over MPI_COMM_WORLD where mpiox_mpi_run_agreed(true) was called. */
void mpiox_mpi_run_finalize(void);

#endif
