/*
 * mpiox_file_shared.c - data access at the shared file pointer that is not ordered, and the pointer's own functions.
 *
 * One addition reserves the place of an access; the access itself is an independent one. Where not all of a file's
 * accesses are ours, the shared file pointer is the MPI library's, with everything that uses it.
 */
#include <string.h>

#include "mpiox_file.h"
#include "mpiox_file_access.h"
#include "mpiox_file_error.h"
#include "mpiox_file_prepare.h"
#include "mpiox_file_view.h"
#include "mpiox_nonblocking.h"

static bool is_ours(const mpiox_file *file)
{
    return file != NULL && file->exchange != NULL && file->all_ours;
}

/* Checks, then a place of its own for the access: whole etypes, so that no two accesses meet in one. */
static void prepare(mpiox_file *file, const mpiox_file_call *call, mpiox_prepared *prepared)
{
    mpiox_file_call placed = *call;
    mpiox_request *request = &prepared->request;
    int64_t old = 0;

    placed.explicit_offset = true;
    placed.offset = 0;
    mpiox_file_prepare(file, &placed, prepared);
    if (request->local_error.code != MPIOX_OK)
        return;
    mpiox_exchange_shared_add(file->exchange, (request->length + file->etype_bytes - 1) / file->etype_bytes, &old,
                              &request->local_error);
    if (request->local_error.code == MPIOX_OK && old > (INT64_MAX - request->length) / file->etype_bytes)
        mpiox_file_problem(&request->local_error, MPI_ERR_ARG, "the shared file pointer is too large");
    request->position = old * file->etype_bytes;
    request->local_error.rank = file->rank;
}

static bool failed(mpiox_file *file, mpiox_prepared *prepared, int *result)
{
    if (prepared->request.local_error.code == MPIOX_OK)
        return false;
    mpiox_file_prepare_release(prepared);
    *result = mpiox_file_error_raise(file->handle, file->path, &prepared->request.local_error);
    return true;
}

static void note_native(mpiox_file *file)
{
    if (file != NULL)
        atomic_fetch_add_explicit(&file->native_calls, 1, memory_order_relaxed);
}

bool mpiox_file_access_shared(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_prepared prepared;
    mpiox_outcome outcome;

    if (mpiox_file_refused(file, call, status, result))
        return true;
    if (!is_ours(file)) {
        note_native(file);
        return false;
    }
    mpiox_file_fill_status(status, 0);
    prepare(file, call, &prepared);
    if (failed(file, &prepared, result))
        return true;
    memset(&outcome, 0, sizeof outcome);
    mpiox_exchange_independent(file->exchange, &prepared.request, &outcome);
    mpiox_file_prepare_finish(&prepared);
    mpiox_file_prepare_release(&prepared);
    mpiox_file_fill_status(status, outcome.bytes);
    *result = MPI_SUCCESS;
    if (outcome.error.code != MPIOX_OK)
        *result = mpiox_file_error_raise(file->handle, file->path, &outcome.error);
    return true;
}

bool mpiox_file_access_shared_start(MPI_File fh, const mpiox_file_call *call, MPI_Request *request, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_prepared prepared;
    mpiox_error error;

    if (mpiox_file_refused(file, call, MPI_STATUS_IGNORE, result))
        return true;
    if (!is_ours(file)) {
        note_native(file);
        return false;
    }
    prepare(file, call, &prepared);
    if (failed(file, &prepared, result))
        return true;
    *result = MPI_SUCCESS;
    if (mpiox_nonblocking_start(file, &prepared, false, mpiox_nonblocking_at_once(file, &prepared), request))
        return true;
    mpiox_file_prepare_release(&prepared);
    mpiox_file_problem(&error, MPI_ERR_NO_MEM, "no request for a nonblocking access");
    error.rank = file->rank;
    *result = mpiox_file_error_raise(file->handle, file->path, &error);
    return true;
}

/* ---- the pointer ------------------------------------------------------------------------------------------------- */

/* Where MPI_File_seek_shared shall put the pointer; negative: nowhere. */
static MPI_Offset target_of(mpiox_file *file, MPI_Offset offset, int whence)
{
    mpiox_error error = {.code = MPIOX_OK};
    int64_t from = 0;
    int result = MPI_SUCCESS;

    if (whence == MPI_SEEK_CUR)
        mpiox_exchange_shared_add(file->exchange, 0, &from, &error);
    else if (whence == MPI_SEEK_END)
        from = mpiox_file_view_end(file, &result);
    else if (whence != MPI_SEEK_SET)
        return -1;
    if (error.code != MPIOX_OK || result != MPI_SUCCESS || __builtin_add_overflow(from, offset, &from))
        return -1;
    return from;
}

/* Nobody may still be using the pointer when rank 0 moves it, and nobody go on before it has. */
int mpiox_file_seek_shared(MPI_File fh, MPI_Offset offset, int whence)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error = {.code = MPIOX_OK};
    bool fine = true;

    if (!is_ours(file))
        return PMPI_File_seek_shared(fh, offset, whence);
    mpiox_nonblocking_drain(file); /* collectives under way use the same barrier */
    mpiox_exchange_all(file->exchange, true);
    if (file->rank == 0) {
        const MPI_Offset target = target_of(file, offset, whence);

        fine = target >= 0 && mpiox_exchange_shared_set(file->exchange, target, &error) == MPIOX_OK;
    }
    if (mpiox_exchange_all(file->exchange, fine))
        return MPI_SUCCESS;
    if (error.code == MPIOX_OK)
        mpiox_file_problem(&error, MPI_ERR_ARG, "bad offset or whence for the shared file pointer");
    error.rank = file->rank;
    return mpiox_file_error_raise(fh, file->path, &error);
}

int mpiox_file_get_position_shared(MPI_File fh, MPI_Offset *offset)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error = {.code = MPIOX_OK};
    int64_t value = 0;

    if (!is_ours(file) || offset == NULL)
        return PMPI_File_get_position_shared(fh, offset);
    if (mpiox_exchange_shared_add(file->exchange, 0, &value, &error) == MPIOX_OK) {
        *offset = value;
        return MPI_SUCCESS;
    }
    error.rank = file->rank;
    return mpiox_file_error_raise(fh, file->path, &error);
}
