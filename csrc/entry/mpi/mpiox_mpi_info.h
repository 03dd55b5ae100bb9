/*
 * mpiox_mpi_info.h - what is in force for an open file, as text.
 */
#ifndef MPIOX_MPI_INFO_H
#define MPIOX_MPI_INFO_H

#include "mpiox_handle.h"

/* Print the hints of a file that has just been opened, as Cray's MPI and ROMIO do: rank 0, on standard error, where
 * MPICH_MPIIO_HINTS_DISPLAY or ROMIO_PRINT_HINTS requests it. Local. */
void mpiox_mpi_show_hints(MPI_Comm comm, const char *filename, MPI_File fh);

#endif
