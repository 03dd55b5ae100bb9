/*
 * mpiox_file.h - open, close, sync, preallocation, hints and atomicity, as their MPI namesakes.
 */
#ifndef MPIOX_FILE_H
#define MPIOX_FILE_H

#include <mpi.h>

int mpiox_file_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh);
int mpiox_file_close(MPI_File *fh);
int mpiox_file_sync(MPI_File fh);
int mpiox_file_preallocate(MPI_File fh, MPI_Offset size);
int mpiox_file_get_info(MPI_File fh, MPI_Info *info_used);
int mpiox_file_set_atomicity(MPI_File fh, int flag);

#endif
