/*
 * mpiox_file_shared.c - see mpiox_file_shared.h.
 *
 * Problem.   The MPI libraries pass a token from rank to rank, or lock, and access piece after piece.
 * Algorithm. One addition to the pointer reserves the place of an independent access. The places of an ordered access
 *            follow from the sizes: an exclusive prefix sum over the ranks, from the pointer on. Rank 0 moves the
 *            pointer behind them while all others wait for its old value, so no other access can use it meanwhile.
 */
#include "mpiox_file_shared.h"

#include "mpiox_file_error.h"

static int64_t whole_etypes(const mpiox_file *file, const mpiox_request *request) {
    return (request->length + file->etype_bytes - 1) / file->etype_bytes;
}

static void set_position(const mpiox_file *file, int64_t etype, mpiox_request *request) {
    if (request->local_error.code == MPIOX_OK && etype > (INT64_MAX - request->length) / file->etype_bytes)
        mpiox_file_problem(&request->local_error, MPI_ERR_ARG, "the shared file pointer is too large");
    if (request->local_error.code == MPIOX_OK) {
        request->position = etype * file->etype_bytes;
        return;
    }
    request->position = request->length = 0;
    request->local_error.rank = file->rank;
}

void mpiox_file_shared_reserve(mpiox_file *file, mpiox_request *request) {
    int64_t start = 0;
    if (request->local_error.code == MPIOX_OK)
        mpiox_exchange_shared_add(file->exchange, whole_etypes(file, request), &start, &request->local_error);
    set_position(file, start, request);
}

void mpiox_file_shared_reserve_ordered(mpiox_file *file, mpiox_request *request) {
    const MPI_Comm comm = mpiox_exchange_comm(file->exchange);
    const int64_t etypes = whole_etypes(file, request);
    int64_t mine[2] = {etypes, request->local_error.code == MPIOX_OK}, sums[2] = {0, 0}, before = 0, start = -1;
    mpiox_error error = {.code = MPIOX_OK};
    bool placed = PMPI_Exscan(&etypes, &before, 1, MPI_INT64_T, MPI_SUM, comm) == MPI_SUCCESS;
    placed &= PMPI_Reduce(mine, sums, 2, MPI_INT64_T, MPI_SUM, 0, comm) == MPI_SUCCESS;
    if (file->rank == 0 && placed) {
        const int64_t all = sums[1] == file->ranks ? sums[0] : 0; /* no rank has an error */
        if (mpiox_exchange_shared_add(file->exchange, all, &start, &error) != MPIOX_OK) {
            request->local_error = error;
            start = -1;
        }
        before = 0; /* MPI_Exscan leaves it undefined */
    }
    placed &= PMPI_Bcast(&start, 1, MPI_INT64_T, 0, comm) == MPI_SUCCESS;
    if (!placed)
        mpiox_error_set(&request->local_error, MPIOX_E_MPI, 0, -1, -1, "placing an ordered access");
    set_position(file, start < 0 ? 0 : start + before, request);
}
