/*
 * mpiox_mpi_shared.c - see mpiox_mpi_shared.h.
 *
 * Problem.   The MPI libraries pass a token from rank to rank, or lock, and access piece after piece.
 * Algorithm. One addition to the pointer reserves the place of an independent access. The places of an ordered access
 *            follow from the sizes: an exclusive prefix sum over the ranks, from the pointer on. Rank 0 moves the
 *            pointer behind them while all others wait for its old value, so no other access can use it meanwhile.
 */
#include "mpiox_mpi_shared.h"

#include "mpiox_mpi_error.h"

static int64_t whole_etypes(const mpiox_handle *handle, const mpiox_request *request)
{
    return (request->length + handle->etype_bytes - 1) / handle->etype_bytes;
}

static void set_position(const mpiox_handle *handle, int64_t etype, mpiox_request *request)
{
    if (request->local_error.code == MPIOX_OK && etype > (INT64_MAX - request->length) / handle->etype_bytes)
        mpiox_mpi_problem(&request->local_error, MPI_ERR_ARG, "the shared file pointer is too large");
    if (request->local_error.code == MPIOX_OK) {
        request->position = etype * handle->etype_bytes;
        return;
    }
    request->position = request->length = 0;
    request->local_error.rank = handle->rank;
}

void mpiox_mpi_shared_reserve(mpiox_handle *handle, mpiox_request *request)
{
    int64_t start = 0;
    if (request->local_error.code == MPIOX_OK)
        mpiox_shared_pointer_add(handle->file, whole_etypes(handle, request), &start, &request->local_error);
    set_position(handle, start, request);
}

void mpiox_mpi_shared_reserve_ordered(mpiox_handle *handle, mpiox_request *request)
{
    mpiox_topology *topology = handle->file->topology;
    const int64_t mine[MPIOX_TOPOLOGY_SUMS] = {whole_etypes(handle, request), request->local_error.code == MPIOX_OK};
    int64_t before[MPIOX_TOPOLOGY_SUMS], sums[MPIOX_TOPOLOGY_SUMS], start = -1;
    mpiox_error error = {.code = MPIOX_OK};
    bool placed = mpiox_topology_sums(topology, mine, before, sums) == MPIOX_OK;
    if (handle->rank == 0 && placed) {
        const int64_t all = sums[1] == handle->ranks ? sums[0] : 0; /* no rank has an error */
        if (mpiox_shared_pointer_add(handle->file, all, &start, &error) != MPIOX_OK) {
            request->local_error = error;
            start = -1;
        }
    }
    placed &= mpiox_topology_spread(topology, 0, &start, sizeof start) == MPIOX_OK;
    if (!placed) {
        mpiox_error_set(&request->local_error, MPIOX_E_MPI, 0, -1, -1, "placing an ordered access");
        start = -1;
    }
    set_position(handle, start < 0 ? 0 : start + before[0], request);
}
