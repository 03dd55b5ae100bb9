/*
 * mpiox_mpi_descriptors.h - do all ranks have the descriptors that opening a file takes?
 *
 * Problem.   Should the MPI library find no descriptor left on one rank, and one on another, they wait for each other
 *            for ever (OMPIO). Alone it runs out on all ranks at the same file, as a rule; this library's descriptors
 *            differ by a few, and a program's may by any number.
 * Algorithm. The ranks agree before any of them opens the file, by one reduction.
 */
#ifndef MPIOX_MPI_DESCRIPTORS_H
#define MPIOX_MPI_DESCRIPTORS_H

#include <mpi.h>
#include <stdbool.h>

#include "mpiox_error.h"

/* Can this rank open the file beside the MPI library: are there some for a page, for libraries that the MPI library
 * loads, for the file? Local. */
bool mpiox_mpi_descriptors_are_many(void);
/* Can the MPI library open it on all ranks? False: *error names the lowest rank on which it cannot; the same on all
 * ranks. Those of handles that are not in use are closed for it. Collective. */
bool mpiox_mpi_descriptors_suffice(MPI_Comm comm, mpiox_error *error);

#endif
