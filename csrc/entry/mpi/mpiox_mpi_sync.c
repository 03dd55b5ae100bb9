/*
 * mpiox_mpi_sync.c - what other ranks see of an access: MPI_File_sync and atomicity.
 */
#include "mpiox_handlers.h"
#include "mpiox_mpi_error.h"
#include "mpiox_handle.h"
#include "mpiox_nonblocking.h"

int mpiox_mpi_set_atomicity(MPI_File fh, int flag)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_error error = {.code = MPIOX_OK};
    int result = PMPI_File_set_atomicity(fh, flag), values[] = {result == MPI_SUCCESS, flag != 0, flag == 0};

    if (!mpiox_handle_is_managed(handle))
        return result;
    mpiox_nonblocking_drain(handle);
    if (handle->forwarded != NULL)
        mpiox_forwarded_flush_barrier(handle->forwarded, false, true, &error);
    /* MPI libraries may refuse flags that differ on some ranks only; the mode decides how all ranks access the file. */
    if (mpiox_topology_min(handle->file->topology, 3, values, NULL, 0) == MPIOX_OK && values[0] &&
        (values[1] || values[2])) {
        mpiox_file_set_atomicity(handle->file, flag != 0);
        return error.code != MPIOX_OK ? mpiox_mpi_raise(handle, &error) : result;
    }
    if (error.code != MPIOX_OK) /* lost bytes, which the call does not report */
        mpiox_forwarded_note_error(handle->forwarded, &error);
    return result != MPI_SUCCESS ? result
                                 : mpiox_mpi_raise_problem(handle, MPI_ERR_ARG, "set_atomicity (ranks differ)");
}

/* The delegates and our own descriptor first, so that everything this library wrote is in the file before the MPI
 * library's sync. */
int mpiox_mpi_sync(MPI_File fh)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_error error, late;
    bool failed;
    int result;

    mpiox_nonblocking_drain(handle);
    const double begun = mpiox_handle_now(handle);
    failed = mpiox_handle_is_managed(handle) && handle->forwarded != NULL &&
             mpiox_forwarded_flush_barrier(handle->forwarded, true, true, &error) != MPIOX_OK;
    if (handle != NULL && handle->forwarded != NULL)
        mpiox_forwarded_balance(handle->forwarded);
    if (mpiox_handle_is_managed(handle) && mpiox_file_sync(handle->file, failed ? &late : &error) != MPIOX_OK)
        failed = true;
    result = handle != NULL && handle->opener != NULL ? MPI_SUCCESS : PMPI_File_sync(fh);
    mpiox_handle_spent(handle, MPIOX_SPENT_SYNC, begun);
    if (handle != NULL && handle->opened_as != NULL && !failed)
        handle->opener->synced(handle->opened_as);
    return failed ? mpiox_mpi_raise(handle, &error) : result; /* ours names the bytes, and is returned only once */
}
