/*
 * mpiox_mpi_size.h - the size of a file, as the MPI functions of these names.
 */
#ifndef MPIOX_MPI_SIZE_H
#define MPIOX_MPI_SIZE_H

#include <mpi.h>

int mpiox_mpi_get_size(MPI_File fh, MPI_Offset *size);
int mpiox_mpi_set_size(MPI_File fh, MPI_Offset size);
int mpiox_mpi_preallocate(MPI_File fh, MPI_Offset size);

#endif
