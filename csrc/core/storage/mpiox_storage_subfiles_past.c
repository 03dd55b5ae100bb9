/*
 * mpiox_storage_subfiles_past.c - files of subfiles that somebody empties, unlinks or replaces past MPI. See
 * mpiox_storage_subfiles_files.h.
 *
 * What speaks of the subfiles is looked for among all files of the folder: an index may have been renamed or copied.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_lock.h"
#include "mpiox_storage_subfiles_files.h"

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
        mpiox_storage_subfiles other;
        const char *why;
        if ((entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN) ||
            snprintf(beside, sizeof beside, "%.*s%s", length, path, entry->d_name) >= (int)sizeof beside ||
            !mpiox_storage_subfiles_is_index(beside) || mpiox_storage_subfiles_read(beside, &other, &why) != 0)
            continue;
        found = mpiox_storage_subfiles_path(&other, 0, first, sizeof first) && is(first, context);
        mpiox_storage_subfiles_free(&other);
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

bool mpiox_storage_subfiles_drop_emptied(const char *path)
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

/* ---- unlinked ---------------------------------------------------------------------------------------------------- */

/* Are the subfiles in one folder called as such, beside the index? What an index names elsewhere may be anybody's. */
static bool are_beside(const mpiox_storage_subfiles *subfiles)
{
    static const char suffix[] = ".subfiles";
    const char *slash = strchr(subfiles->names[0], '/');
    const ptrdiff_t length = slash != NULL ? slash - subfiles->names[0] : 0, ending = (ptrdiff_t)sizeof suffix - 1;
    bool are = length > ending && strncmp(slash - ending, suffix, sizeof suffix - 1) == 0;
    for (int32_t i = 0; are && i < subfiles->count; i++)
        are = strncmp(subfiles->names[i], subfiles->names[0], (size_t)length + 1) == 0 &&
              strchr(subfiles->names[i] + length + 1, '/') == NULL;
    return are;
}

bool mpiox_storage_subfiles_begin_unlink(const char *path, mpiox_storage_subfiles *out, int *guard, const char **why)
{
    struct stat status;
    *out = (mpiox_storage_subfiles){.size = -1};
    *guard = -1;
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1 ||
        !mpiox_storage_subfiles_is_index(path) || mpiox_storage_subfiles_read(path, out, why) != 0)
        return false;
    *why = are_beside(out) ? NULL : "it was removed, and named subfiles elsewhere";
    if (*why != NULL)
        return true;
    *guard = mpiox_storage_subfiles_guard(out, MPIOX_GUARD_REMOVE);
    if (*guard < 0 && errno == ENOENT) { /* they are gone */
        mpiox_storage_subfiles_free(out);
        return false;
    }
    if (*guard < 0 && (errno == EAGAIN || errno == EBADF || errno == EACCES))
        *why = errno == EAGAIN ? "it was removed while a program had it open"
                               : "it was removed, and whether a program has it open is not known";
    else if (*guard < 0 && out->size < 0) /* no locks: who writes it may be on another host */
        *why = "it was removed, and whether a program writes it is not known";
    return true;
}

static bool is_same(const char *first, const void *status)
{
    const struct stat *own = status;
    struct stat other;
    return lstat(first, &other) == 0 && other.st_dev == own->st_dev && other.st_ino == own->st_ino;
}

const char *mpiox_storage_subfiles_end_unlink(const mpiox_storage_subfiles *subfiles)
{
    char first[PATH_MAX];
    struct stat status;
    if (!mpiox_storage_subfiles_path(subfiles, 0, first, sizeof first) || lstat(first, &status) != 0)
        return NULL;
    if (is_spoken_of(subfiles->index, is_same, &status))
        return "it was removed, but not a copy of it";
    return mpiox_storage_subfiles_empty(subfiles, subfiles->count) == 0 ? NULL
                                                                        : "it was removed, its subfiles cannot be";
}
