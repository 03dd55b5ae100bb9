/*
 * mpiox_file_seek.c - see mpiox_file_seek.h.
 *
 * Seeking is local where the target is known without the MPI library: not from the end of a view that the MPI library
 * also has, and not to a bad target, which the MPI library is to refuse in its own way where it has the view.
 */
#include "mpiox_file_seek.h"

#include "mpiox_file_error.h"
#include "mpiox_file_pointer.h"
#include "mpiox_file_table.h"
#include "mpiox_file_view.h"
#include "mpiox_nonblocking.h"

/* `offset` etypes behind the end of the file; -1 with *result set when there is no such place. */
static MPI_Offset from_end(mpiox_file *file, MPI_Offset offset, int *result) {
    MPI_Offset target;
    const MPI_Offset end = mpiox_file_view_end(file, result);
    if (*result != MPI_SUCCESS || __builtin_add_overflow(end, offset, &target))
        return -1;
    return target;
}

/* ---- the individual file pointer --------------------------------------------------------------------------------- */

static bool is_whence(int whence) {
    return whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END;
}

int mpiox_file_seek(MPI_File fh, MPI_Offset offset, int whence) {
    mpiox_file *file = mpiox_file_find(fh);
    MPI_Offset target = offset;
    int result = MPI_SUCCESS;
    if (!mpiox_file_is_managed(file) || !file->has_view)
        return PMPI_File_seek(fh, offset, whence);
    mpiox_file_pointer_lock(file);
    if (whence == MPI_SEEK_CUR && mpiox_file_pointer_get(file, &target) == MPI_SUCCESS)
        target = __builtin_add_overflow(target, offset, &target) ? -1 : target;
    else if (whence == MPI_SEEK_END && file->all_ours)
        target = from_end(file, offset, &result);
    const bool known = whence != MPI_SEEK_END || file->all_ours;
    const bool good = known && result == MPI_SUCCESS && target >= 0 && is_whence(whence);
    if (good)
        mpiox_file_pointer_set(file, target);
    else if (!file->all_ours)
        result = mpiox_file_pointer_seek_native(file, offset, whence);
    mpiox_file_pointer_unlock(file);
    if (!good && file->all_ours) /* the MPI library does not have the view */
        return mpiox_file_raise_problem(file, result != MPI_SUCCESS ? result : MPI_ERR_ARG, "seek to a bad place");
    return result;
}

int mpiox_file_get_position(MPI_File fh, MPI_Offset *offset) {
    mpiox_file *file = mpiox_file_find(fh);
    if (!mpiox_file_is_managed(file) || !file->has_view || !offset)
        return PMPI_File_get_position(fh, offset);
    mpiox_file_pointer_lock(file);
    const int result = mpiox_file_pointer_get(file, offset);
    mpiox_file_pointer_unlock(file);
    return result;
}

/* ---- the shared file pointer ------------------------------------------------------------------------------------- */

/* Target of MPI_File_seek_shared; negative: a bad one. */
static MPI_Offset shared_target(mpiox_file *file, MPI_Offset offset, int whence) {
    mpiox_error error = {.code = MPIOX_OK};
    int64_t from = 0, target;
    int result = MPI_SUCCESS;
    switch (whence) {
    case MPI_SEEK_SET:
        return offset;
    case MPI_SEEK_CUR:
        if (mpiox_exchange_shared_add(file->exchange, 0, &from, &error) != MPIOX_OK)
            return -1;
        return __builtin_add_overflow(from, offset, &target) ? -1 : target;
    case MPI_SEEK_END:
        return from_end(file, offset, &result);
    default:
        return -1;
    }
}

/* Rank 0 moves the pointer between two collectives: no rank still uses the old position or already the new one. */
int mpiox_file_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error = {.code = MPIOX_OK};
    bool moved = true;
    if (!file || !file->all_ours)
        return PMPI_File_seek_shared(fh, offset, whence);
    mpiox_nonblocking_drain(file); /* collectives under way use the same barrier */
    mpiox_exchange_all(file->exchange, true);
    if (file->rank == 0) {
        const MPI_Offset target = shared_target(file, offset, whence);
        moved = target >= 0 && mpiox_exchange_shared_set(file->exchange, target, &error) == MPIOX_OK;
    }
    if (mpiox_exchange_all(file->exchange, moved))
        return MPI_SUCCESS;
    if (error.code != MPIOX_OK)
        return mpiox_file_raise(file, &error);
    return mpiox_file_raise_problem(file, MPI_ERR_ARG, "bad offset or whence for the shared file pointer");
}

int mpiox_file_get_position_shared(MPI_File fh, MPI_Offset *offset) {
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error = {.code = MPIOX_OK};
    int64_t value = 0;
    if (!file || !file->all_ours || !offset)
        return PMPI_File_get_position_shared(fh, offset);
    if (mpiox_exchange_shared_add(file->exchange, 0, &value, &error) != MPIOX_OK)
        return mpiox_file_raise(file, &error);
    *offset = value;
    return MPI_SUCCESS;
}
