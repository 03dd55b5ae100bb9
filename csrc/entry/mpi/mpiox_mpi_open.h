/*
 * mpiox_mpi_open.h - open, close, sync, mode and atomicity, as their MPI namesakes.
 */
#ifndef MPIOX_MPI_OPEN_H
#define MPIOX_MPI_OPEN_H

#include <mpi.h>

int mpiox_mpi_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh);
int mpiox_mpi_close(MPI_File *fh);
int mpiox_mpi_sync(MPI_File fh);
int mpiox_mpi_get_amode(MPI_File fh, int *amode);
int mpiox_mpi_set_atomicity(MPI_File fh, int flag);

#endif
