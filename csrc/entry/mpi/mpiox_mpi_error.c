/* mpiox_mpi_error.c - see mpiox_mpi_error.h. */
#include "mpiox_mpi_error.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "mpiox_mpi_path.h"

enum { CODES_PER_CLASS = 4, CLASSES = 32 };

typedef struct class_codes {
    int error_class;
    int made, next;
    int codes[CODES_PER_CLASS];
} class_codes;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static class_codes table[CLASSES];
static int classes;

void mpiox_mpi_problem(mpiox_error *error, int error_class, const char *what)
{
    mpiox_error_set(error, MPIOX_E_MPI, 0, -1, -1, what);
    error->mpi_code = error_class;
}

static int class_of_errno(int sys_errno)
{
    switch (sys_errno) {
    case ENOSPC:
        return MPI_ERR_NO_SPACE;
    case EDQUOT:
        return MPI_ERR_QUOTA;
    case EACCES:
    case EPERM:
        return MPI_ERR_ACCESS;
    case EROFS:
        return MPI_ERR_READ_ONLY;
    case ENOENT:
        return MPI_ERR_NO_SUCH_FILE;
    case EEXIST:
        return MPI_ERR_FILE_EXISTS;
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
        return MPI_ERR_BAD_FILE;
    case EBUSY:
    case ETXTBSY:
        return MPI_ERR_FILE_IN_USE;
    case ENOMEM:
        return MPI_ERR_NO_MEM;
    default:
        return MPI_ERR_IO;
    }
}

static int class_of(const mpiox_error *error)
{
    int error_class = MPI_ERR_IO;
    if (error->mpi_code != MPI_SUCCESS && PMPI_Error_class(error->mpi_code, &error_class) == MPI_SUCCESS)
        return error_class;
    if (error->sys_errno != 0)
        return class_of_errno(error->sys_errno);
    switch (error->code) {
    case MPIOX_E_NOMEM:
        return MPI_ERR_NO_MEM;
    case MPIOX_E_ARG:
        return MPI_ERR_ARG;
    case MPIOX_E_UNSUPPORTED:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_IO;
    }
}

/* Own texts, the same under each MPI library: under the standard ABI MPICH returns those of other classes. For a class
 * of the MPI library's own errors its text is queried all the same. */
