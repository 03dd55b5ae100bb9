/* mpiox_mpi_pointer.c - see mpiox_mpi_pointer.h. */
#include "mpiox_mpi_pointer.h"

void mpiox_mpi_pointer_lock(mpiox_handle *handle)
{
    pthread_mutex_lock(&handle->pointer_lock);
}

void mpiox_mpi_pointer_unlock(mpiox_handle *handle)
{
    pthread_mutex_unlock(&handle->pointer_lock);
}

int mpiox_mpi_pointer_get(mpiox_handle *handle, MPI_Offset *etypes)
{
    if (!handle->owns_pointer) {
        const int code = PMPI_File_get_position(handle->fh, &handle->pointer);
        if (code != MPI_SUCCESS)
            return code;
        handle->owns_pointer = true;
    }
    *etypes = handle->pointer;
    return MPI_SUCCESS;
}

void mpiox_mpi_pointer_set(mpiox_handle *handle, MPI_Offset etypes)
{
    handle->pointer = etypes;
    handle->owns_pointer = true;
}

void mpiox_mpi_pointer_reset(mpiox_handle *handle)
{
    mpiox_mpi_pointer_lock(handle);
    handle->pointer = 0;
    handle->owns_pointer = handle->has_view; /* else the MPI library moves it */
    mpiox_mpi_pointer_unlock(handle);
}

static void hand_over(mpiox_handle *handle)
{
    if (handle->owns_pointer)
        PMPI_File_seek(handle->fh, handle->pointer, MPI_SEEK_SET);
    handle->owns_pointer = false;
}

int mpiox_mpi_pointer_seek_native(mpiox_handle *handle, MPI_Offset offset, int whence)
{
    hand_over(handle);
    return PMPI_File_seek(handle->fh, offset, whence);
}

void mpiox_mpi_pointer_hand_over(mpiox_handle *handle)
{
    mpiox_mpi_pointer_lock(handle);
    hand_over(handle);
    mpiox_mpi_pointer_unlock(handle);
}
