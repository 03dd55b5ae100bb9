/* mpiox_storage_staging.c - see mpiox_storage_staging.h. */
#include "mpiox_storage_staging.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"

static const char suffix[] = ".staging";

enum { PARTS_MOST = 4096, PERMISSIONS = 0666 };

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

bool mpiox_storage_staging_name(const char *path, char *staging, size_t bytes)
{
    const size_t folder = folder_length(path);
    const char *name = path + folder;
    return *name != '\0' && strlen(name) + sizeof suffix + sizeof ".parts" <= NAME_MAX &&
           (size_t)snprintf(staging, bytes, "%.*s.%s%s", (int)folder, path, name, suffix) < bytes;
}

bool mpiox_storage_staging_final(const char *staging, char *path, size_t bytes)
{
    const size_t folder = folder_length(staging), length = strlen(staging + folder), end = sizeof suffix - 1;
    const char *name = staging + folder;
    return length > end + 1 && name[0] == '.' && strcmp(name + length - end, suffix) == 0 &&
           (size_t)snprintf(path, bytes, "%.*s%.*s", (int)folder, staging, (int)(length - end - 1), name + 1) < bytes;
}

static int open_parts(const char *staging, int flags)
{
    char parts[PATH_MAX];
    if ((size_t)snprintf(parts, sizeof parts, "%s.parts", staging) >= sizeof parts) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(parts, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int write_parts(int fd, int count)
{
    char marks[PARTS_MOST];
    memset(marks, '+', sizeof marks);
    if (count < 1 || count > PARTS_MOST)
        return EINVAL;
    const ssize_t written = pwrite(fd, marks, (size_t)count, 0);
    return written == count ? 0 : written < 0 ? errno : EIO;
}

int mpiox_storage_staging_create(const char *staging, bool made, int parts)
{
    if (!made) {
        const int fd = open(staging, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PERMISSIONS);
        if (fd < 0)
            return errno;
        close(fd);
    }
    mpiox_storage_staging_forget(staging); /* there was no such file: what lay beside it is nobody's */
    const int fd = open_parts(staging, O_WRONLY | O_CREAT | O_EXCL);
    int code = fd >= 0 ? write_parts(fd, parts) : errno;
    if (fd >= 0 && close(fd) != 0 && code == 0)
        code = errno;
    if (code != 0) {
        mpiox_storage_staging_forget(staging);
        unlink(staging);
    }
    return code;
}

int mpiox_storage_staging_begin(const char *staging, int part)
{
    const int fd = open_parts(staging, O_WRONLY);
    if (fd < 0)
        return errno;
    int code = pwrite(fd, "-", 1, part) == 1 ? 0 : errno;
    if (close(fd) != 0 && code == 0)
        code = errno;
    return code;
}

static bool has_name(const char *staging, uint64_t device, uint64_t inode)
{
    struct stat status;
    const bool has = lstat(staging, &status) == 0 && (uint64_t)status.st_dev == device &&
                     (uint64_t)status.st_ino == inode;
    errno = ENOENT;
    return has;
}

/* All have ended. */
static int finish(const char *staging, uint64_t device, uint64_t inode, bool *renamed)
{
    char path[PATH_MAX];
    struct stat status;
    if (!mpiox_storage_staging_final(staging, path, sizeof path))
        return EINVAL;
    if (lstat(staging, &status) != 0)
        return errno == ENOENT ? 0 : errno; /* another one has done it, or it was deleted */
    if ((uint64_t)status.st_dev != device || (uint64_t)status.st_ino != inode)
        return 0;
    const int code = mpiox_storage_give_name(staging, path);
    *renamed = code == 0;
    if (code == 0)
        mpiox_storage_staging_forget(staging);
    return code == ENOENT ? 0 : code;
}

int mpiox_storage_staging_end(const char *staging, int part, uint64_t device, uint64_t inode, bool *renamed)
{
    char marks[PARTS_MOST];
    const int fd = open_parts(staging, O_RDWR);
    *renamed = false;
    if (fd < 0) /* without it nobody knows who else has bytes of the file, if that is still there by this name */
        return errno == ENOENT && !has_name(staging, device, inode) ? 0 : errno;
    int code = pwrite(fd, "+", 1, part) == 1 ? 0 : errno;
    const ssize_t count = code == 0 ? pread(fd, marks, sizeof marks, 0) : 0;
    if (count < 0)
        code = errno;
    if (close(fd) != 0 && code == 0)
        code = errno;
    if (code != 0 || memchr(marks, '-', (size_t)count) != NULL)
        return code;
    return finish(staging, device, inode, renamed);
}

bool mpiox_storage_staging_pending(const char *staging, int part, uint64_t device, uint64_t inode)
{
    char mark = '-';
    const int fd = open_parts(staging, O_RDONLY);
    if (fd >= 0) {
        (void)!pread(fd, &mark, 1, part);
        close(fd);
    }
    return mark != '+' && has_name(staging, device, inode);
}

void mpiox_storage_staging_forget(const char *staging)
{
    char parts[PATH_MAX];
    if ((size_t)snprintf(parts, sizeof parts, "%s.parts", staging) < sizeof parts)
        unlink(parts);
}

void mpiox_storage_staging_remove(const char *staging, uint64_t device, uint64_t inode)
{
    struct stat status;
    const bool there = lstat(staging, &status) == 0;
    if (there && ((uint64_t)status.st_dev != device || (uint64_t)status.st_ino != inode))
        return;
    if (there)
        unlink(staging);
    mpiox_storage_staging_forget(staging);
}
