/* mpiox_file_pointer.c - see mpiox_file_pointer.h. */
#include "mpiox_file_pointer.h"

void mpiox_file_pointer_lock(mpiox_file *file) {
    pthread_mutex_lock(&file->pointer_lock);
}

void mpiox_file_pointer_unlock(mpiox_file *file) {
    pthread_mutex_unlock(&file->pointer_lock);
}

int mpiox_file_pointer_get(mpiox_file *file, MPI_Offset *etypes) {
    if (!file->owns_pointer) {
        const int code = PMPI_File_get_position(file->handle, &file->pointer);
        if (code != MPI_SUCCESS)
            return code;
        file->owns_pointer = true;
    }
    *etypes = file->pointer;
    return MPI_SUCCESS;
}

void mpiox_file_pointer_set(mpiox_file *file, MPI_Offset etypes) {
    file->pointer = etypes;
    file->owns_pointer = true;
}

void mpiox_file_pointer_reset(mpiox_file *file) {
    mpiox_file_pointer_lock(file);
    file->pointer = 0;
    file->owns_pointer = file->has_view; /* else the MPI library moves it */
    mpiox_file_pointer_unlock(file);
}

static void hand_over(mpiox_file *file) {
    if (file->owns_pointer)
        PMPI_File_seek(file->handle, file->pointer, MPI_SEEK_SET);
    file->owns_pointer = false;
}

int mpiox_file_pointer_seek_native(mpiox_file *file, MPI_Offset offset, int whence) {
    hand_over(file);
    return PMPI_File_seek(file->handle, offset, whence);
}

void mpiox_file_pointer_hand_over(mpiox_file *file) {
    mpiox_file_pointer_lock(file);
    hand_over(file);
    mpiox_file_pointer_unlock(file);
}
