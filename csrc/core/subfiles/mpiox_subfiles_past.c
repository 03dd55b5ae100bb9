/*
 * mpiox_subfiles_past.c - files of subfiles that are emptied past MPI, or deleted. See mpiox_subfiles_files.h.
 *
 * All files of the folder are searched for the index of subfiles: it may have been renamed or copied.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_storage_lock.h"
#include "mpiox_subfiles_files.h"

enum { TRIES = 100, PAUSE_NS = 10000000 }; /* a second together */

/* Is this a name that this library gives to subfiles, and of the first one? */
static bool is_subfile_name(const char *name, bool *first)
{
    static const char digits[] = "0123456789";
    if (strspn(name, "0123456789abcdef") != 16 || name[16] != '.')
        return false;
    const char *number = name + 17;
    const size_t length = strspn(number, digits), tag = number[length] == '.' ? strspn(number + length + 1, digits) : 0;
    *first = length == 1 && number[0] == '0';
    return length >= 1 && length <= 4 && (number[length] == '\0' || (tag >= 1 && number[length + 1 + tag] == '\0'));
}

/* Remove the subfiles in a folder, or ask whether one of them is written (EBUSY). 0 or an errno. */
static int empty_folder(const char *folder, bool remove)
{
    DIR *entries = opendir(folder);
    int code = entries != NULL ? 0 : errno;
    for (const struct dirent *entry; code == 0 && (entry = readdir(entries)) != NULL;) {
        bool first;
        if (!is_subfile_name(entry->d_name, &first) || (!remove && !first))
            continue;
        if (remove && unlinkat(dirfd(entries), entry->d_name, 0) != 0 && errno != ENOENT)
            code = errno;
        const int fd = remove ? -1 : openat(dirfd(entries), entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && mpiox_storage_guard(fd, MPIOX_GUARD_LOOK) == EAGAIN)
            code = EBUSY;
        if (fd >= 0)
            close(fd);
    }
    if (entries != NULL)
        closedir(entries);
    return code;
}

/* Does an index beside `path` speak of subfiles by this? Also, where the folder cannot be read. */
static bool is_spoken_of(const char *path, bool (*is)(const char *first, const void *context), const void *context)
{
    const char *slash = strrchr(path, '/');
    const int length = slash != NULL ? (int)(slash - path) + 1 : 0;
    char beside[PATH_MAX], first[PATH_MAX];
    snprintf(beside, sizeof beside, "%.*s", length, length > 0 ? path : ".");
    DIR *entries = opendir(length > 0 ? beside : ".");
    bool found = entries == NULL;
    for (const struct dirent *entry; !found && (entry = readdir(entries)) != NULL;) {
        mpiox_subfiles other;
        const char *why;
        if ((entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN) ||
            snprintf(beside, sizeof beside, "%.*s%s", length, path, entry->d_name) >= (int)sizeof beside ||
            !mpiox_subfiles_is_index(beside) || mpiox_subfiles_read(beside, &other, &why) != 0)
            continue;
        found = mpiox_subfiles_path(&other, 0, first, sizeof first) && is(first, context);
        mpiox_subfiles_free(&other);
    }
    if (entries != NULL)
        closedir(entries);
    return found;
}

/* ---- emptied ----------------------------------------------------------------------------------------------------- */

static bool is_in(const char *first, const void *folder)
{
    char real[PATH_MAX];
    return realpath(folder, real) == NULL || (strncmp(first, real, strlen(real)) == 0 && first[strlen(real)] == '/');
}

bool mpiox_subfiles_drop_emptied(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0 ||
        (size_t)snprintf(folder, sizeof folder, "%s.subfiles", path) >= sizeof folder || lstat(folder, &status) != 0 ||
        !S_ISDIR(status.st_mode) || is_spoken_of(path, is_in, folder) || empty_folder(folder, false) != 0 ||
        empty_folder(folder, true) != 0)
        return false;
    (void)rmdir(folder); /* others may have files in it */
    return unlink(path) == 0;
}

/* ---- deleted ----------------------------------------------------------------------------------------------------- */

static bool is_same(const char *first, const void *status)
{
    const struct stat *own = status;
    struct stat other;
    return lstat(first, &other) == 0 && other.st_dev == own->st_dev && other.st_ino == own->st_ino;
}

/* The index, then the subfiles, if no other index beside it has them. */
static int delete_named(const mpiox_subfiles *subfiles)
{
    char first[PATH_MAX];
    struct stat status;
    const bool there = mpiox_subfiles_path(subfiles, 0, first, sizeof first) && lstat(first, &status) == 0;
    const bool copy = mpiox_subfiles_is_copy(subfiles);
    if (unlink(subfiles->index) != 0)
        return errno;
    return copy || (there && is_spoken_of(subfiles->index, is_same, &status))
               ? 0
               : mpiox_subfiles_remove_parts(subfiles, subfiles->count);
}

/* Other ranks may be a moment behind in the same MPI_File_close. */
static int take_guard(const mpiox_subfiles *subfiles)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int guard = mpiox_subfiles_guard(subfiles, MPIOX_GUARD_REMOVE);
    for (int tries = 1; guard < 0 && errno == EAGAIN && tries < TRIES; tries++) {
        nanosleep(&pause, NULL);
        guard = mpiox_subfiles_guard(subfiles, MPIOX_GUARD_REMOVE);
    }
    return guard;
}

int mpiox_subfiles_delete(const char *path)
{
    mpiox_subfiles subfiles;
    struct stat status;
    const char *why;
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1 || !mpiox_subfiles_is_index(path))
        return EILSEQ;
    int code = mpiox_subfiles_read(path, &subfiles, &why);
    if (code != 0)
        return code;
    const int guard = take_guard(&subfiles);
    code = guard < 0 && errno == EAGAIN ? EBUSY : delete_named(&subfiles);
    if (guard >= 0)
        close(guard);
    mpiox_subfiles_free(&subfiles);
    return code;
}
