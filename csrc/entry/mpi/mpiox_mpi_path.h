/* mpiox_mpi_path.h - file names in the form of ROMIO and OMPIO: an optional file-system prefix, then a path. */
#ifndef MPIOX_MPI_PATH_H
#define MPIOX_MPI_PATH_H

#include <limits.h>
#include <stdbool.h>

/* The path behind a known prefix ("ufs:", "lustre:"...), or the name itself. Points into filename. */
const char *mpiox_mpi_path(const char *filename);
/* After the MPI library has opened the file: the path of that file. NULL: not known. ROMIO cuts a prefix off, OMPIO
 * keeps it in the name ("ufs:a" is a file of that name); if only one of both files exists, it is that one. If both
 * exist, a guess would write to a file that the program has not named. Blocking (two calls of stat), local. */
const char *mpiox_mpi_path_opened(const char *filename);
/* False: the prefix names a file system that POSIX calls do not reach. */
bool mpiox_mpi_path_is_posix(const char *filename);

/* The folder of a path, "." without one. False: too long. */
bool mpiox_mpi_path_folder(const char *path, char folder[PATH_MAX]);
/* errno of an attempt to open the file; 0: it can be opened, or no reason is found. For messages only. Blocking. */
int mpiox_mpi_path_errno(const char *path, bool write, bool create);

#endif
