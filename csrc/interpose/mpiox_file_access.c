/*
 * mpiox_file_access.c - collective data access, blocking and split. See mpiox_file_access.h.
 *
 * A second split collective is MPI_ERR_OTHER to Open MPI and MPI_ERR_IO to MPICH. Collectives wait until the file's
 * nonblocking ones have run, because MPI orders them.
 */
#include "mpiox_file_access.h"

#include <string.h>

#include "mpiox_file.h"
#include "mpiox_file_error.h"
#include "mpiox_file_pointer.h"
#include "mpiox_file_prepare.h"
#include "mpiox_file_view.h"
#include "mpiox_nonblocking.h"

#ifdef OPEN_MPI
#define ERR_SPLIT MPI_ERR_OTHER
#else
#define ERR_SPLIT MPI_ERR_IO
#endif

bool mpiox_file_collective_is_ours(const mpiox_file *file)
{
    return file != NULL && file->exchange != NULL;
}

/* The call goes to the MPI library: it needs the individual file pointer, and nothing of ours may be under way. */
static void hand_over(mpiox_file *file)
{
    if (file == NULL)
        return;
    mpiox_nonblocking_drain(file);
    mpiox_file_view_tell(file);
    mpiox_file_pointer_hand_over(file);
    atomic_fetch_add_explicit(&file->native_calls, 1, memory_order_relaxed);
}

/* The exchange itself. False: native. */
static bool carry_out(mpiox_file *file, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_prepared prepared;
    mpiox_outcome outcome;
    int code;

    memset(&outcome, 0, sizeof outcome);
    mpiox_nonblocking_drain(file);
    mpiox_file_prepare(file, call, &prepared);
    code = mpiox_exchange_access(file->exchange, &prepared.request, &outcome);
    mpiox_file_prepare_finish(&prepared);
    mpiox_file_prepare_release(&prepared);
    if (code != MPIOX_OK)
        mpiox_file_prepare_undo(file, &prepared);
    if (code == MPIOX_E_UNSUPPORTED)
        return false;
    if (code != MPIOX_OK) {
        mpiox_file_fill_status(status, 0);
        *result = mpiox_file_error_raise(file->handle, file->path, &outcome.error);
        return true;
    }
    mpiox_file_fill_status(status, outcome.bytes);
    *result = MPI_SUCCESS;
    return true;
}

bool mpiox_file_access(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);

    if (mpiox_file_refused(file, call, status, result))
        return true;
    if (mpiox_file_collective_is_ours(file) && carry_out(file, call, status, result))
        return true;
    hand_over(file);
    return false;
}

bool mpiox_file_access_begin(MPI_File fh, const mpiox_file_call *call, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_split split = {.active = true, .write = call->write,
                         .kind = call->explicit_offset ? MPIOX_SPLIT_AT : MPIOX_SPLIT_POINTER};

    if (mpiox_file_refused(file, call, MPI_STATUS_IGNORE, result))
        return true;
    if (mpiox_file_collective_is_ours(file)) {
        bool again = file->split.active;

        if (carry_out(file, call, &split.status, result)) {
            if (!again && *result == MPI_SUCCESS)
                file->split = split;
            return true;
        }
    }
    hand_over(file);
    if (file != NULL)
        file->split.native = true;
    return false;
}

bool mpiox_file_access_end(MPI_File fh, bool write, mpiox_split_kind kind, MPI_Status *status, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error;

    if (file == NULL || file->exchange == NULL)
        return false;
    if (file->split.native) {
        file->split.native = false;
        return false;
    }
    if (!file->split.active || file->split.write != write || file->split.kind != kind) {
        mpiox_file_problem(&error, ERR_SPLIT, "this split collective was not begun");
        error.rank = file->rank;
        *result = mpiox_file_error_raise(fh, file->path, &error);
        return true;
    }
    file->split.active = false;
    if (status != MPI_STATUS_IGNORE) {
        int keep = status->MPI_ERROR; /* a call with one status leaves this field alone */

        *status = file->split.status;
        status->MPI_ERROR = keep;
    }
    *result = MPI_SUCCESS;
    return true;
}
