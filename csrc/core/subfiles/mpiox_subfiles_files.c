/*
 * mpiox_subfiles_files.c - index and subfiles in the file system: created, replaced, removed. See
 * mpiox_subfiles_files.h.
 *
 * A file exists when its index does: subfiles are created first, under an unused ID, and then the index gets its name,
 * without replacing another file. New files are created exclusively and through no link.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"
#include "mpiox_storage_lock.h"
#include "mpiox_subfiles_files.h"
#include "mpiox_text.h"
#include "mpiox_wait.h"

static const char head_line[] = "mpiio_ext subfiles ", suffix[] = ".subfiles";

enum {
    INDEX_BYTES_MOST = 8 << 20,
    PERMISSIONS = 0666,
    FOLDER_PERMISSIONS = 0777,
    NAME_ROOM = 52,
    TAG_MOST = 99,
    TRIES = 100,
    PAUSES_MS = 5
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

bool mpiox_subfiles_path(const mpiox_subfiles *subfiles, int32_t subfile, char *path, int64_t bytes)
{
    const char *name = subfiles->names[subfile], *index = subfiles->index;
    const int folder = name[0] == '/' ? 0 : (int)(mpiox_text_base_name(index) - index);
    return snprintf(path, (size_t)bytes, "%.*s%s", folder, index, name) < bytes;
}

/* ID.NUMBER of each, in a folder beside the index, called after `name`. 0 or an errno. */
static int name_subfiles(mpiox_subfiles *subfiles, const char *name)
{
    const size_t room = strlen(name) + NAME_ROOM;
    free(subfiles->text);
    subfiles->text = malloc(room * (size_t)subfiles->count);
    if (subfiles->names == NULL)
        subfiles->names = calloc((size_t)subfiles->count, sizeof *subfiles->names);
    if (subfiles->text == NULL || subfiles->names == NULL)
        return ENOMEM;
    for (int32_t i = 0; i < subfiles->count; i++) {
        subfiles->names[i] = subfiles->text + room * (size_t)i;
        snprintf(subfiles->names[i], room, "%s.subfiles/%016" PRIx64 ".%" PRId32, name, subfiles->id, i);
    }
    return 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* All of a regular file of at most so many bytes; NULL with errno. */
static char *read_small(const char *path, int64_t *bytes)
{
    struct stat status;
    const int fd = mpiox_storage_descriptor(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    int code = fstat(fd, &status) != 0                                         ? errno
               : !S_ISREG(status.st_mode) || status.st_size > INDEX_BYTES_MOST ? EILSEQ
                                                                               : 0;
    char *text = code == 0 ? malloc((size_t)status.st_size + 1) : NULL;
    *bytes = 0;
    while (text != NULL && *bytes < status.st_size) {
        const ssize_t got = pread(fd, text + *bytes, (size_t)(status.st_size - *bytes), *bytes);
        if (got > 0)
            *bytes += got;
        else if (got == 0 || errno != EINTR)
            break;
    }
    close(fd);
    errno = code != 0 ? code : ENOMEM;
    return text;
}

static bool may_be_index(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_size >= (off_t)sizeof head_line - 1 &&
           status->st_size <= INDEX_BYTES_MOST;
}

static bool starts_like_index(int fd)
{
    char start[sizeof head_line - 1];
    return pread(fd, start, sizeof start, 0) == (ssize_t)sizeof start && memcmp(start, head_line, sizeof start) == 0;
}

bool mpiox_subfiles_is_index(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !may_be_index(&status))
        return false;
    const int fd = mpiox_storage_descriptor(path, O_RDONLY | O_NONBLOCK);
    const bool is = fd >= 0 && starts_like_index(fd);
    if (fd >= 0)
        close(fd);
    return is;
}

bool mpiox_subfiles_is_open_index(const char *path, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !may_be_index(&status))
        return false;
    errno = 0;
    return starts_like_index(fd) || (errno == EBADF && mpiox_subfiles_is_index(path));
}

