/*
 * mpiox_hints_mca.h - Open MPI's parameters for OMPIO as hints. Internal to csrc/core/hints.
 *
 * Problem.   Users of Open MPI tune OMPIO by `mpirun --mca NAME VALUE`, by the variables OMPI_MCA_NAME (to which mpirun
 *            converts the former) and by files. For OMPIO itself its parameters are the defaults of the hints of
 *            MPI_Info.
 * Algorithm. Every parameter that has a counterpart is searched for in Open MPI's places: its files, the environment,
 *            the file that overrides both (opal/mca/base/mca_base_var.c). The values in force become hints.
 */
#ifndef MPIOX_HINTS_MCA_H
#define MPIOX_HINTS_MCA_H

#include <stdbool.h>
#include <stdio.h>

#include "mpiox_hints_text.h"

enum { MPIOX_MCA_PARAMETERS = 9, MPIOX_MCA_VALUE_BYTES = 64, MPIOX_MCA_WHERE_BYTES = 512 };

typedef struct mpiox_mca_value {
    char text[MPIOX_MCA_VALUE_BYTES]; /* "": not set */
    char where[MPIOX_MCA_WHERE_BYTES];
    bool by_site; /* by a file of the installation; else by the user */
} mpiox_mca_value;

/* Values by parameter; all zero: none is set. */
typedef struct mpiox_mca {
    mpiox_mca_value values[MPIOX_MCA_PARAMETERS];
} mpiox_mca;

/* Overwrite values by those of a file of lines "name = value". file: the stream's name, for messages. */
void mpiox_mca_scan_file(mpiox_mca *mca, FILE *stream, const char *file, bool by_site, mpiox_hints_report report,
                         void *context);
/* The same for a file of `mpirun --tune` of Open MPI 4: lines "name = value", or "-mca NAME VALUE ...". */
void mpiox_mca_scan_tuned(mpiox_mca *mca, FILE *stream, const char *file, mpiox_hints_report report, void *context);
/* Overwrite values by those of the environment. */
void mpiox_mca_scan_environment(mpiox_mca *mca);
/* All of them, weakest first. folder: where the files of the Open MPI installation are; NULL: no files are read. */
void mpiox_mca_gather(mpiox_mca *mca, const char *folder, mpiox_hints_report report, void *context);
/* Call visit for the hints that the values of the site, or those of the user, are. */
void mpiox_mca_visit(const mpiox_mca *mca, bool by_site, mpiox_hints_visit visit, void *context);

#endif
