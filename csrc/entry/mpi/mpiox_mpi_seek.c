/*
 * mpiox_mpi_seek.c - moving and reading the file pointers, like their MPI namesakes.
 *
 * Seeking is local if the target is known without the MPI library. It is not local from the end of a view that the MPI
 * library also has, nor to a bad target if the MPI library has the view: the MPI library refuses such a target in its
 * own way.
 */
#include "mpiox_handlers.h"
#include "mpiox_mpi_error.h"
#include "mpiox_mpi_pointer.h"
#include "mpiox_handle.h"
#include "mpiox_mpi_view.h"
#include "mpiox_nonblocking.h"

/* `offset` etypes behind the end of the file; -1 with *result set when there is no such place. */
static MPI_Offset from_end(mpiox_handle *handle, MPI_Offset offset, int *result)
{
    MPI_Offset target;
    const MPI_Offset end = mpiox_mpi_view_end(handle, result);
    if (*result != MPI_SUCCESS || __builtin_add_overflow(end, offset, &target))
        return -1;
    return target;
}

/* ---- the individual file pointer --------------------------------------------------------------------------------- */

static bool is_whence(int whence)
{
    return whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END;
}

int mpiox_mpi_seek(MPI_File fh, MPI_Offset offset, int whence)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    MPI_Offset target = offset;
    int result = MPI_SUCCESS;
    if (!mpiox_handle_is_managed(handle) || !handle->has_view)
        return PMPI_File_seek(fh, offset, whence);
    mpiox_mpi_pointer_lock(handle);
    if (whence == MPI_SEEK_CUR && mpiox_mpi_pointer_get(handle, &target) == MPI_SUCCESS)
        target = __builtin_add_overflow(target, offset, &target) ? -1 : target;
    else if (whence == MPI_SEEK_END && handle->all_ours)
        target = from_end(handle, offset, &result);
    const bool known = whence != MPI_SEEK_END || handle->all_ours;
    const bool good = known && result == MPI_SUCCESS && target >= 0 && is_whence(whence);
    if (good)
        mpiox_mpi_pointer_set(handle, target);
    else if (!handle->all_ours)
        result = mpiox_mpi_pointer_seek_native(handle, offset, whence);
    mpiox_mpi_pointer_unlock(handle);
    if (!good && handle->all_ours) /* the MPI library does not have the view */
        return mpiox_mpi_raise_problem(handle, result != MPI_SUCCESS ? result : MPI_ERR_ARG, "seek to a bad place");
    return result;
}

int mpiox_mpi_get_position(MPI_File fh, MPI_Offset *offset)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    if (!mpiox_handle_is_managed(handle) || !handle->has_view || !offset)
        return PMPI_File_get_position(fh, offset);
    mpiox_mpi_pointer_lock(handle);
    const int result = mpiox_mpi_pointer_get(handle, offset);
    mpiox_mpi_pointer_unlock(handle);
    return result;
}

/* ---- the shared file pointer ------------------------------------------------------------------------------------- */

/* Target of MPI_File_seek_shared; negative: a bad one. */
static MPI_Offset shared_target(mpiox_handle *handle, MPI_Offset offset, int whence)
{
    mpiox_error error = {.code = MPIOX_OK};
    int64_t from = 0, target;
    int result = MPI_SUCCESS;
    switch (whence) {
    case MPI_SEEK_SET:
        return offset;
    case MPI_SEEK_CUR:
        if (mpiox_shared_pointer_add(handle->file, 0, &from, &error) != MPIOX_OK)
            return -1;
        return __builtin_add_overflow(from, offset, &target) ? -1 : target;
    case MPI_SEEK_END:
        return from_end(handle, offset, &result);
    default:
        return -1;
    }
}

/* Rank 0 moves the pointer between two collectives: no rank still uses the old position or already the new one. */
int mpiox_mpi_seek_shared(MPI_File fh, MPI_Offset offset, int whence)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_error error = {.code = MPIOX_OK};
    bool moved = true;
    if (!handle || !handle->all_ours)
        return PMPI_File_seek_shared(fh, offset, whence);
    mpiox_nonblocking_drain(handle); /* collectives under way use the same barrier */
    if (!mpiox_topology_same(handle->file->topology, offset, whence))
        return mpiox_mpi_raise_problem(handle, MPI_ERR_ARG, "seek_shared with another offset or whence on some ranks");
    if (handle->rank == 0) {
        const MPI_Offset target = shared_target(handle, offset, whence);
        moved = target >= 0 && mpiox_shared_pointer_set(handle->file, target, &error) == MPIOX_OK;
    }
    if (mpiox_topology_all(handle->file->topology, moved))
        return MPI_SUCCESS;
    if (error.code != MPIOX_OK)
        return mpiox_mpi_raise(handle, &error);
    return mpiox_mpi_raise_problem(handle, MPI_ERR_ARG, "bad offset or whence for the shared file pointer");
}

int mpiox_mpi_get_position_shared(MPI_File fh, MPI_Offset *offset)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_error error = {.code = MPIOX_OK};
    int64_t value = 0;
    if (!handle || !handle->all_ours || !offset)
        return PMPI_File_get_position_shared(fh, offset);
    if (mpiox_shared_pointer_add(handle->file, 0, &value, &error) != MPIOX_OK)
        return mpiox_mpi_raise(handle, &error);
    *offset = value;
    return MPI_SUCCESS;
}
