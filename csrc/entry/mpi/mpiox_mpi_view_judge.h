/*
 * mpiox_mpi_view_judge.h - views that are errors, for this library and the MPI library alike.
 *
 * Problem.   An MPI library judges a rank's part of a view before it communicates. If it refuses the parts of some
 *            ranks only, these return with an error and the others hang.
 * Algorithm. This file checks all that the MPI libraries are known to refuse. The ranks agree on the result before they
 *            call the MPI library. Only views that are not ours cost more than a few comparisons.
 * Guarantee. The error classes are those of ROMIO, under each MPI library. What MPI allows is never refused.
 * Source.    MPI 4.1, section 14.3 (file views).
 */
#ifndef MPIOX_MPI_VIEW_JUDGE_H
#define MPIOX_MPI_VIEW_JUDGE_H

#include "mpiox_handle.h"

/* Set *error where this rank's part of a view is wrong; clear it else. Local. */
void mpiox_mpi_view_judge(const mpiox_handle *handle, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                          const char *datarep, mpiox_error *error);
/* Is it a derived type whose pieces descend, begin before the type or, in a file open for writing, overlap? Local; one
 * pass over its pieces, at once for predefined types. */
bool mpiox_mpi_view_bad_etype(const mpiox_handle *handle, MPI_Datatype etype);
/* Agree: every rank gets the error of the lowest rank that has one, or that the ranks do not give the same data
 * representation. False: there is one. Collective over the file's ranks, blocking. */
bool mpiox_mpi_view_agreed(const mpiox_handle *handle, const char *datarep, mpiox_error *error);

#endif
