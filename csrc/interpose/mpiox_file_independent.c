/*
 * mpiox_file_independent.c - independent data access, blocking and nonblocking. See mpiox_file_access.h.
 *
 * Nothing here depends on another rank, so that a rank decides alone what it takes over: every access of a managed file
 * whose view can be described. Small nonblocking accesses to a local file system are carried out at once,
 * because handing them to another thread costs more than the copy into the page cache that they are.
 */
#include <string.h>

#include "mpiox_file.h"
#include "mpiox_file_access.h"
#include "mpiox_file_error.h"
#include "mpiox_file_pointer.h"
#include "mpiox_file_prepare.h"
#include "mpiox_nonblocking.h"

static void hand_over(mpiox_file *file)
{
    if (file == NULL)
        return;
    mpiox_file_pointer_hand_over(file);
    atomic_fetch_add_explicit(&file->native_calls, 1, memory_order_relaxed);
}

/* Without a view of ours: not for us. */
static bool prepare(mpiox_file *file, const mpiox_file_call *call, mpiox_prepared *prepared)
{
    if (file == NULL || file->exchange == NULL || !file->has_view)
        return false;
    mpiox_file_prepare(file, call, prepared);
    return true;
}

bool mpiox_file_access_alone(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_prepared prepared;
    mpiox_outcome outcome;

    if (mpiox_file_refused(file, call, status, result))
        return true;
    if (!prepare(file, call, &prepared)) {
        hand_over(file);
        return false;
    }
    memset(&outcome, 0, sizeof outcome);
    outcome.error = prepared.request.local_error;
    if (outcome.error.code == MPIOX_OK)
        mpiox_exchange_independent(file->exchange, &prepared.request, &outcome);
    mpiox_file_prepare_finish(&prepared);
    mpiox_file_prepare_release(&prepared);
    *result = MPI_SUCCESS;
    mpiox_file_fill_status(status, outcome.bytes);
    if (outcome.error.code != MPIOX_OK) {
        mpiox_file_prepare_undo(file, &prepared);
        *result = mpiox_file_error_raise(file->handle, file->path, &outcome.error);
    }
    return true;
}

bool mpiox_file_access_start(MPI_File fh, const mpiox_file_call *call, MPI_Request *request, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_prepared prepared;
    mpiox_error error;

    if (mpiox_file_refused(file, call, MPI_STATUS_IGNORE, result))
        return true;
    if ((file != NULL && file->waits_hidden) || !prepare(file, call, &prepared)) {
        hand_over(file);
        return false;
    }
    if (prepared.request.local_error.code != MPIOX_OK) { /* a bad call is refused now, not in MPI_Wait */
        mpiox_file_prepare_release(&prepared);
        *result = mpiox_file_error_raise(file->handle, file->path, &prepared.request.local_error);
        return true;
    }
    *result = MPI_SUCCESS;
    if (mpiox_nonblocking_start(file, &prepared, false, mpiox_nonblocking_at_once(file, &prepared), request))
        return true;
    mpiox_file_prepare_undo(file, &prepared);
    mpiox_file_prepare_release(&prepared);
    mpiox_file_problem(&error, MPI_ERR_NO_MEM, "no request for a nonblocking access");
    error.rank = file->rank;
    *result = mpiox_file_error_raise(file->handle, file->path, &error);
    return true;
}

/* Collective: whether it is taken over is the same on all ranks; a problem of this rank alone goes into the exchange. */
bool mpiox_file_access_start_all(MPI_File fh, const mpiox_file_call *call, MPI_Request *request, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_prepared prepared;

    if (mpiox_file_refused(file, call, MPI_STATUS_IGNORE, result))
        return true;
    if (!mpiox_file_collective_is_ours(file) || !file->all_ours) {
        hand_over(file);
        return false;
    }
    mpiox_file_prepare(file, call, &prepared);
    if (mpiox_nonblocking_start(file, &prepared, true, false, request)) {
        *result = MPI_SUCCESS;
        return true;
    }
    /* No thread or no request: this rank carries it out inside the call, which the others do not notice. */
    *result = mpiox_nonblocking_run_now(file, &prepared, request);
    return true;
}