/* The user may have renamed index and folder without changing the text: the folder that is called after the index
 * counts if it has the first subfile. 0 or ENOMEM. */
static int follow_folder(mpiox_subfiles *subfiles)
{
    const char *name = mpiox_text_base_name(subfiles->index), *first = mpiox_text_base_name(subfiles->names[0]);
    const size_t room = strlen(name) + NAME_ROOM, length = strlen(name);
    char path[PATH_MAX];
    struct stat status;
    if (strncmp(subfiles->names[0], name, length) == 0 &&
        strncmp(subfiles->names[0] + length, suffix, sizeof suffix - 1) == 0 &&
        subfiles->names[0] + length + sizeof suffix == first)
        return 0;
    if ((size_t)snprintf(path, sizeof path, "%s%s/%s", subfiles->index, suffix, first) >= sizeof path ||
        lstat(path, &status) != 0)
        return 0;
    char *text = malloc(room * (size_t)subfiles->count);
    if (text == NULL)
        return ENOMEM;
    for (int32_t i = 0; i < subfiles->count; i++) {
        snprintf(text + room * (size_t)i, room, "%s%s/%s", name, suffix, mpiox_text_base_name(subfiles->names[i]));
        subfiles->names[i] = text + room * (size_t)i;
    }
    free(subfiles->text);
    subfiles->text = text;
    return 0;
}

int mpiox_subfiles_read(const char *path, mpiox_subfiles *out, const char **why)
{
    int64_t bytes;
    char *text = read_small(path, &bytes);
    *out = (mpiox_subfiles){.size = -1};
    *why = "it cannot be read";
    if (text == NULL)
        return errno;
    if (bytes < (int64_t)sizeof head_line || memcmp(text, head_line, sizeof head_line - 1) != 0) {
        free(text);
        return EILSEQ;
    }
    const int code = mpiox_subfiles_parse(text, bytes, out, why);
    if (code != MPIOX_OK)
        return code == MPIOX_E_NOMEM ? ENOMEM : EBADMSG;
    out->index = realpath(path, NULL);
    const int failed = out->index == NULL ? errno : follow_folder(out);
    if (failed != 0)
        mpiox_subfiles_free(out);
    return failed;
}

bool mpiox_subfiles_folder(const mpiox_subfiles *subfiles, char *path, int64_t bytes)
{
    struct stat status;
    if (!mpiox_subfiles_path(subfiles, 0, path, bytes))
        return true;
    *strrchr(path, '/') = '\0';
    return path[0] == '\0' || lstat(path, &status) == 0 || errno != ENOENT;
}

int mpiox_subfiles_check(const mpiox_subfiles *subfiles, int32_t *bad)
{
    char path[PATH_MAX];
    struct stat status;
    for (int32_t i = 0; i < subfiles->count; i++) {
        *bad = i;
        if (!mpiox_subfiles_path(subfiles, i, path, sizeof path))
            return ENAMETOOLONG;
        if (lstat(path, &status) != 0)
            return errno;
        if (!S_ISREG(status.st_mode))
            return ELOOP;
        if (subfiles->size >= 0 &&
            status.st_size != mpiox_subfiles_share(subfiles->unit, subfiles->count, i, subfiles->size))
            return EBADMSG;
    }
    return 0;
}

/* Do two paths lead to two existing, different files? While a file is being replaced two checks may find two: they are
 * repeated. A file that is open keeps its number from being another's meanwhile. */
static bool are_two(const char *path, const char *index)
{
    struct stat before, own, after;
    bool found, settled;
    int tries = 0;
    do {
        const int fd = mpiox_storage_descriptor(path, O_PATH);
        found = fd >= 0 && fstat(fd, &before) == 0 && stat(index, &own) == 0 && stat(path, &after) == 0;
        settled = !found || (before.st_dev == after.st_dev && before.st_ino == after.st_ino);
        if (fd >= 0)
            close(fd);
    } while (!settled && ++tries < TRIES);
    return found && (before.st_dev != own.st_dev || before.st_ino != own.st_ino);
}

