/*
 * mpiox_mpi_error.h - from an mpiox_error to what an MPI program gets.
 *
 * The returned code has the error class that the MPI library itself uses for such a failure, and a text of its own that
 * names rank, operation, file, offset, length and errno. Both MPI families let MPI_Add_error_code add codes to
 * predefined classes. MPICH has 8192 of them for the life of a process. So a few codes per class are made once, and
 * their texts are reused in turn: the text of a code stays valid until the class has had four more errors. If the MPI
 * library does not return a code's own text, the program gets the class itself, whose text is general.
 */
#ifndef MPIOX_MPI_ERROR_H
#define MPIOX_MPI_ERROR_H

#include <mpi.h>

#include "mpiox_error.h"
#include "mpiox_handle.h"

/* Class of an access during a split collective, and of an end without its begin. */
#ifdef OPEN_MPI
#define MPIOX_ERR_SPLIT MPI_ERR_OTHER
#else
#define MPIOX_ERR_SPLIT MPI_ERR_IO
#endif

/* Describe an erroneous call of the program: its MPI error class (or a code of the MPI library) and the mistake. */
void mpiox_mpi_problem(mpiox_error *error, int error_class, const char *what);

/* Make a code with the error's class and a text of its own. */
int mpiox_mpi_error_code(const char *path, const mpiox_error *error);
/* The class of an open that has failed on some rank, by the lowest rank whose code has one. `result`: this rank's code,
 * which may be MPI_SUCCESS. Collective. */
int mpiox_mpi_error_class_of_open(MPI_Comm comm, int result);
/* Of an open that has failed, `result`: the MPI library's error with the file and errno added, where they can be found
 * out. error_class: its class; MPI_SUCCESS: that of the code. Local. */
int mpiox_mpi_error_of_open(MPI_Comm comm, const char *filename, int amode, int result, int error_class);
/* Make the code, call the file's error handler with it, return it. */
int mpiox_mpi_error_raise(MPI_File fh, const char *path, const mpiox_error *error);
/* The same for an open file; an error that names no rank is this rank's. */
int mpiox_mpi_raise(const mpiox_handle *handle, const mpiox_error *error);
/* The same for an erroneous call, as mpiox_mpi_problem(). */
int mpiox_mpi_raise_problem(const mpiox_handle *handle, int error_class, const char *what);
/* Count a failed call of this rank in the statistics of its file. NULL-safe. */
void mpiox_mpi_count_failure(mpiox_handle *handle, mpiox_spent what, const mpiox_error *error);
/* The same for a call that returns `result`, which is not MPI_SUCCESS; returns `result`. */
int mpiox_mpi_failed(MPI_File fh, mpiox_spent what, int result);

#endif
