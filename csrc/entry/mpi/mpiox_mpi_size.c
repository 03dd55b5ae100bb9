/*
 * mpiox_mpi_size.c - the size of a file, as the MPI functions of these names.
 *
 * The MPI library gets the size from the file system. This library sets it: the MPI libraries' errors name neither the
 * file nor errno, and have other classes than those of a write. With delegates, bytes cached there count as well, and a
 * page that is written later must not undo a new size.
 */
#include "mpiox_handlers.h"

#include <stdio.h>

#include "mpiox_mpi_error.h"
#include "mpiox_handle.h"
#include "mpiox_nonblocking.h"

int mpiox_mpi_get_size(MPI_File fh, MPI_Offset *size)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    const int result = PMPI_File_get_size(fh, size);
    mpiox_error error;
    int64_t bytes = 0;
    int code;

    if (result != MPI_SUCCESS || handle == NULL || (handle->forwarded == NULL && handle->opener == NULL) ||
        size == NULL)
        return result;
    const mpiox_route route = mpiox_handle_route(handle);
    mpiox_route_wait(&route);
    code = handle->forwarded != NULL ? mpiox_forwarded_size(handle->forwarded, &bytes, &error)
                                     : mpiox_storage_size(handle->file->storage, &bytes, &error);
    if (code != MPIOX_OK)
        return mpiox_mpi_raise(handle, &error);
    *size = bytes > *size || handle->opener != NULL ? bytes : *size;
    return MPI_SUCCESS;
}

/* Check for a size that MPI forbids, before any step: MPI libraries detect it on some ranks only, while the others wait
 * for them (OMPIO). The same on all ranks. Collective. */
static bool refused(const mpiox_handle *handle, MPI_Offset size, const char *call, int *result)
{
    char what[sizeof((mpiox_error *)NULL)->what];
    const bool same = mpiox_topology_same(handle->file->topology, size, 0);

    if (same && size >= 0 && !(handle->amode & MPI_MODE_RDONLY))
        return false;
    snprintf(what, sizeof what, "%s %s", call,
             !same      ? "with other sizes on some ranks"
             : size < 0 ? "with a negative size"
                        : "of a file opened with MPI_MODE_RDONLY");
    *result = mpiox_mpi_raise_problem(handle, same && size >= 0 ? MPI_ERR_READ_ONLY : MPI_ERR_ARG, what);
    return true;
}

/* Write all bytes to the file before its size changes, and drop all pages. No rank is inside an access meanwhile: the
 * call is collective. */
int mpiox_mpi_set_size(MPI_File fh, MPI_Offset size)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_error error = {.code = MPIOX_OK}, own;
    int wrong;

    if (!mpiox_handle_is_managed(handle))
        return PMPI_File_set_size(fh, size);
    mpiox_nonblocking_drain(handle);
    if (refused(handle, size, "set_size", &wrong))
        return wrong;
    if (handle->forwarded != NULL)
        mpiox_forwarded_flush_barrier(handle->forwarded, false, true, &error);
    if (mpiox_file_set_size(handle->file, size, &own) != MPIOX_OK) {
        if (error.code != MPIOX_OK) /* the call reports another one */
            mpiox_forwarded_note_error(handle->forwarded, &error);
        return mpiox_mpi_raise(handle, &own);
    }
    if (handle->forwarded != NULL)
        mpiox_forwarded_cut(handle->forwarded, size);
    if (error.code != MPIOX_OK)
        return mpiox_mpi_raise(handle, &error);
    if (size == 0 && handle->opened_as != NULL)
        handle->opener->emptied(handle->opened_as);
    return MPI_SUCCESS;
}

/* By the file system where it can, and done on return: Open MPI 4.1 has rank 0 read and write the whole file again
 * while the other ranks go on, so that they still find the old size. */
int mpiox_mpi_preallocate(MPI_File fh, MPI_Offset size)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_error error = {.code = MPIOX_OK};
    int wrong;

    if (!mpiox_handle_is_managed(handle))
        return PMPI_File_preallocate(fh, size);
    mpiox_nonblocking_drain(handle);
    if (refused(handle, size, "preallocate", &wrong))
        return wrong;
    /* Where the file system cannot reserve space, a byte of every block is read and written back. */
    if (handle->forwarded != NULL && mpiox_forwarded_flush_barrier(handle->forwarded, false, false, &error) != MPIOX_OK)
        return mpiox_mpi_raise(handle, &error);
    if (mpiox_file_preallocate(handle->file, size, &error) == MPIOX_OK)
        return MPI_SUCCESS;
    return mpiox_mpi_raise(handle, &error);
}
