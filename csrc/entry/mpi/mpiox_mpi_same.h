/*
 * mpiox_mpi_same.h - the ranks' agreement before any of them opens a file: access mode and file name are the same on
 * all ranks, and the MPI library has descriptors on each of them.
 *
 * Problem.   A rank that opens another file, or opens it otherwise, fails alone, now or in the first collective that
 *            its access mode forbids, and the others hang (OMPIO; ROMIO if the mode is invalid). So does one whose
 *            descriptors run out (OMPIO). The MPI library alone runs out of them on all ranks at the same file, as a
 *            rule; this library's differ by a few, and a program's may differ by any number.
 * Algorithm. Rank 0's arguments come with its choices. A rank with other arguments continues with rank 0's until one
 *            reduction before the open: if any rank differs, or has too few descriptors, no rank opens the file.
 * Promise.   All ranks return MPI_ERR_NOT_SAME, or report that descriptors are few. Different names that lead to one
 *            file on this rank count as the same, and so does a name for which this rank has no folder: nodes may have
 *            a file system under different names.
 */
#ifndef MPIOX_MPI_SAME_H
#define MPIOX_MPI_SAME_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "mpiox_error.h"

/* Rank 0: the name that the others compare theirs with, absolute; "" where it does not fit into `bytes`. */
void mpiox_mpi_same_name(const char *filename, char *name, size_t bytes);
/* Set *filename and *amode to rank 0's, `name` and `amode0`, if they differ. Returns 0, or this rank's value for the
 * agreement: below 0, and the lower the higher its number. Local. */
int mpiox_mpi_same_follow(int rank, const char *name, int amode0, const char **filename, int *amode);
/* Can this rank open a file beside the MPI library? Local. */
bool mpiox_mpi_same_has_descriptors(void);
/* May all ranks open the file? 0, or the same *error on all ranks, which names the lowest rank that differs or lacks
 * descriptors. Descriptors of handles that are not in use are closed for it. Collective, blocking. */
int mpiox_mpi_same_agree(MPI_Comm comm, int differs, mpiox_error *error);

#endif
