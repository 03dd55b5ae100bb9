/*
 * mpiox_mpi_close.c - MPI_File_close of managed files.
 *
 * First all ranks' bytes are written to the file, or left to delegates that write them behind the close. Then rank 0
 * prints the file's statistics, and this library closes its own path to the file. The MPI library closes the file last,
 * and every rank returns the first error.
 */
#include "mpiox_handlers.h"

#include "mpiox_handle.h"
#include "mpiox_mpi_error.h"
#include "mpiox_mpi_report.h"
#include "mpiox_mpi_view.h"
#include "mpiox_nonblocking.h"
#include "mpiox_opener.h"
#include "mpiox_past_mpi.h"

/* All ranks have closed a file that the MPI library has no access to. 0, or the same *error on all of them. */
static int make_whole(mpiox_handle *handle, mpiox_topology *topology, bool fine, mpiox_error *error)
{
    handle->opener->close(handle->opened_as, handle->amode, fine, error);
    handle->opened_as = NULL;
    return mpiox_topology_agree_error(topology, error);
}

/* For such a file: has no rank got an error that bytes that it wrote are not in it? Collective. */
static bool all_came(const mpiox_handle *handle, mpiox_topology *topology)
{
    return handle->opener == NULL || handle->amode & MPI_MODE_RDONLY ||
           mpiox_topology_all(topology, !atomic_load(&handle->file->damaged));
}

/* Write the delegates' bytes to the file, or leave them to be written behind the close. 0, or *error. */
static int detach(mpiox_handle *handle, mpiox_error *error)
{
    const double begun = mpiox_handle_now(handle);
    const int code = mpiox_delegated_opener.detach(handle->forwarded, error);

    if (handle->forwarded != NULL)
        mpiox_handle_spent(handle, MPIOX_SPENT_SYNC, begun);
    return code;
}

/* This library's part. MPI_SUCCESS, or the first error as a code of the MPI library. */
static int close_managed(mpiox_handle *handle, mpiox_topology *topology)
{
    mpiox_error error;
    int deferred = MPI_SUCCESS;

    mpiox_nonblocking_close(handle);
    if (handle->recorded && topology != NULL)
        mpiox_topology_barrier(topology, NULL, NULL);
    if (detach(handle, &error) != MPIOX_OK)
        deferred = mpiox_mpi_error_code(handle->path, &error);
    mpiox_mpi_report_close(handle);
    mpiox_past_mpi_note_closed(handle);
    mpiox_delegated_opener.release(handle->forwarded);
    mpiox_collective_free(handle->collective);
    const bool fine = all_came(handle, topology);

    if (mpiox_file_close(handle->file, &error) != MPIOX_OK && deferred == MPI_SUCCESS)
        deferred = mpiox_mpi_error_code(handle->path, &error);
    if (handle->opener != NULL && make_whole(handle, topology, fine && deferred == MPI_SUCCESS, &error) != MPIOX_OK)
        deferred = mpiox_mpi_error_code(handle->path, &error);
    mpiox_mpi_view_release(handle);
    if (handle->owns_comm)
        PMPI_Comm_free(&handle->comm);
    mpiox_handle_free(handle);
    return deferred;
}

int mpiox_mpi_close(MPI_File *fh)
{
    mpiox_handle *handle = fh != NULL ? mpiox_handle_remove(*fh) : NULL;
    mpiox_topology *topology = mpiox_handle_is_managed(handle) ? handle->file->topology : NULL;
    const int deferred = handle != NULL ? close_managed(handle, topology) : MPI_SUCCESS;

    if (deferred != MPI_SUCCESS) { /* last: a handler may leave by longjmp */
        mpiox_topology_release(topology);
        topology = NULL;
        PMPI_File_call_errhandler(*fh, deferred);
    }
    const int result = PMPI_File_close(fh);

    mpiox_topology_release(topology); /* not before all ranks have come here: another thread may take it at once */
    return deferred != MPI_SUCCESS ? deferred : result; /* ours names the bytes, and is returned only once */
}
