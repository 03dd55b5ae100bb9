/*
 * mpiox_mpi_print.h - statistics as text: on standard error a line, or the line and a table, by the level of the hint;
 * in the file of MPIOX_STATS_FILE a line of JSON, appended in one write. The page of a run reads them from a file of
 * its own (MPIOX_REPORT_STATS), independently of the user's settings. All functions are local.
 */
#ifndef MPIOX_MPI_PRINT_H
#define MPIOX_MPI_PRINT_H

#include "mpiox_handle.h"

enum { MPIOX_MPI_HINTS_MAX = sizeof(((mpiox_hints *)0)->source), MPIOX_MPI_VALUE_BYTES = 256 };

typedef struct mpiox_mpi_hints {                             /* the hints of one file that are not defaults */
    mpiox_stats_hint hints[MPIOX_MPI_HINTS_MAX];             /* the first `count`; .value points into values[] */
    char values[MPIOX_MPI_HINTS_MAX][MPIOX_MPI_VALUE_BYTES]; /* the text of each value */
    int count;                                               /* hints in hints[] */
} mpiox_mpi_hints;

void mpiox_mpi_hint_texts(const mpiox_hints *hints, mpiox_mpi_hints *out); /* with the source of each */
void mpiox_mpi_print(const mpiox_stats *stats, const mpiox_stats_subject *subject, mpiox_stats_level level);

#endif
