/*
 * mpiox_mpi_seek.h - moving and reading the file pointers, as their MPI namesakes.
 */
#ifndef MPIOX_MPI_SEEK_H
#define MPIOX_MPI_SEEK_H

#include <mpi.h>

int mpiox_mpi_seek(MPI_File fh, MPI_Offset offset, int whence);
int mpiox_mpi_get_position(MPI_File fh, MPI_Offset *offset);
int mpiox_mpi_seek_shared(MPI_File fh, MPI_Offset offset, int whence);
int mpiox_mpi_get_position_shared(MPI_File fh, MPI_Offset *offset);

#endif
