/* mpiox_storage_staging.c - see mpiox_storage_staging.h. */
#include "mpiox_storage_staging.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_container.h"
#include "mpiox_storage_folder.h"
#include "mpiox_storage_internal.h"
#include "mpiox_storage_lock.h"
#include "mpiox_testing.h"

static const char suffix[] = ".staging", job_after = '\n';

enum {
    JOB_MOST = 128,
    PARTS_MOST = 4096,
    PERMISSIONS = 0666,
    ASIDE_MOST = 1000,
    HOLD_TRIES = 1000,
    HOLD_PAUSE_MS = 10
};

bool mpiox_storage_staging_name(const char *path, char *staging, size_t bytes)
{
    const size_t folder = mpiox_storage_folder_length(path);
    const char *name = path + folder;
    return *name != '\0' && strlen(name) + sizeof suffix + sizeof ".parts" <= NAME_MAX &&
           (size_t)snprintf(staging, bytes, "%.*s.%s%s", (int)folder, path, name, suffix) < bytes;
}

bool mpiox_storage_staging_final(const char *staging, char *path, size_t bytes)
{
    const size_t folder = mpiox_storage_folder_length(staging), length = strlen(staging + folder),
                 end = sizeof suffix - 1;
    const char *name = staging + folder;
    return length > end + 1 && name[0] == '.' && strcmp(name + length - end, suffix) == 0 &&
           (size_t)snprintf(path, bytes, "%.*s%.*s", (int)folder, staging, (int)(length - end - 1), name + 1) < bytes;
}

static bool parts_name(const char *staging, char parts[PATH_MAX])
{
    return snprintf(parts, PATH_MAX, "%s.parts", staging) < PATH_MAX;
}

