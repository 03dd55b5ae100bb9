/*
 * mpiox_hints_mca.h - Open MPI's parameters for OMPIO as hints. Internal to csrc/core/hints.
 *
 * Problem.   Users of Open MPI tune OMPIO by `mpirun --mca NAME VALUE`, by the variables OMPI_MCA_NAME (into which
 *            mpirun converts its options) and by files. OMPIO itself uses its parameters as the defaults of the hints
 *            of MPI_Info.
 * Algorithm. The reader searches Open MPI's places for each parameter that has a counterpart among the hints: its
 *            files, the environment, the file that overrides both (opal/mca/base/mca_base_var.c). The values in force
 *            become hints.
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
    bool by_site; /* set by a file of the installation; else by the user */
} mpiox_mca_value;

/* Values by parameter; all zero: no parameter is set. */
typedef struct mpiox_mca {
    mpiox_mca_value values[MPIOX_MCA_PARAMETERS];
} mpiox_mca;

/* Overwrite values by the values in a file of lines "name = value". file: the stream's name, for messages. */
void mpiox_mca_scan_file(mpiox_mca *mca, FILE *stream, const char *file, bool by_site, mpiox_hints_report report,
                         void *context);
/* The same for a file of `mpirun --tune` of Open MPI 4: lines "name = value", or "-mca NAME VALUE ...". */
void mpiox_mca_scan_tuned(mpiox_mca *mca, FILE *stream, const char *file, mpiox_hints_report report, void *context);
/* Overwrite values by the values in the environment. */
void mpiox_mca_scan_environment(mpiox_mca *mca);
/* Read all places, weakest first. folder: of Open MPI's files; NULL: the function reads no files. */
void mpiox_mca_gather(mpiox_mca *mca, const char *folder, mpiox_hints_report report, void *context);
/* Call visit for each hint that follows from the values of the site, or from those of the user. */
void mpiox_mca_visit(const mpiox_mca *mca, bool by_site, mpiox_hints_visit visit, void *context);

#endif
