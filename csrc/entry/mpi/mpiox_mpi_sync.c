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

/* On one node all ranks have the same cached pages, and the fsync of any of them flushes all bytes that all have
 * written, by the MPI library's descriptor too. Only errors would have to be agreed: programs that sync on the writing
 * rank alone, which MPI forbids, must not wait for ever for that. OMPIO's own sync meets. */
static bool syncs_alone(const mpiox_handle *handle)
{
    return handle->forwarded == NULL && handle->opener == NULL && !handle->file->refreshes &&
           mpiox_topology_one_node(handle->file->topology);
}

/* The delegates and our own descriptor first, so that everything this library wrote is in the file before the MPI
 * library's sync. */
static int sync_together(MPI_File fh, const mpiox_handle *handle, mpiox_error *error)
{
    mpiox_error late;
    bool failed;

    mpiox_file_report_waits(handle->file, true);
    failed = handle->forwarded != NULL &&
             mpiox_forwarded_flush_barrier(handle->forwarded, true, true, error) != MPIOX_OK;
    if (handle->forwarded != NULL)
        mpiox_forwarded_balance(handle->forwarded);
    if (mpiox_file_sync(handle->file, false, failed ? &late : error) != MPIOX_OK)
        failed = true;
    mpiox_file_report_waits(handle->file, false);
    const int result = handle->opener != NULL ? MPI_SUCCESS : PMPI_File_sync(fh);
    if (handle->opened_as != NULL && !failed)
        handle->opener->synced(handle->opened_as);
    return failed ? mpiox_mpi_raise(handle, error) : result; /* ours names the bytes, and is returned only once */
}

int mpiox_mpi_sync(MPI_File fh)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_error error;
    int result = MPI_SUCCESS;

    mpiox_nonblocking_drain(handle);
    const double begun = mpiox_handle_now(handle);
    if (!mpiox_handle_is_managed(handle))
        result = PMPI_File_sync(fh);
    else if (!syncs_alone(handle))
        result = sync_together(fh, handle, &error);
    else if (mpiox_file_sync(handle->file, true, &error) != MPIOX_OK)
        result = mpiox_mpi_raise(handle, &error);
    mpiox_handle_spent(handle, MPIOX_SPENT_SYNC, begun);
    return result;
}