bool mpiox_subfiles_is_copy(const mpiox_subfiles *subfiles)
{
    char path[PATH_MAX];
    mpiox_subfiles first;
    const char *why;
    if (!mpiox_subfiles_path(subfiles, 0, path, sizeof path))
        return false;
    char *end = strrchr(path, '/');
    if (end - path < (ptrdiff_t)sizeof suffix - 1 || strncmp(end - (sizeof suffix - 1), suffix, sizeof suffix - 1) != 0)
        return false;
    end[1 - (ptrdiff_t)sizeof suffix] = '\0'; /* the name of the file after which the folder is called */
    if (!are_two(path, subfiles->index) || mpiox_subfiles_read(path, &first, &why) != 0)
        return false;
    const bool is = first.id == subfiles->id;
    mpiox_subfiles_free(&first);
    return is;
}

/* ---- the index in its place -------------------------------------------------------------------------------------- */

static int write_all(int fd, const char *text)
{
    const size_t bytes = strlen(text);
    for (size_t done = 0; done < bytes;) {
        const ssize_t moved = write(fd, text + done, bytes - done);
        if (moved > 0)
            done += (size_t)moved;
        else if (moved == 0 || errno != EINTR)
            return moved == 0 ? ENOSPC : errno;
    }
    return 0;
}

/* A new file with this text and, beside the umask, these permissions; on stable storage. */
static int write_new(const char *path, const char *text, const struct stat *like)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PERMISSIONS);
    if (fd < 0)
        return errno;
    int code = like != NULL && fchmod(fd, like->st_mode & 07777) != 0 ? errno : 0;
    if (code == 0)
        code = write_all(fd, text);
    if (code == 0 && fsync(fd) != 0)
        code = errno;
    if (close(fd) != 0 && code == 0)
        code = errno;
    if (code != 0)
        unlink(path);
    return code;
}

/* Write the index to `path`, with the permissions of the one before, if there is one. `made`: no file has that name,
 * and a file that appears meanwhile is not replaced. `alone`: only this process does this for the file. Its temporary
 * name is the same each time then, so that the file of a killed process is replaced, too. */
static int put_index(const mpiox_subfiles *subfiles, const char *path, bool made, bool alone)
{
    const char *name = mpiox_text_base_name(path);
    char temporary[PATH_MAX];
    struct stat before;
    if (strlen(name) + 32 > NAME_MAX ||
        (size_t)snprintf(temporary, sizeof temporary, "%.*s.%s.index-%016" PRIx64, (int)(name - path), path, name,
                         alone ? subfiles->id : mpiox_unique()) >= sizeof temporary)
        return ENAMETOOLONG;
    const bool is_there = lstat(subfiles->index, &before) == 0;
    if (!made && !is_there)
        return errno;
    char *text = mpiox_subfiles_format(subfiles, name);
    int code = text != NULL ? write_new(temporary, text, is_there ? &before : NULL) : ENOMEM;
    if (code == EEXIST && alone && unlink(temporary) == 0)
        code = write_new(temporary, text, is_there ? &before : NULL);
    free(text);
    if (code != 0)
        return code;
    code = made ? mpiox_storage_give_name(temporary, path) : rename(temporary, path) == 0 ? 0 : errno;
    if (code != 0)
        unlink(temporary);
    return code;
}

/* ---- who writes -------------------------------------------------------------------------------------------------- */

/* The first subfile, with as much right as there is; -1: it cannot be opened. */
static int open_first(const mpiox_subfiles *subfiles)
{
    char path[PATH_MAX];
    if (!mpiox_subfiles_path(subfiles, 0, path, sizeof path))
        return -1;
    const int fd = mpiox_storage_descriptor(path, O_RDWR | O_NOFOLLOW);
    return fd >= 0 ? fd : mpiox_storage_descriptor(path, O_RDONLY | O_NOFOLLOW);
}

