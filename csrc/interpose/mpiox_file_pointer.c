/*
 * mpiox_file_pointer.c - see mpiox_file_pointer.h; MPI_File_seek and MPI_File_get_position.
 */
#include "mpiox_file_pointer.h"

#include "mpiox_file_error.h"
#include "mpiox_file_prepare.h"
#include "mpiox_file_view.h"

void mpiox_file_pointer_lock(mpiox_file *file)
{
    pthread_mutex_lock(&file->pointer_lock);
}

void mpiox_file_pointer_unlock(mpiox_file *file)
{
    pthread_mutex_unlock(&file->pointer_lock);
}

int mpiox_file_pointer_get(mpiox_file *file, MPI_Offset *etypes)
{
    if (!file->pointer_here) {
        int code = PMPI_File_get_position(file->handle, &file->pointer);

        if (code != MPI_SUCCESS)
            return code;
        file->pointer_here = true;
    }
    *etypes = file->pointer;
    return MPI_SUCCESS;
}

void mpiox_file_pointer_set(mpiox_file *file, MPI_Offset etypes)
{
    file->pointer = etypes;
    file->pointer_here = true;
}

void mpiox_file_pointer_reset(mpiox_file *file)
{
    mpiox_file_pointer_lock(file);
    file->pointer = 0;
    file->pointer_here = file->exchange != NULL && file->has_view; /* else it is the MPI library that moves it */
    mpiox_file_pointer_unlock(file);
}

static void give(mpiox_file *file)
{
    if (file->pointer_here)
        PMPI_File_seek(file->handle, file->pointer, MPI_SEEK_SET);
    file->pointer_here = false;
}

void mpiox_file_pointer_hand_over(mpiox_file *file)
{
    if (file == NULL)
        return;
    mpiox_file_pointer_lock(file);
    give(file);
    mpiox_file_pointer_unlock(file);
}

static bool is_whence(int whence)
{
    return whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END;
}

static MPI_Offset from_end(mpiox_file *file, MPI_Offset offset, int *result)
{
    MPI_Offset end = mpiox_file_view_end(file, result), target;

    if (*result != MPI_SUCCESS || __builtin_add_overflow(end, offset, &target))
        return -1;
    return target;
}

/* Local where the target is known without the MPI library: not from the end of the view, and not to a bad place, which it
 * shall refuse in its own way. */
int mpiox_file_seek(MPI_File fh, MPI_Offset offset, int whence)
{
    mpiox_file *file = mpiox_file_find(fh);
    MPI_Offset target = offset;
    int result = MPI_SUCCESS;

    if (file == NULL || file->exchange == NULL || !file->has_view)
        return PMPI_File_seek(fh, offset, whence);
    mpiox_file_pointer_lock(file);
    if (whence == MPI_SEEK_CUR && mpiox_file_pointer_get(file, &target) == MPI_SUCCESS)
        target = __builtin_add_overflow(target, offset, &target) ? -1 : target;
    else if (whence == MPI_SEEK_END && file->all_ours)
        target = from_end(file, offset, &result);
    if (result == MPI_SUCCESS && target >= 0 && (whence != MPI_SEEK_END || file->all_ours) && is_whence(whence)) {
        mpiox_file_pointer_set(file, target);
    } else if (file->all_ours) { /* the MPI library does not know the view */
        mpiox_error error;

        mpiox_file_problem(&error, result != MPI_SUCCESS ? result : MPI_ERR_ARG, "seek to a bad place");
        error.rank = file->rank;
        mpiox_file_pointer_unlock(file);
        return mpiox_file_error_raise(fh, file->path, &error);
    } else {
        give(file);
        result = PMPI_File_seek(fh, offset, whence);
    }
    mpiox_file_pointer_unlock(file);
    return result;
}

int mpiox_file_get_position(MPI_File fh, MPI_Offset *offset)
{
    mpiox_file *file = mpiox_file_find(fh);
    int result;

    if (file == NULL || file->exchange == NULL || !file->has_view || offset == NULL)
        return PMPI_File_get_position(fh, offset);
    mpiox_file_pointer_lock(file);
    result = mpiox_file_pointer_get(file, offset);
    mpiox_file_pointer_unlock(file);
    return result;
}
