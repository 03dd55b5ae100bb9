/*
 * mpiox_file_report.h - statistics of a file at its close and of the run at MPI_Finalize.
 */
#ifndef MPIOX_FILE_REPORT_H
#define MPIOX_FILE_REPORT_H

#include "mpiox_file_table.h"

void mpiox_file_stats(mpiox_file *file, mpiox_stats *out); /* this rank's counters so far */
void mpiox_file_run_stats(mpiox_stats *out);               /* of this process: closed files and open ones */

/* Adds the file to the run's totals and prints its own. Collective when file->comm is set. */
void mpiox_file_report_close(mpiox_file *file);
/* All ranks of MPI_COMM_WORLD have opened a file together, and rank 0 of it wants (or not) the run's statistics. */
void mpiox_file_run_agreed(bool wanted);
bool mpiox_file_run_wanted(void); /* local: MPIOX_STATS asks for the run's statistics */
/* Prints the run's totals. Collective over MPI_COMM_WORLD where mpiox_file_run_agreed(true) was called. */
void mpiox_file_run_finalize(void);

#endif