int mpiox_subfiles_guard(const mpiox_subfiles *subfiles, mpiox_storage_guarding how)
{
    const int fd = open_first(subfiles), code = fd < 0 ? -fd : mpiox_storage_guard(fd, how);
    if (fd >= 0 && code != 0)
        close(fd);
    errno = code;
    return code == 0 ? fd : -1;
}

bool mpiox_subfiles_is_current(const mpiox_subfiles *subfiles, int guard)
{
    char path[PATH_MAX];
    struct stat held, named;
    return mpiox_subfiles_path(subfiles, 0, path, sizeof path) && fstat(guard, &held) == 0 &&
           lstat(path, &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

static void drop_guard(int *guard)
{
    if (*guard >= 0)
        close(*guard);
    *guard = -1;
}

/* ---- making and removing ----------------------------------------------------------------------------------------- */

int mpiox_subfiles_remove_parts(const mpiox_subfiles *subfiles, int32_t made)
{
    char path[PATH_MAX];
    int code = 0;
    for (int32_t i = 0; i < made; i++) {
        if (!mpiox_subfiles_path(subfiles, i, path, sizeof path))
            return ENAMETOOLONG;
        if (unlink(path) != 0 && errno != ENOENT && code == 0)
            code = errno;
    }
    if (code == 0 && mpiox_subfiles_path(subfiles, 0, path, sizeof path)) {
        *strrchr(path, '/') = '\0';
        const size_t length = strlen(path), ending = sizeof suffix - 1;
        if (length > ending && strcmp(path + length - ending, suffix) == 0)
            (void)rmdir(path); /* others may have files in it */
    }
    return code;
}

int mpiox_subfiles_remove(const mpiox_subfiles *subfiles)
{
    if (mpiox_subfiles_is_copy(subfiles))
        return unlink(subfiles->index) == 0 ? 0 : errno;
    const int code = mpiox_subfiles_remove_parts(subfiles, subfiles->count);
    return code != 0 ? code : unlink(subfiles->index) == 0 ? 0 : errno;
}

/* Of a name without a tag, which gets one that is > 0. There is room for it. */
static void set_tag(char *name, int tag)
{
    char *end = strrchr(name, '/') + 1 + 16; /* the ID */
    end += 1 + strspn(end + 1, "0123456789");
    end[0] = '\0';
    if (tag > 0)
        snprintf(end, 12, ".%d", tag);
}

/* One, under the first name that lies where it may. 0 or an errno. */
static int make_subfile(const mpiox_subfiles *subfiles, int32_t number, const mpiox_subfiles_places *places)
{
    char path[PATH_MAX];
    for (int tag = 0;; tag++) {
        set_tag(subfiles->names[number], tag);
        if (!mpiox_subfiles_path(subfiles, number, path, sizeof path))
            return ENAMETOOLONG;
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PERMISSIONS);
        if (fd < 0)
            return errno;
        const bool fits = places == NULL || places->fits(fd, number, tag == TAG_MOST, places->context);
        if (close(fd) != 0 || (!fits && unlink(path) != 0))
            return errno;
        if (fits)
            return 0;
    }
}

/* The first one is locked before there is another, so that no process takes them for leftovers. EEXIST: a file has the
 * name of one, or another process has removed the first. */
static int make_subfiles(const mpiox_subfiles *subfiles, const mpiox_subfiles_places *places, int *guard)
{
    for (int32_t i = 0; i < subfiles->count; i++) {
        int code = make_subfile(subfiles, i, places);
        if (code == 0 && i == 0) {
            *guard = mpiox_subfiles_guard(subfiles, MPIOX_GUARD_SHARED);
            code = *guard < 0 || mpiox_subfiles_is_current(subfiles, *guard) ? 0 : EEXIST;
        }
        if (code != 0) {
            drop_guard(guard);
            mpiox_subfiles_remove_parts(subfiles, i);
            return code;
        }
    }
    return 0;
}

/* For a path whose last component need not be there. NULL with errno. */
static char *absolute(const char *path)
{
    const char *name = mpiox_text_base_name(path);
    char folder[PATH_MAX], *real, *out = NULL;
    if ((size_t)snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path) >= sizeof folder) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    real = realpath(folder[0] != '\0' ? folder : ".", NULL);
    if (real != NULL && asprintf(&out, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0)
        out = NULL;
    free(real);
    return out;
}

/* Of another user, in a sticky folder as /tmp: its owner could swap the subfiles. Where others may write and nothing is
 * sticky, they could do so anyway; groups work in such folders. `folder` is cut off. */
static bool is_anothers(char *folder, const struct stat *status)
{
    struct stat parent;
    if (status->st_uid == geteuid() || status->st_uid == 0)
        return false;
    strrchr(folder, '/')[1] = '\0';
    return stat(folder, &parent) != 0 || (parent.st_mode & S_ISVTX) != 0;
}

static int make_folder(const mpiox_subfiles *subfiles)
{
    char path[PATH_MAX];
    struct stat status;
    if (!mpiox_subfiles_path(subfiles, 0, path, sizeof path))
        return ENAMETOOLONG;
    *strrchr(path, '/') = '\0';
    if (mkdir(path, FOLDER_PERMISSIONS) == 0)
        return 0;
    if (errno != EEXIST)
        return errno;
    if (lstat(path, &status) != 0)
        return errno;
    return !S_ISDIR(status.st_mode) ? ENOTDIR : is_anothers(path, &status) ? EPERM : 0;
}

static int create(mpiox_subfiles *out, const char *name, const mpiox_subfiles_places *places, int *guard)
{
    int code, tries = 0;
    do {
        out->id = mpiox_unique();
        code = name_subfiles(out, name);
        if (code == 0)
            code = make_folder(out);
        if (code != 0 && code != ENOENT)
            return code;
        if (code == 0)
            code = make_subfiles(out, places, guard);
        if (code == ENOENT) /* somebody has removed the empty folder, and may be waiting to do so again */
            poll(NULL, 0, 1 + tries % PAUSES_MS);
    } while ((code == EEXIST || code == ENOENT) && tries++ < TRIES);
    if (code != 0)
        return code;
    code = put_index(out, out->index, true, true);
    if (code == 0)
        return 0;
    drop_guard(guard);
    mpiox_subfiles_remove_parts(out, out->count);
    return code;
}

int mpiox_subfiles_create(const char *path, const char *name, int32_t count, int64_t unit,
                          const mpiox_subfiles_places *places, mpiox_subfiles *out, int *guard)
{
    struct stat status;
    *guard = -1;
    *out = (mpiox_subfiles){.unit = unit, .size = -1, .writers = 1, .count = count};
    if (lstat(path, &status) == 0)
        return EEXIST;
    if (strlen(mpiox_text_base_name(name)) > MPIOX_SUBFILES_NAME_MOST)
        return ENAMETOOLONG;
    out->index = absolute(path);
    const int code = out->index != NULL ? create(out, mpiox_text_base_name(name), places, guard) : errno;
    if (code != 0)
        mpiox_subfiles_free(out);
    return code;
}

/* Read the index again: another process may have replaced it meanwhile. */
static int read_again(mpiox_subfiles *subfiles)
{
    mpiox_subfiles now;
    const char *why;
    int code = mpiox_subfiles_read(subfiles->index, &now, &why);
    if (code != 0)
        return code == EILSEQ ? ESTALE : code;
    code = now.id == subfiles->id ? 0 : ESTALE;
    subfiles->size = now.size;
    subfiles->writers = now.writers;
    mpiox_subfiles_free(&now);
    return code;
}

/* One process at a time, if there are locks: *locked. 0 or an errno; the index is read again. */
static int begin_change(mpiox_subfiles *subfiles, int guard, bool *locked)
{
    *locked = guard >= 0 && mpiox_storage_guard(guard, MPIOX_GUARD_CHANGE) == 0;
    return read_again(subfiles);
}

static int end_change(int guard, int code)
{
    if (guard >= 0)
        (void)mpiox_storage_guard(guard, MPIOX_GUARD_CHANGED);
    return code;
}

int mpiox_subfiles_begin(mpiox_subfiles *subfiles, int guard, bool *torn)
{
    bool locked;
    int code = begin_change(subfiles, guard, &locked);
    const bool writing = subfiles->size < 0;
    *torn = code == 0 && writing && guard >= 0 && mpiox_storage_guard(guard, MPIOX_GUARD_LOOK) == 0;
    if (code == 0 && !*torn) { /* a full disk may have no room for another index: one that is torn can be emptied */
        subfiles->size = -1;
        subfiles->writers = writing ? subfiles->writers + 1 : 1;
        code = put_index(subfiles, subfiles->index, false, locked);
    }
    return end_change(guard, code);
}

void mpiox_subfiles_emptied(mpiox_subfiles *subfiles, int guard, bool *torn)
{
    bool locked;
    int code = begin_change(subfiles, guard, &locked);
    const bool alone = guard < 0 || mpiox_storage_guard(guard, MPIOX_GUARD_OTHERS) == 0;
    if (code == 0 && alone && subfiles->size < 0 && subfiles->writers > 1) {
        subfiles->writers = 1;
        code = put_index(subfiles, subfiles->index, false, locked);
    }
    if (code == 0 && alone)
        *torn = false;
    (void)end_change(guard, code); /* a process that could not write it leaves the file unfinished */
}

/* The size that the subfiles have together; each then gets its share of it, on stable storage if `stable`. */
static int settle_sizes(mpiox_subfiles *subfiles, bool stable)
{
    char path[PATH_MAX];
    struct stat status;
    int64_t *sizes = malloc(sizeof *sizes * (size_t)subfiles->count), size = 0;
    int code = sizes != NULL ? 0 : ENOMEM;
    for (int32_t i = 0; code == 0 && i < subfiles->count; i++) {
        code = !mpiox_subfiles_path(subfiles, i, path, sizeof path) ? ENAMETOOLONG
               : lstat(path, &status) != 0                          ? errno
                                                                    : 0;
        if (code != 0)
            break;
        sizes[i] = status.st_size;
        const int64_t end = mpiox_subfiles_reach(subfiles->unit, subfiles->count, i, sizes[i]);
        size = end > size ? end : size;
    }
    for (int32_t i = 0; code == 0 && i < subfiles->count; i++) {
        const int64_t share = mpiox_subfiles_share(subfiles->unit, subfiles->count, i, size);
        if (share == sizes[i])
            continue;
        (void)mpiox_subfiles_path(subfiles, i, path, sizeof path);
        const int fd = mpiox_storage_descriptor(path, O_WRONLY | O_NOFOLLOW);
        code = fd < 0 ? -fd : fstat(fd, &status) != 0 ? errno : 0;
        if (code == 0 && status.st_size < share) /* of a size that somebody else has settled nothing is cut off */
            code = mpiox_storage_cut_file(fd, share);
        if (code == 0 && stable && fsync(fd) != 0)
            code = errno;
        if (fd >= 0)
            close(fd);
    }
    free(sizes);
    subfiles->size = code == 0 ? size : -1;
    return code;
}

int mpiox_subfiles_end(mpiox_subfiles *subfiles, int guard, bool stable)
{
    bool locked;
    int code = begin_change(subfiles, guard, &locked);
    if (code == 0 && subfiles->size < 0 && subfiles->writers > 1)
        subfiles->writers--;
    else if (code == 0)
        code = settle_sizes(subfiles, stable);
    if (code == 0)
        code = put_index(subfiles, subfiles->index, false, locked);
    return end_change(guard, code);
}

/* ---- files that others bring to their end ------------------------------------------------------------------------ */

int mpiox_subfiles_first(const char *path, char first[PATH_MAX], struct stat *status)
{
    mpiox_subfiles subfiles;
    char room[PATH_MAX];
    const char *why;
    int code = mpiox_subfiles_is_index(path) ? mpiox_subfiles_read(path, &subfiles, &why) : EILSEQ;
    if (code != 0)
        return code;
    if (first == NULL)
        first = room;
    if (!mpiox_subfiles_path(&subfiles, 0, first, PATH_MAX))
        code = ENAMETOOLONG;
    else if (lstat(first, status) != 0)
        code = errno;
    mpiox_subfiles_free(&subfiles);
    return code;
}

static int sync_all(const mpiox_subfiles *subfiles)
{
    char path[PATH_MAX];
    int code = 0;
    for (int32_t i = 0; code == 0 && i < subfiles->count; i++) {
        const int fd = mpiox_subfiles_path(subfiles, i, path, sizeof path)
                           ? mpiox_storage_descriptor(path, O_WRONLY | O_NOFOLLOW)
                           : -ENAMETOOLONG;
        code = fd < 0 ? -fd : fsync(fd) == 0 ? 0 : errno;
        if (fd >= 0 && close(fd) != 0 && code == 0)
            code = errno;
    }
    return code;
}

int mpiox_subfiles_sync(const char *path)
{
    mpiox_subfiles subfiles;
    const char *why;
    int code = mpiox_subfiles_read(path, &subfiles, &why);
    if (code != 0)
        return code;
    code = sync_all(&subfiles);
    mpiox_subfiles_free(&subfiles);
    return code;
}

bool mpiox_subfiles_is_of(const char *path, uint64_t id)
{
    mpiox_subfiles other;
    const char *why;
    if (!mpiox_subfiles_is_index(path) || mpiox_subfiles_read(path, &other, &why) != 0)
        return false;
    const bool is = other.id == id;
    mpiox_subfiles_free(&other);
    return is;
}

/* No other process writes the file, or does this. */
static int publish(mpiox_subfiles *subfiles, const char *path, bool locked)
{
    struct stat status;
    int code = sync_all(subfiles);
    if (code == 0 && lstat(path, &status) != 0) {
        code = settle_sizes(subfiles, true);
        if (code == 0)
            code = put_index(subfiles, path, true, locked);
    } else if (code == 0) {
        code = EEXIST;
    }
    if (code == EEXIST && mpiox_subfiles_is_of(path, subfiles->id)) /* by a process that was killed then */
        code = 0;
    if (code == ENOENT) /* a subfile is missing */
        code = ESTALE;
    return code != 0 || unlink(subfiles->index) == 0 || errno == ENOENT ? code : errno;
}

/* `name` in the folder of the index. */
static bool beside(const mpiox_subfiles *subfiles, const char *name, char path[PATH_MAX])
{
    const int folder = (int)(mpiox_text_base_name(subfiles->index) - subfiles->index);
    return snprintf(path, PATH_MAX, "%.*s%s", folder, subfiles->index, mpiox_text_base_name(name)) < PATH_MAX;
}

int mpiox_subfiles_publish(const char *hidden, const char *name)
{
    mpiox_subfiles subfiles;
    char path[PATH_MAX];
    struct stat status;
    const char *why;
    int code = mpiox_subfiles_read(hidden, &subfiles, &why);
    if (code != 0)
        return code;
    int guard = open_first(&subfiles);
    const int lock = guard >= 0 ? mpiox_storage_guard(guard, MPIOX_GUARD_ALONE) : ENOLCK;
    if (!beside(&subfiles, name, path))
        code = ENAMETOOLONG;
    else if (lock == EAGAIN)
        code = EAGAIN;
    else
        code = lstat(subfiles.index, &status) != 0 ? errno : publish(&subfiles, path, lock == 0);
    drop_guard(&guard);
    mpiox_subfiles_free(&subfiles);
    return code;
}

int mpiox_subfiles_reveal(mpiox_subfiles *subfiles, const char *name)
{
    char path[PATH_MAX];
    char *own = beside(subfiles, name, path) ? strdup(path) : NULL;
    const int code = own == NULL ? ENOMEM : mpiox_storage_give_name(subfiles->index, path);
    if (code != 0) {
        free(own);
        return code;
    }
    free(subfiles->index);
    subfiles->index = own;
    return 0;
}
