/*
 * mpiox_tools.h - profiling tools that stand between the program and this library.
 *
 * A tool that is preloaded before this library, or linked into the program, wraps some MPI functions and calls PMPI in
 * them. This library then sees some of a file's calls and not others, and must not act as if it saw them all.
 */
#ifndef MPIOX_TOOLS_H
#define MPIOX_TOOLS_H

#include <stdbool.h>

/* Does a function on files not reach this library? Determined once; then the user, who has preloaded the tool, must
 * learn of it, once. */
bool mpiox_tools_hide_files(void);
bool mpiox_tools_hide_waits(void); /* the same of MPI_Wait, MPI_Test and their kin */

/* Darshan's runtime behind this library has PMPI_Finalize, too. There it opens its log by MPI_File_open, but writes and
 * closes it by PMPI: files that are opened from MPI_Finalize on are then the tool's. */
void mpiox_tools_finalize(void);
bool mpiox_tools_own_files(void);

#endif