static int open_parts(const char *staging, int flags)
{
    char parts[PATH_MAX];
    if (!parts_name(staging, parts)) {
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

/* Lock the file of parts while the file gets its name. Its owner may have been stopped, or be on a lost host: 0, or
 * EAGAIN after ten seconds. Without a file system's locks it is not locked. */
static int hold(int parts)
{
    int code = 0;
    for (int i = 0; i < HOLD_TRIES && (code = mpiox_storage_guard(parts, MPIOX_GUARD_NAME)) == EAGAIN; i++)
        poll(NULL, 0, HOLD_PAUSE_MS);
    return code == EAGAIN ? code : 0;
}

/* Remove the file of parts of an earlier file of this name, which is gone. A process that has just given that file its
 * own name has it locked and removes it itself: wait for it, else it would remove the new one. Not for other users'
 * processes. */
static void forget_earlier(const char *staging)
{
    struct stat status;
    const int fd = open_parts(staging, O_RDWR);
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid())
        (void)hold(fd);
    mpiox_storage_staging_forget(staging);
    if (fd >= 0)
        close(fd);
}

int mpiox_storage_staging_create(const char *staging, bool made, int parts)
{
    if (!made) {
        const int fd = open(staging, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PERMISSIONS);
        if (fd < 0)
            return errno;
        close(fd);
    }
    forget_earlier(staging);
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

static int mark(const char *staging, int part, const char *with)
{
    const int fd = open_parts(staging, O_WRONLY);
    if (fd < 0)
        return errno;
    int code = pwrite(fd, with, 1, part) == 1 ? 0 : errno;
    if (close(fd) != 0 && code == 0)
        code = errno;
    return code;
}

int mpiox_storage_staging_begin(const char *staging, int part)
{
    MPIOX_POINT("begin");
    const int code = mark(staging, part, "-");
    MPIOX_POINT("begun");
    return code;
}

int mpiox_storage_staging_rescued(const char *staging, int part)
{
    return mark(staging, part, "+");
}

static bool is_it(const struct stat *status, uint64_t device, uint64_t inode)
{
    return (uint64_t)status->st_dev == device && (uint64_t)status->st_ino == inode;
}

/* Is that file the first part of the index at `path`? */
static bool is_first(const char *path, uint64_t device, uint64_t inode)
{
    struct stat status;
    return mpiox_storage_container.first(path, NULL, &status) == 0 && is_it(&status, device, inode);
}

bool mpiox_storage_staging_has_name(const char *staging, uint64_t device, uint64_t inode)
{
    struct stat status;
    const bool has = lstat(staging, &status) == 0 &&
                     (is_it(&status, device, inode) || is_first(staging, device, inode));
    return has;
}

/* Is what lies beside the staging name what is open as `parts`? `absent`: where nothing lies there. */
static bool lies_beside(const char *staging, int parts, bool absent)
{
    char path[PATH_MAX];
    struct stat own, named;
    if (!parts_name(staging, path) || fstat(parts, &own) != 0)
        return false;
    return lstat(path, &named) != 0 ? absent : is_it(&named, (uint64_t)own.st_dev, (uint64_t)own.st_ino);
}

/* Remove the file of parts that is open as `parts`; not one of another file of this name. */
static void forget_left(const char *staging, int parts)
{
    if (lies_beside(staging, parts, false))
        mpiox_storage_staging_forget(staging);
}

/* All have ended. `parts` is held until it is closed (forget_earlier()). */
static int finish(const char *staging, int parts, uint64_t device, uint64_t inode, bool *renamed)
{
    char path[PATH_MAX];
    struct stat status;
    int code;
    if (!mpiox_storage_staging_final(staging, path, sizeof path))
        return EINVAL;
    if ((code = hold(parts)) != 0)
        return code;
    if (lstat(staging, &status) != 0) { /* another one has done it, maybe killed before its end, or it was deleted */
        code = errno;
        if (code == ENOENT)
            forget_left(staging, parts);
        return code == ENOENT ? 0 : code;
    }
    if (!lies_beside(staging, parts, true)) /* made again meanwhile, with the number of the old one, perhaps */
        return 0;
    MPIOX_POINT("name");
    if (is_it(&status, device, inode))
        code = mpiox_storage_give_name(staging, path);
    else if (is_first(staging, device, inode))
        code = mpiox_storage_container.publish(staging, path);
    else
        return 0;
    MPIOX_POINT("named");
    *renamed = code == 0;
    if (code == 0)
        forget_left(staging, parts);
    MPIOX_POINT("forgotten");
    return code == ENOENT ? 0 : code;
}

/* Read the marks; a line with the job follows them. Returns their number, or a negative errno. */
static ssize_t read_marks(int parts, char marks[PARTS_MOST])
{
    const ssize_t count = pread(parts, marks, PARTS_MOST, 0);
    const char *end = count > 0 ? memchr(marks, job_after, (size_t)count) : NULL;
    return count < 0 ? -errno : end != NULL ? end - marks : count;
}

/* Has any process bytes of the file? Or a negative errno. */
static int anybody_has(int parts)
{
    char marks[PARTS_MOST];
    const ssize_t count = read_marks(parts, marks);
    return count < 0 ? (int)count : memchr(marks, '-', (size_t)count) != NULL;
}

/* Another file may have been created after this one was deleted: the file of parts is that file's. (It is created
 * first.) Not if that is unknown. */
static bool is_of_another(const char *staging, uint64_t device, uint64_t inode)
{
    struct stat status;
    if (lstat(staging, &status) != 0 || is_it(&status, device, inode))
        return false;
    const int code = mpiox_storage_container.first(staging, NULL, &status);
    return code == EILSEQ || (code == 0 && !is_it(&status, device, inode));
}

int mpiox_storage_staging_end(const char *staging, int part, uint64_t device, uint64_t inode, bool *renamed)
{
    const int fd = open_parts(staging, O_RDWR);
    *renamed = false;
    /* without it it is unknown which other processes have bytes of the file, if that still exists by this name */
    if (fd < 0)
        return errno != ENOENT ? errno : mpiox_storage_staging_has_name(staging, device, inode) ? ENODATA : 0;
    if (is_of_another(staging, device, inode)) {
        close(fd);
        return 0;
    }
    MPIOX_POINT("end");
    int code = pwrite(fd, "+", 1, part) == 1 ? 0 : errno;
    MPIOX_POINT("ended");
    const int others = code == 0 ? anybody_has(fd) : 0;
    if (others < 0)
        code = -others;
    if (code == 0 && others == 0)
        code = finish(staging, fd, device, inode, renamed);
    close(fd);
    return code;
}

int mpiox_storage_staging_left(const char *staging)
{
    char path[PATH_MAX];
    int fd = open_parts(staging, O_RDWR);
    if (fd < 0 && errno == EROFS)
        fd = open_parts(staging, O_RDONLY);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    const int others = anybody_has(fd);
    int code = others < 0 ? -others : 0;
    if (others == 0 && !mpiox_storage_staging_final(staging, path, sizeof path)) {
        code = EINVAL;
    } else if (others == 0 && (code = hold(fd)) == 0 && lies_beside(staging, fd, true)) {
        code = mpiox_storage_container.publish(staging, path);
        if (code == 0)
            forget_left(staging, fd);
    }
    close(fd);
    return code == EAGAIN || code == ENOENT ? 0 : code;
}

bool mpiox_storage_staging_pending(const char *staging, int part, uint64_t device, uint64_t inode)
{
    char mark = '-';
    const int fd = open_parts(staging, O_RDONLY);
    if (fd >= 0) {
        (void)!pread(fd, &mark, 1, part);
        close(fd);
    }
    return mark != '+' && mpiox_storage_staging_has_name(staging, device, inode);
}

bool mpiox_storage_staging_is_unnamed(const char *staging, uint64_t device, uint64_t inode)
{
    const int fd = open_parts(staging, O_RDONLY);
    const bool ended = fd >= 0 && anybody_has(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ended && mpiox_storage_staging_has_name(staging, device, inode);
}

int mpiox_storage_staging_sign(const char *staging, const char *job)
{
    char line[JOB_MOST];
    const int fd = open_parts(staging, O_WRONLY | O_APPEND);
    if (fd < 0)
        return errno;
    const int length = snprintf(line, sizeof line, "%c%s", job_after, job);
    const int code = write(fd, line, (size_t)length) == length ? 0 : errno;
    close(fd);
    return code;
}

bool mpiox_storage_staging_is_of(const char *staging, const char *job)
{
    char marks[PARTS_MOST], line[JOB_MOST] = "";
    const int fd = open_parts(staging, O_RDONLY);
    const ssize_t count = fd >= 0 ? read_marks(fd, marks) : -1;
    const bool is = count >= 0 && pread(fd, line, sizeof line - 1, count) > 0 && line[0] == job_after &&
                    strcmp(line + 1, job) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

/* ---- leftovers --------------------------------------------------------------------------------------------------- */

int mpiox_storage_staging_guard(const char *staging)
{
    const int fd = open_parts(staging, O_RDWR);
    if (fd < 0 || mpiox_storage_guard(fd, MPIOX_GUARD_BEHIND) == 0)
        return fd < 0 ? -1 : fd;
    close(fd);
    return -1;
}

bool mpiox_storage_staging_is_closed(const char *staging)
{
    const int fd = open_parts(staging, O_RDONLY);
    const bool is = fd >= 0 && mpiox_storage_guard(fd, MPIOX_GUARD_IS_CLOSED) == EAGAIN;
    if (fd >= 0)
        close(fd);
    return is;
}

bool mpiox_storage_staging_is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static bool aside_name(const char *staging, int number, char *aside, size_t bytes)
{
    char path[PATH_MAX], other[PATH_MAX + 16];
    return mpiox_storage_staging_final(staging, path, sizeof path) &&
           snprintf(other, sizeof other, "%s.left-%d", path, number) < PATH_MAX &&
           mpiox_storage_staging_name(other, aside, bytes);
}

/* The same of the parts of an index. */
static int look_for_writers(const char *index)
{
    char first[PATH_MAX];
    struct stat status;
    const int fd = mpiox_storage_container.first(index, first, &status) == 0
                       ? mpiox_storage_descriptor(first, O_RDWR | O_NOFOLLOW)
                       : -1;
    const int code = fd >= 0 ? mpiox_storage_guard(fd, MPIOX_GUARD_LOOK) : 0;
    if (fd >= 0)
        close(fd);
    return code;
}

/* 0: by the locks no process has it. */
static int look_for_owners(const char *staging)
{
    const int fd = open_parts(staging, O_RDWR);
    if (fd < 0) /* ENOENT: it is just being made, or somebody has removed what lies beside it */
        return errno == ENOENT ? ENODATA : errno;
    const int code = mpiox_storage_guard(fd, MPIOX_GUARD_LOOK);
    close(fd);
    return code != 0 ? code : look_for_writers(staging);
}

/* Remove the file of parts first: without it no process takes the file for a leftover. If this process is killed in
 * between, the next one continues. */
int mpiox_storage_staging_set_aside(const char *staging, char *aside, size_t bytes)
{
    char parts[PATH_MAX], other[PATH_MAX];
    int number = 1;
    do {
        if (number > ASIDE_MOST || !aside_name(staging, number++, aside, bytes) || !parts_name(aside, other) ||
            !parts_name(staging, parts))
            return ENAMETOOLONG;
    } while (mpiox_storage_staging_is_there(aside));
    int code = 0;
    if (mpiox_storage_staging_is_there(parts) || !mpiox_storage_staging_is_there(other)) {
        code = look_for_owners(staging);
        if (code == 0 && mpiox_storage_staging_is_there(other))
            code = unlink(other) == 0 ? 0 : errno; /* of a file that is gone */
        if (code == 0)
            code = mpiox_storage_give_name(parts, other);
    }
    return code == 0 ? mpiox_storage_give_name(staging, aside) : code;
}

void mpiox_storage_staging_find(const char *staging, uint64_t device, uint64_t inode, char *found, size_t bytes)
{
    char aside[PATH_MAX];
    (void)snprintf(found, bytes, "%s", staging);
    if (mpiox_storage_staging_has_name(staging, device, inode))
        return;
    for (int number = 1; number <= ASIDE_MOST && aside_name(staging, number, aside, sizeof aside); number++) {
        if (!mpiox_storage_staging_has_name(aside, device, inode))
            continue;
        if (strlen(aside) < bytes)
            memcpy(found, aside, strlen(aside) + 1);
        return;
    }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

const char *mpiox_storage_staging_shown(const char *path, char *room, size_t bytes)
{
    return mpiox_storage_staging_final(path, room, bytes) ? room : path;
}

bool mpiox_storage_staging_is_clash(int code)
{
    return code == EEXIST || code == ENODATA;
}

void mpiox_storage_staging_clash(const char *staging, int code, char *text, size_t bytes)
{
    if (code == EEXIST)
        (void)snprintf(text, bytes,
                       "is complete as %s, but does not get its name, because another file has it now: rename one of "
                       "the two",
                       staging);
    else
        (void)snprintf(text, bytes,
                       "does not get its name: %s.parts, the list of delegates with bytes of it, was removed; rename "
                       "%s when no I/O delegate (mpiio-ext delegates status) and no cache on a disk has bytes of it",
                       staging, staging);
}

void mpiox_storage_staging_forget(const char *staging)
{
    char parts[PATH_MAX];
    if (parts_name(staging, parts))
        unlink(parts);
}

void mpiox_storage_staging_remove_empty(const char *staging)
{
    char parts[PATH_MAX];
    struct stat status;
    if (parts_name(staging, parts) && !mpiox_storage_staging_is_there(parts) && lstat(staging, &status) == 0 &&
        S_ISREG(status.st_mode) && status.st_size == 0)
        unlink(staging);
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