static const char *text_of_class(int error_class, char room[MPI_MAX_ERROR_STRING])
{
    static const struct {
        int error_class;
        const char *text;
    } texts[] = {
        {MPI_ERR_ACCESS, "MPI_ERR_ACCESS: permission denied"},
        {MPI_ERR_ARG, "MPI_ERR_ARG: invalid argument"},
        {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE: invalid file name"},
        {MPI_ERR_BUFFER, "MPI_ERR_BUFFER: invalid buffer"},
        {MPI_ERR_COUNT, "MPI_ERR_COUNT: invalid count"},
        {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS: the file exists"},
        {MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE: the file is in use"},
        {MPI_ERR_IO, "MPI_ERR_IO: input or output failed"},
        {MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME: arguments differ between ranks"},
        {MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM: no memory is left"},
        {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE: no space left on device"},
        {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE: no such file"},
        {MPI_ERR_OTHER, "MPI_ERR_OTHER: another error"},
        {MPI_ERR_QUOTA, "MPI_ERR_QUOTA: the quota is used up"},
        {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY: the file or its file system is read-only"},
        {MPI_ERR_TYPE, "MPI_ERR_TYPE: invalid datatype"},
        {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP: unsupported data representation"},
        {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION: unsupported operation"},
    };
    int length = 0;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].error_class == error_class)
            return texts[i].text;
    room[0] = '\0';
    PMPI_Error_string(error_class, room, &length);
    return room;
}

/* A code of the class that may take a new text, or the class itself when no more can be made. Under the lock. */
static int code_of_class(int error_class)
{
    class_codes *entry = table;
    while (entry < table + classes && entry->error_class != error_class)
        entry++;
    if (entry == table + CLASSES)
        return error_class;
    if (entry == table + classes) {
        classes++;
        entry->error_class = error_class;
    }
    if (entry->made < CODES_PER_CLASS) {
        if (PMPI_Add_error_code(error_class, &entry->codes[entry->made]) != MPI_SUCCESS)
            return error_class;
        return entry->codes[entry->made++];
    }
    entry->next = (entry->next + 1) % CODES_PER_CLASS;
    return entry->codes[entry->next];
}

/* Does a code have the class, and does it return the text that was added? MPICH 4.0 makes codes of predefined classes
 * without the bit by which it recognises added ones, and returns a wrong text of its own for them; with that bit they
 * have another class. */
static bool takes_text(int code, int error_class, const char *text)
{
    char stored[MPI_MAX_ERROR_STRING] = "";
    int its_class = MPI_SUCCESS, length = 0;
    return PMPI_Add_error_string(code, text) == MPI_SUCCESS && PMPI_Error_class(code, &its_class) == MPI_SUCCESS &&
           its_class == error_class && PMPI_Error_string(code, stored, &length) == MPI_SUCCESS &&
           strcmp(stored, text) == 0;
}

int mpiox_mpi_error_code(const char *path, const mpiox_error *error)
{
    char room[MPI_MAX_ERROR_STRING], detail[1024], text[sizeof detail + MPI_MAX_ERROR_STRING + 2];
    const int error_class = class_of(error);
    int code;
    if (error->sys_errno == 0 && error->mpi_code != MPI_SUCCESS) /* an erroneous call, not a failed one */
        snprintf(detail, sizeof detail, "rank %d: %s (%.300s)", (int)error->rank, error->what, path);
    else
        mpiox_error_text(error, path, detail, (int64_t)sizeof detail);
    snprintf(text, sizeof text, "%s: %s", text_of_class(error_class, room), detail);
    text[MPI_MAX_ERROR_STRING - 1] = '\0';
    pthread_mutex_lock(&lock);
    code = code_of_class(error_class);
    if (code != error_class && !takes_text(code, error_class, text))
        code = error_class; /* the general text of the class is right */
    pthread_mutex_unlock(&lock);
    return code;
}

int mpiox_mpi_error_raise(MPI_File fh, const char *path, const mpiox_error *error)
{
    const int code = mpiox_mpi_error_code(path, error);
    if (fh != MPI_FILE_NULL) /* a file closed since: Open MPI would end the job */
        PMPI_File_call_errhandler(fh, code);
    return code;
}

int mpiox_mpi_raise(const mpiox_handle *handle, const mpiox_error *error)
{
    mpiox_error raised = *error;
    if (raised.rank < 0)
        raised.rank = handle->rank;
    return mpiox_mpi_error_raise(handle->fh, handle->path, &raised);
}

int mpiox_mpi_raise_problem(const mpiox_handle *handle, int error_class, const char *what)
{
    mpiox_error error;
    mpiox_mpi_problem(&error, error_class, what);
    return mpiox_mpi_raise(handle, &error);
}

/* MPICH gives most ranks the code of another process, which has no class here, or any. */
static int class_here(int result)
{
    int error_class = MPI_ERR_OTHER;

    PMPI_Error_class(result, &error_class);
    return error_class;
}

int mpiox_mpi_error_class_of_open(MPI_Comm comm, int result)
{
    struct {
        int rank, error_class;
    } mine = {INT_MAX, class_here(result)}, first = mine;

    if (result != MPI_SUCCESS && mine.error_class != MPI_ERR_OTHER && mine.error_class != MPI_ERR_UNKNOWN)
        PMPI_Comm_rank(comm, &mine.rank);
    return PMPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MINLOC, comm) == MPI_SUCCESS && first.rank != INT_MAX
               ? first.error_class
               : mine.error_class;
}

int mpiox_mpi_error_of_open(MPI_Comm comm, const char *filename, int amode, int result, int error_class)
{
    const char *path = mpiox_mpi_path(filename);
    mpiox_error error;
    int sys_errno;

    if (result == MPI_SUCCESS || !mpiox_mpi_path_is_posix(filename))
        return result;
    if (error_class == MPI_SUCCESS)
        error_class = class_here(result);
    sys_errno = error_class == MPI_ERR_FILE_EXISTS
                    ? EEXIST
                    : mpiox_mpi_path_errno(path, !(amode & MPI_MODE_RDONLY), (amode & MPI_MODE_CREATE) != 0);
    if (sys_errno == 0 && class_here(result) == error_class)
        return result;
    mpiox_error_set(&error, MPIOX_E_IO, sys_errno, -1, -1, "open");
    error.mpi_code = error_class;
    PMPI_Comm_rank(comm, &error.rank);
    return mpiox_mpi_error_code(path, &error);
}

static void count_failure(mpiox_handle *handle, mpiox_spent what, int error_class)
{
    static const int classes[MPIOX_FAILURES] = {[MPIOX_FAILED_NO_SPACE] = MPI_ERR_NO_SPACE,
                                                [MPIOX_FAILED_QUOTA] = MPI_ERR_QUOTA,
                                                [MPIOX_FAILED_IO] = MPI_ERR_IO};

    atomic_fetch_add_explicit(&handle->failed[what], 1, memory_order_relaxed);
    for (int i = 0; i < MPIOX_FAILURES; i++)
        if (classes[i] == error_class)
            atomic_fetch_add_explicit(&handle->failed_with[i], 1, memory_order_relaxed);
}

void mpiox_mpi_count_failure(mpiox_handle *handle, mpiox_spent what, const mpiox_error *error)
{
    if (handle)
        count_failure(handle, what, class_of(error));
}

int mpiox_mpi_failed(MPI_File fh, mpiox_spent what, int result)
{
    mpiox_handle *handle = mpiox_handle_find(fh);

    if (handle)
        count_failure(handle, what, class_here(result));
    return result;
}
