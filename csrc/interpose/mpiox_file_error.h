/*
 * mpiox_file_error.h - from a mpiox_error to what an MPI program gets.
 *
 * The returned code has the error class that the MPI library itself uses for such a failure, and a text of its own that
 * names rank, operation, file, offset, length and errno. Both MPI families let MPI_Add_error_code add codes to
 * predefined classes. MPICH has 8192 of them for the life of a process, so a few codes per class are made once and
 * their texts reused in turn; a code's text is good until four more errors of the class have occurred.
 */
#ifndef MPIOX_FILE_ERROR_H
#define MPIOX_FILE_ERROR_H

#include <mpi.h>

#include "mpiox_error.h"

/* Error class of the failure. */
int mpiox_file_error_class(const mpiox_error *error);
/* A code with the failure's class and a text of its own. */
int mpiox_file_error_code(const char *path, const mpiox_error *error);
/* Make the code, call the file's error handler with it, return it. */
int mpiox_file_error_raise(MPI_File handle, const char *path, const mpiox_error *error);

#endif
