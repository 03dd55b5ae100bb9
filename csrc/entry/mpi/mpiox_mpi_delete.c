/*
 * mpiox_mpi_delete.c - MPI_File_delete, also of a file that has a hidden name or is stored as several files.
 */
#include "mpiox_handlers.h"

#include <limits.h>

#include "mpiox_mpi_error.h"
#include "mpiox_mpi_path.h"
#include "mpiox_opener.h"
#include "mpiox_storage_container.h"

/* Delete the file: an index together with its subfiles, any other file by the MPI library, which would delete the index
 * alone. */
static int delete_named(const char *filename, MPI_Info info)
{
    const char *path = filename != NULL && mpiox_mpi_path_is_posix(filename) ? mpiox_mpi_path_opened(filename) : NULL;
    mpiox_error error;

    if (path == NULL || !mpiox_storage_container.delete(path, &error))
        return PMPI_File_delete(filename, info);
    return error.code == MPIOX_OK ? MPI_SUCCESS : mpiox_mpi_error_raise(MPI_FILE_NULL, path, &error);
}

/* Delete the file, and discard the bytes that delegates have for the file. */
int mpiox_mpi_delete(const char *filename, MPI_Info info)
{
    char room[PATH_MAX];
    void *held[MPIOX_OPENERS] = {NULL};
    const bool may_be_held = filename != NULL && mpiox_mpi_path_is_posix(filename);
    const char *name = may_be_held ? mpiox_opener_discard(mpiox_mpi_path(filename), room, held) : NULL;
    const int result = delete_named(name != NULL ? name : filename, info);

    if (may_be_held)
        mpiox_opener_discarded(result == MPI_SUCCESS ? name : NULL, held);
    return result;
}
