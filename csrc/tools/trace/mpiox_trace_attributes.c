/*
 * mpiox_trace_attributes.c - calls on facts of a file: owners, modes, times, locks, advice, extended attributes, its
 * file system; and temporary files, whose names are known after their creation.
 *
 * They move no data, but servers of metadata answer them: the paper's Table I counts fcntl and statfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "mpiox_trace_clock.h"
#include "mpiox_trace_descriptors.h"
#include "mpiox_trace_paths.h"
#include "mpiox_trace_wrap.h"

static bool started(mpiox_tracefile_record *call, int operation, int folder, const char *path)
{
    const int error = errno;
    const int32_t file = path != NULL && mpiox_trace_enabled() ? mpiox_trace_file_number(folder, path) : -1;

    errno = error;
    if (file < 0)
        return false;
    mpiox_trace_start(call, operation, MPIOX_TRACEFILE_POSIX, file);
    return true;
}

/* ---- calls with at most one number ------------------------------------------------------------------------------- */

#define ON_NAME(type, name, parameters, arguments, folder, key, value)                                                 \
    RECORDED(type, name, parameters, arguments, started(&call, OP_##name, folder, path), NO, NO, key, value)
#define ON_FILE(type, name, parameters, arguments, at, bytes, key, value)                                              \
    RECORDED(type, name, parameters, arguments, mpiox_trace_posix_started(&call, OP_##name, fd), at, bytes, key, value)

ON_NAME(int, chown, (const char *path, uid_t owner, gid_t group), (path, owner, group), AT_FDCWD, -1, 0)
ON_NAME(int, lchown, (const char *path, uid_t owner, gid_t group), (path, owner, group), AT_FDCWD, -1, 0)
ON_NAME(int, utime, (const char *path, const struct utimbuf *times), (path, times), AT_FDCWD, -1, 0)
ON_NAME(int, utimes, (const char *path, const struct timeval times[2]), (path, times), AT_FDCWD, -1, 0)
ON_NAME(int, utimensat, (int folder, const char *path, const struct timespec times[2], int flags),
        (folder, path, times, flags), folder, MPIOX_KEY_FLAGS, flags)
ON_NAME(int, statfs, (const char *path, struct statfs *found), (path, found), AT_FDCWD, -1, 0)
ON_NAME(int, statvfs, (const char *path, struct statvfs *found), (path, found), AT_FDCWD, -1, 0)
ON_NAME(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t bytes), (path, name, value, bytes),
        AT_FDCWD, -1, 0)
ON_NAME(int, setxattr, (const char *path, const char *name, const void *value, size_t bytes, int flags),
        (path, name, value, bytes, flags), AT_FDCWD, MPIOX_KEY_FLAGS, flags)

RECORDED(ssize_t, readlink, (const char *path, char *text, size_t bytes), (path, text, bytes),
         !mpiox_trace_paths_leaves_folders() && started(&call, OP_readlink, AT_FDCWD, path), NO, NO, -1, 0)
RECORDED(ssize_t, readlinkat, (int folder, const char *path, char *text, size_t bytes), (folder, path, text, bytes),
         !mpiox_trace_paths_leaves_folders() && started(&call, OP_readlinkat, folder, path), NO, NO, -1, 0)

ON_FILE(int, fchmod, (int fd, mode_t mode), (fd, mode), NO, NO, MPIOX_KEY_MODE, mode)
ON_FILE(int, fchown, (int fd, uid_t owner, gid_t group), (fd, owner, group), NO, NO, -1, 0)
ON_FILE(int, futimens, (int fd, const struct timespec times[2]), (fd, times), NO, NO, -1, 0)
ON_FILE(int, flock, (int fd, int operation), (fd, operation), NO, NO, MPIOX_KEY_FLAGS, operation)
ON_FILE(int, lockf, (int fd, int command, off_t bytes), (fd, command, bytes), NO, bytes, MPIOX_KEY_COMMAND, command)
ON_FILE(int, posix_fadvise, (int fd, off_t offset, off_t bytes, int advice), (fd, offset, bytes, advice), offset, bytes,
        MPIOX_KEY_FLAGS, advice)
ON_FILE(ssize_t, readahead, (int fd, off64_t offset, size_t bytes), (fd, offset, bytes), offset, (int64_t)bytes, -1, 0)
ON_FILE(int, fstatfs, (int fd, struct statfs *found), (fd, found), NO, NO, -1, 0)
ON_FILE(int, fstatvfs, (int fd, struct statvfs *found), (fd, found), NO, NO, -1, 0)
ON_FILE(ssize_t, fgetxattr, (int fd, const char *name, void *value, size_t bytes), (fd, name, value, bytes), NO, NO, -1,
        0)
ON_FILE(int, fsetxattr, (int fd, const char *name, const void *value, size_t bytes, int flags),
        (fd, name, value, bytes, flags), NO, NO, MPIOX_KEY_FLAGS, flags)
#define SAME(other, name) extern int other() __attribute__((alias(#name), visibility("default")))
SAME(statfs64, statfs);
SAME(fstatfs64, fstatfs);
SAME(statvfs64, statvfs);
SAME(fstatvfs64, fstatvfs);
SAME(posix_fadvise64, posix_fadvise);
SAME(lockf64, lockf);

/* ---- text to a descriptor ---------------------------------------------------------------------------------------- */

BEHIND(int, vdprintf, (int, const char *, va_list))
BEHIND(int, __vdprintf_chk, (int, int, const char *, va_list))

/* `level`: of the check that programs built with _FORTIFY_SOURCE ask for; -1: none. */
static int printed(int fd, int level, const char *format, va_list list)
{
    mpiox_tracefile_record call;
    const bool recorded = mpiox_trace_posix_started(&call, OP_dprintf, fd);
    const int result = level < 0 ? NEXT(vdprintf)(fd, format, list) : NEXT(__vdprintf_chk)(fd, level, format, list);

    if (!recorded)
        return result;
    mpiox_trace_stop(&call);
    if (result >= 0)
        call.size = result;
    mpiox_trace_commit(&call, result);
    return result;
}

FRONT(int, vdprintf, (int fd, const char *format, va_list list))
{
    return printed(fd, -1, format, list);
}

FRONT(int, __vdprintf_chk, (int fd, int level, const char *format, va_list list))
{
    return printed(fd, level, format, list);
}

#define PRINTED(fd, level, format)                                                                                     \
    do {                                                                                                               \
        va_list list;                                                                                                  \
        va_start(list, format);                                                                                        \
        const int result = printed(fd, level, format, list);                                                           \
        va_end(list);                                                                                                  \
        return result;                                                                                                 \
    } while (0)

FRONT(int, dprintf, (int fd, const char *format, ...))
{
    PRINTED(fd, -1, format);
}

FRONT(int, __dprintf_chk, (int fd, int level, const char *format, ...))
{
    PRINTED(fd, level, format);
}

/* ---- temporary files --------------------------------------------------------------------------------------------- */

/* A temporary file that is open now as `fd`, since a call that began at that time. */
static int made(int fd, const char *path, int flags, int64_t begun)
{
    const int error = errno;
    mpiox_tracefile_record call;

    if (fd >= 0 && mpiox_trace_self.inside == 0)
        mpiox_trace_descriptor_close(fd); /* its earlier use is over */
    if (fd >= 0 && begun >= 0 && started(&call, OP_mkstemp, AT_FDCWD, path)) {
        call.start = begun;
        mpiox_trace_stop(&call);
        mpiox_trace_descriptor_open(fd, (int32_t)call.file, flags);
        call.handle = fd;
        mpiox_trace_extra(&call, MPIOX_KEY_FLAGS, flags);
        mpiox_trace_extra(&call, MPIOX_KEY_MODE, 0600);
        mpiox_trace_commit(&call, fd);
    }
    errno = error;
    return fd;
}

static int64_t begins(void)
{
    return mpiox_trace_enabled() ? mpiox_trace_now() : -1;
}

enum { MADE = O_CREAT | O_EXCL | O_RDWR };

#define TEMPORARY(name, parameters, arguments, flags)                                                                  \
    WRAP(int, name, parameters)                                                                                        \
    {                                                                                                                  \
        const int64_t begun = begins();                                                                                \
        return made(NEXT(name) arguments, path, MADE | (flags), begun);                                                \
    }

TEMPORARY(mkstemp, (char *path), (path), 0)
TEMPORARY(mkostemp, (char *path, int flags), (path, flags), flags)
TEMPORARY(mkstemps, (char *path, int bytes), (path, bytes), 0)
TEMPORARY(mkostemps, (char *path, int bytes, int flags), (path, bytes, flags), flags)
SAME(mkstemp64, mkstemp);
SAME(mkostemp64, mkostemp);
SAME(mkstemps64, mkstemps);
SAME(mkostemps64, mkostemps);
