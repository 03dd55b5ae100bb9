/*
 * mpiox_trace_paths.c - calls on names: stat, access, unlink, rename, folders.
 *
 * Problem.   Python searches for its modules in the folders of its path, thousands of times.
 * Algorithm. In a process with Python some calls are recorded only if the user requests it: a stat that finds a folder,
 *            reading a folder, and reading a link, by which Python finds itself. Calls on files, and calls that make,
 *            rename or remove folders, always are.
 *
 * C libraries before 2.33 offer stat and its kin as __xstat; both are here.
 */
#include "mpiox_trace_paths.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_trace_descriptors.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_wrap.h"

static bool keep_folders;

void mpiox_trace_paths_keep_folders(bool keep)
{
    keep_folders = keep;
}

bool mpiox_trace_paths_leaves_folders(void)
{
    static atomic_int python; /* 1: there is none, 2: there is */
    int known = atomic_load_explicit(&python, memory_order_relaxed);

    if (keep_folders)
        return false;
    if (known == 0) {
        mpiox_trace_self.inside++;
        known = dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL ? 2 : 1;
        mpiox_trace_self.inside--;
        atomic_store_explicit(&python, known, memory_order_relaxed);
    }
    return known == 2;
}

/* Whether a call on that name is recorded; then it has been started. */
static bool started(mpiox_tracefile_record *call, int operation, int folder, const char *path)
{
    const int error = errno;
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_file_number(folder, path) : -1;

    errno = error;
    if (file < 0)
        return false;
    mpiox_trace_start(call, operation, MPIOX_TRACEFILE_POSIX, file);
    return true;
}

static bool started_handle(mpiox_tracefile_record *call, int operation, int64_t handle, int32_t file)
{
    if (!mpiox_trace_enabled() || file == 0)
        return false;
    mpiox_trace_start_on(call, operation, MPIOX_TRACEFILE_POSIX, file, handle);
    return true;
}

/* A call on a name, with one more number to record (key -1: none). */
#define ON_NAME(name, operation, parameters, arguments, folder, path, key, value)                                      \
    WRAP(int, name, parameters)                                                                                        \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!started(&call, OP_##operation, folder, path))                                                             \
            return NEXT(name) arguments;                                                                               \
        const int result = NEXT(name) arguments;                                                                       \
        mpiox_trace_stop(&call);                                                                                       \
        if ((key) >= 0)                                                                                                \
            mpiox_trace_extra(&call, key, value);                                                                      \
        mpiox_trace_commit(&call, result);                                                                             \
        return result;                                                                                                 \
    }
/* A call that returns a file's size. */
#define STATUS(name, operation, parameters, arguments, starts, mode_of, size_of)                                       \
    WRAP(int, name, parameters)                                                                                        \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!(starts))                                                                                                 \
            return NEXT(name) arguments;                                                                               \
        const int result = NEXT(name) arguments;                                                                       \
        mpiox_trace_stop(&call);                                                                                       \
        if (result == 0 && S_ISDIR(mode_of) && mpiox_trace_paths_leaves_folders()) {                                   \
            mpiox_trace_drop(&call);                                                                                   \
            return result;                                                                                             \
        }                                                                                                              \
        if (result == 0)                                                                                               \
            mpiox_trace_extra(&call, MPIOX_KEY_VALUE, (int64_t)(size_of));                                             \
        mpiox_trace_commit(&call, result);                                                                             \
        return result;                                                                                                 \
    }
#define BY_NAME(operation, folder) started(&call, OP_##operation, folder, path)
#define BY_DESCRIPTOR started_handle(&call, OP_fstat, fd, mpiox_trace_descriptor_file(fd))

STATUS(stat, stat, (const char *path, struct stat *status), (path, status), BY_NAME(stat, AT_FDCWD), status->st_mode,
       status->st_size)
STATUS(lstat, lstat, (const char *path, struct stat *status), (path, status), BY_NAME(lstat, AT_FDCWD), status->st_mode,
       status->st_size)
STATUS(fstat, fstat, (int fd, struct stat *status), (fd, status), BY_DESCRIPTOR, status->st_mode, status->st_size)
STATUS(fstatat, fstatat, (int folder, const char *path, struct stat *status, int flags), (folder, path, status, flags),
       BY_NAME(fstatat, folder), status->st_mode, status->st_size)
STATUS(statx, statx, (int folder, const char *path, int flags, unsigned mask, struct statx *status),
       (folder, path, flags, mask, status), BY_NAME(statx, folder), status->stx_mode, status->stx_size)
STATUS(__xstat, stat, (int version, const char *path, struct stat *status), (version, path, status),
       BY_NAME(stat, AT_FDCWD), status->st_mode, status->st_size)
STATUS(__lxstat, lstat, (int version, const char *path, struct stat *status), (version, path, status),
       BY_NAME(lstat, AT_FDCWD), status->st_mode, status->st_size)
STATUS(__fxstat, fstat, (int version, int fd, struct stat *status), (version, fd, status), BY_DESCRIPTOR,
       status->st_mode, status->st_size)
STATUS(__fxstatat, fstatat, (int version, int folder, const char *path, struct stat *status, int flags),
       (version, folder, path, status, flags), BY_NAME(fstatat, folder), status->st_mode, status->st_size)
