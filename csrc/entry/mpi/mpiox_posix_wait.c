/* mpiox_posix_wait.c - see mpiox_posix_wait.h. */
#include "mpiox_posix_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_forwarded.h"
#include "mpiox_handle.h"
#include "mpiox_mpi_staging.h"
#include "mpiox_posix_own.h"
#include "mpiox_storage_staging.h"

enum { MOST_LINKS = 40, PAUSE_MS = 20 };

static const double others_s = 10; /* so long one waits for delegates that cannot be asked */

/* ---- files that have had their name before ----------------------------------------------------------------------- */

/* Those that this process has closed; older ones make room. As many as a delegate has at once. */
static struct {
    _Atomic uint64_t device, inode;
} closed[MPIOX_CACHE_MAX_FILES];
static atomic_uint next_closed;

static int find_closed(const struct stat *status)
{
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        if (atomic_load(&closed[i].inode) == (uint64_t)status->st_ino &&
            atomic_load(&closed[i].device) == (uint64_t)status->st_dev)
            return i;
    }
    return -1;
}

void mpiox_posix_note_closed(const char *path)
{
    char name[PATH_MAX];
    struct stat status;

    if (mpiox_storage_staging_final(path, name, sizeof name) || stat(path, &status) != 0 || find_closed(&status) >= 0)
        return;
    const unsigned at = atomic_fetch_add(&next_closed, 1) % MPIOX_CACHE_MAX_FILES;

    atomic_store(&closed[at].inode, 0);
    atomic_store(&closed[at].device, (uint64_t)status.st_dev);
    atomic_store(&closed[at].inode, (uint64_t)status.st_ino);
}

static void await_named(const mpiox_service *service, const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return;
    const int index = find_closed(&status);

    if ((index < 0 && !mpiox_forwarded_is_draining(service, (uint64_t)status.st_dev, (uint64_t)status.st_ino)) ||
        mpiox_posix_is_in_handler())
        return;
    if (mpiox_mpi_staging_await_path(path) && index >= 0)
        atomic_store(&closed[index].inode, 0);
}

/* ---- files by their staging name --------------------------------------------------------------------------------- */

/* Where the last link of the path leads to, in its place. False: it is none. */
static bool follow(char path[PATH_MAX])
{
    char target[PATH_MAX], whole[PATH_MAX];
    const ssize_t bytes = readlink(path, target, sizeof target - 1);

    if (bytes <= 0)
        return false;
    target[bytes] = '\0';
    const char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
    const int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
    const int length = snprintf(whole, sizeof whole, "%.*s%s", folder, path, target);

    if (length < 0 || length >= (int)sizeof whole)
        return false;
    memcpy(path, whole, (size_t)length + 1);
    return true;
}

typedef struct search {
    struct stat wanted;
    bool found;
} search;

static void compare(mpiox_handle *handle, void *context)
{
    search *mine = context;
    struct stat status;

    mine->found |= handle->file != NULL && stat(mpiox_file_place(handle->file), &status) == 0 &&
                   status.st_dev == mine->wanted.st_dev && status.st_ino == mine->wanted.st_ino;
}

/* Has this process itself the file open? Then it gets no name while one waits. */
static bool is_open_here(const char *staging)
{
    search mine = {.found = false};

    if (stat(staging, &mine.wanted) == 0)
        mpiox_handle_each(compare, &mine);
    return mine.found;
}

/* Also where delegates write it that cannot be asked any more. */
static void await_name(const mpiox_service *service, const char *path, const char *staging)
{
    const double until = mpiox_now() + others_s;
    bool others = false;

    if (mpiox_posix_is_in_handler() || is_open_here(staging))
        return;
    mpiox_mpi_staging_await_path(path);
    for (int32_t i = 0; i < service->count; i++)
        others |= atomic_load(&service->delegates[i].left);
    while (others && access(staging, F_OK) == 0 && mpiox_now() < until)
        poll(NULL, 0, PAUSE_MS);
}

/* False: no file of that name is still to get it. */
static bool await_hidden(const mpiox_service *service, char path[PATH_MAX])
{
    char staging[PATH_MAX];

    for (int links = 0; links < MOST_LINKS; links++) {
        if (mpiox_storage_staging_name(path, staging, sizeof staging) && access(staging, F_OK) == 0) {
            await_name(service, path, staging);
            return true;
        }
        if (!follow(path))
            return false;
    }
    return false;
}

static void await_below(mpiox_service *service, const char *path)
{
    char folder[PATH_MAX], file[PATH_MAX], staging[PATH_MAX];
    struct stat status;

    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode) || mpiox_posix_is_in_handler() ||
        realpath(path, folder) == NULL)
        return;
    for (int32_t at = 0; mpiox_forwarded_next_draining(service, folder, &at, file);) {
        if (!mpiox_storage_staging_name(file, staging, sizeof staging) || !is_open_here(staging))
            mpiox_mpi_staging_await_path(file);
    }
}

void mpiox_posix_wait_for(const void *caller, int folder, const char *path, bool below)
{
    mpiox_service *service = mpiox_service_last();
    const int before = errno;
    char text[PATH_MAX];

    if (path == NULL || service == NULL || mpiox_posix_is_own(caller) || !mpiox_forwarded_may_hold(service) ||
        getpid() != service->process)
        return;
    if (mpiox_posix_path(folder, path, text) && !await_hidden(service, text)) { /* it has followed the links */
        await_named(service, text);
        if (below)
            await_below(service, text);
    }
    errno = before;
}
