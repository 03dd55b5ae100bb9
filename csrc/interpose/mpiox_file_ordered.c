/*
 * mpiox_file_ordered.c - ordered data access: collectives at the shared file pointer, in rank order.
 *
 * Problem.   The MPI libraries pass a token from rank to rank, or lock, and access piece after piece.
 * Algorithm. The places follow from the sizes: an exclusive prefix sum over the ranks, from the shared file pointer on.
 *            The data then moves as in any collective at explicit offsets. Rank 0 moves the pointer behind it while all
 *            others are waiting for what it was, so that nobody else can be using it.
 * Guarantee. A rank with a bad call takes part with nothing; then all ranks fail alike and the pointer stays.
 */
#include <string.h>

#include "mpiox_file.h"
#include "mpiox_file_access.h"
#include "mpiox_file_error.h"
#include "mpiox_file_prepare.h"
#include "mpiox_nonblocking.h"

/* This rank's first etype. Errors of the pointer, or of MPI, become request->local_error. */
static int64_t find_place(mpiox_file *file, mpiox_request *request)
{
    MPI_Comm comm = mpiox_exchange_comm(file->exchange);
    const bool fine = request->local_error.code == MPIOX_OK;
    int64_t etypes = (request->length + file->etype_bytes - 1) / file->etype_bytes, before = 0;
    int64_t mine[2] = {etypes, fine}, sums[2] = {0, 0}, start = -1;
    mpiox_error error = {.code = MPIOX_OK};

    int placed = PMPI_Exscan(&etypes, &before, 1, MPI_INT64_T, MPI_SUM, comm);
    const int summed = PMPI_Reduce(mine, sums, 2, MPI_INT64_T, MPI_SUM, 0, comm);

    if (file->rank == 0 && summed == MPI_SUCCESS &&
        mpiox_exchange_shared_add(file->exchange, sums[1] == file->ranks ? sums[0] : 0, &start, &error) != MPIOX_OK) {
        start = -1;
        request->local_error = error;
    }
    placed = placed == MPI_SUCCESS ? summed : placed;
    if (PMPI_Bcast(&start, 1, MPI_INT64_T, 0, comm) != MPI_SUCCESS || placed != MPI_SUCCESS) {
        mpiox_error_set(&request->local_error, MPIOX_E_MPI, 0, -1, -1, "placing an ordered access");
        start = -1;
    }
    return start < 0 ? 0 : start + (file->rank == 0 ? 0 : before);
}

static void carry_out(mpiox_file *file, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_file_call placed = *call;
    mpiox_prepared prepared;
    mpiox_request *request = &prepared.request;
    mpiox_outcome outcome;
    int64_t place;

    memset(&outcome, 0, sizeof outcome);
    placed.explicit_offset = true; /* at 0 until the place is known: what is checked here is the rest */
    placed.offset = 0;
    mpiox_file_prepare(file, &placed, &prepared);
    place = find_place(file, request);
    if (request->local_error.code == MPIOX_OK && place > (INT64_MAX - request->length) / file->etype_bytes)
        mpiox_file_problem(&request->local_error, MPI_ERR_ARG, "the shared file pointer is too large");
    request->position = request->local_error.code == MPIOX_OK ? place * file->etype_bytes : 0;
    request->length = request->local_error.code == MPIOX_OK ? request->length : 0;
    request->local_error.rank = file->rank;
    mpiox_exchange_access(file->exchange, request, &outcome);
    mpiox_file_prepare_finish(&prepared);
    mpiox_file_prepare_release(&prepared);
    mpiox_file_fill_status(status, outcome.error.code == MPIOX_OK ? outcome.bytes : 0);
    *result = MPI_SUCCESS;
    if (outcome.error.code != MPIOX_OK)
        *result = mpiox_file_error_raise(file->handle, file->path, &outcome.error);
}

bool mpiox_file_access_ordered(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);

    if (mpiox_file_refused(file, call, status, result))
        return true;
    if (file != NULL && file->exchange != NULL && file->all_ours) {
        mpiox_nonblocking_drain(file);
        carry_out(file, call, status, result);
        return true;
    }
    if (file != NULL)
        atomic_fetch_add_explicit(&file->native_calls, 1, memory_order_relaxed);
    return false;
}

bool mpiox_file_access_ordered_begin(MPI_File fh, const mpiox_file_call *call, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_split split = {.active = true, .write = call->write, .kind = MPIOX_SPLIT_ORDERED};
    const bool again = file != NULL && file->split.active;

    if (!mpiox_file_access_ordered(fh, call, &split.status, result)) {
        if (file != NULL)
            file->split.native = true;
        return false;
    }
    if (!again && *result == MPI_SUCCESS)
        file->split = split;
    return true;
}