#define SAME(other, name) extern int other() __attribute__((alias(#name), visibility("default")))
SAME(stat64, stat);
SAME(lstat64, lstat);
SAME(fstat64, fstat);
SAME(fstatat64, fstatat);
SAME(__xstat64, __xstat);
SAME(__lxstat64, __lxstat);
SAME(__fxstat64, __fxstat);
SAME(__fxstatat64, __fxstatat);

ON_NAME(access, access, (const char *path, int mode), (path, mode), AT_FDCWD, path, MPIOX_KEY_MODE, mode)
ON_NAME(faccessat, faccessat, (int folder, const char *path, int mode, int flags), (folder, path, mode, flags), folder,
        path, MPIOX_KEY_MODE, mode)
ON_NAME(unlink, unlink, (const char *path), (path), AT_FDCWD, path, -1, 0)
ON_NAME(unlinkat, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), folder, path,
        MPIOX_KEY_FLAGS, flags)
ON_NAME(remove, remove, (const char *path), (path), AT_FDCWD, path, -1, 0)
ON_NAME(mkdir, mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path, MPIOX_KEY_MODE, mode)
ON_NAME(mkdirat, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), folder, path,
        MPIOX_KEY_MODE, mode)
ON_NAME(rmdir, rmdir, (const char *path), (path), AT_FDCWD, path, -1, 0)
ON_NAME(chmod, chmod, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path, MPIOX_KEY_MODE, mode)

WRAP(int, truncate, (const char *path, off_t bytes))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_truncate, AT_FDCWD, path))
        return NEXT(truncate)(path, bytes);
    const int result = NEXT(truncate)(path, bytes);
    mpiox_trace_stop(&call);
    call.size = bytes;
    mpiox_trace_commit(&call, result);
    return result;
}
ALIAS(truncate64, truncate);

/* ---- two names --------------------------------------------------------------------------------------------------- */

static int named_twice(mpiox_tracefile_record *call, int folder, const char *other, int result)
{
    const int error = errno;

    mpiox_trace_stop(call);
    const int32_t file = mpiox_trace_file_number(folder, other);
    if (file > 0 && file < MPIOX_TRACE_LEFT_OUT)
        mpiox_trace_extra(call, MPIOX_KEY_FILE2, file);
    errno = error;
    mpiox_trace_commit(call, result);
    return result;
}

#define TWO_NAMES(name, parameters, arguments, from_folder, from, to_folder, to)                                       \
    WRAP(int, name, parameters)                                                                                        \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!started(&call, OP_##name, from_folder, from))                                                             \
            return NEXT(name) arguments;                                                                               \
        return named_twice(&call, to_folder, to, NEXT(name) arguments);                                                \
    }

TWO_NAMES(rename, (const char *from, const char *to), (from, to), AT_FDCWD, from, AT_FDCWD, to)
TWO_NAMES(renameat, (int from_folder, const char *from, int to_folder, const char *to),
          (from_folder, from, to_folder, to), from_folder, from, to_folder, to)
TWO_NAMES(link, (const char *from, const char *to), (from, to), AT_FDCWD, from, AT_FDCWD, to)

/* The target of a link is a text relative to the link's folder, and need not exist. */
WRAP(int, symlink, (const char *target, const char *path))
{
    mpiox_tracefile_record call;

    if (!started(&call, OP_symlink, AT_FDCWD, path))
        return NEXT(symlink)(target, path);
    const int result = NEXT(symlink)(target, path);
    const int error = errno;
    mpiox_trace_stop(&call);
    mpiox_trace_extra_text(&call, MPIOX_KEY_FILE2, target);
    errno = error;
    mpiox_trace_commit(&call, result);
    return result;
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

WRAP(DIR *, opendir, (const char *path))
{
    mpiox_tracefile_record call;

    if (mpiox_trace_paths_leaves_folders() || !started(&call, OP_opendir, AT_FDCWD, path))
        return NEXT(opendir)(path);
    DIR *result = NEXT(opendir)(path);
    mpiox_trace_stop(&call);
    if (result != NULL) {
        call.handle = (int64_t)(intptr_t)result;
        mpiox_trace_handle_open(call.handle, (int32_t)call.file);
    }
    mpiox_trace_commit(&call, result != NULL ? 0 : -1);
    return result;
}

#define FOLDER_FILE mpiox_trace_handle_file((int64_t)(intptr_t)folder)

WRAP(struct dirent *, readdir, (DIR * folder))
{
    mpiox_tracefile_record call;

    if (!started_handle(&call, OP_readdir, (int64_t)(intptr_t)folder, FOLDER_FILE))
        return NEXT(readdir)(folder);
    struct dirent *result = NEXT(readdir)(folder);
    mpiox_trace_commit(&call, result != NULL);
    return result;
}

FRONT(struct dirent64 *, readdir64, (DIR * folder))
{
    return (struct dirent64 *)(void *)readdir(folder);
}

WRAP(int, closedir, (DIR * folder))
{
    mpiox_tracefile_record call;

    if (!started_handle(&call, OP_closedir, (int64_t)(intptr_t)folder, FOLDER_FILE))
        return NEXT(closedir)(folder);
    mpiox_trace_handle_close(call.handle);
    const int result = NEXT(closedir)(folder);
    mpiox_trace_commit(&call, result);
    return result;
}
