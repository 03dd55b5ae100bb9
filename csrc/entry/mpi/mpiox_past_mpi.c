/* mpiox_past_mpi.c - see mpiox_past_mpi.h. */
#include "mpiox_past_mpi.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_forwarded.h"
#include "mpiox_handle.h"
#include "mpiox_mpi_path.h"
#include "mpiox_opener.h"
#include "mpiox_print.h"
#include "mpiox_storage_container.h"
#include "mpiox_storage_staging.h"

enum { MOST_LINKS = 40, PAUSE_MS = 20 };

/* The hints request such files: this process waits also if it is no client of delegates. */
static atomic_bool waits_beside;

static const double others_s = 10; /* limit on a wait for delegates that get no requests any more */

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

static bool is_written_behind(const mpiox_handle *handle)
{
    return handle->forwarded != NULL && mpiox_forwarded_closes_behind(handle->forwarded);
}

void mpiox_past_mpi_note_closed(const mpiox_handle *handle)
{
    const char *path = is_written_behind(handle) ? mpiox_file_place(handle->file) : NULL;
    char name[PATH_MAX];
    struct stat status;

    if (path == NULL || mpiox_storage_staging_final(path, name, sizeof name) || stat(path, &status) != 0 ||
        find_closed(&status) >= 0)
        return;
    const unsigned at = atomic_fetch_add(&next_closed, 1) % MPIOX_CACHE_MAX_FILES;

    atomic_store(&closed[at].inode, 0);
    atomic_store(&closed[at].device, (uint64_t)status.st_dev);
    atomic_store(&closed[at].inode, (uint64_t)status.st_ino);
}

/* ---- files by their hidden name ---------------------------------------------------------------------------------- */

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

/* Also if delegates write the file that this process cannot query any more. */
static void await_hidden(const mpiox_service *service, const char *path)
{
    const double until = mpiox_now() + others_s;
    char staging[PATH_MAX];
    bool others = false;

    if (!mpiox_storage_staging_name(path, staging, sizeof staging) || is_open_here(staging))
        return;
    mpiox_opener_await(path);
    for (int32_t i = 0; i < service->count; i++)
        others |= atomic_load(&service->delegates[i].left);
    while (others && access(staging, F_OK) == 0 && mpiox_now() < until)
        poll(NULL, 0, PAUSE_MS);
}

/* The path becomes that of a file that is still to get its name. False: there is none. */
static bool is_hidden(char path[PATH_MAX])
{
    char staging[PATH_MAX];

    for (int links = 0; links < MOST_LINKS; links++) {
        if (mpiox_storage_staging_name(path, staging, sizeof staging) && access(staging, F_OK) == 0)
            return true;
        if (!follow(path))
            return false;
    }
    return false;
}

static void await_below(mpiox_service *service, const char *path)
{
    char folder[PATH_MAX], file[PATH_MAX], staging[PATH_MAX];

    if (realpath(path, folder) == NULL)
        return;
    for (int32_t at = 0; mpiox_forwarded_next_draining(service, folder, &at, file);) {
        if (!mpiox_storage_staging_name(file, staging, sizeof staging) || !is_open_here(staging))
            mpiox_opener_await(file);
    }
}

/* ---- what libmpiio_ext_posix.so asks for ------------------------------------------------------------------------- */

static bool any(void)
{
    const mpiox_service *service = mpiox_service_last();

    return service != NULL ? mpiox_forwarded_may_hold(service) : atomic_load(&waits_beside);
}

/* A path from the current folder, without slashes at its end. False: it is too long, or none. */
static bool put_path(int folder, const char *path, char out[PATH_MAX])
{
    int length = folder == AT_FDCWD || path[0] == '/' ? snprintf(out, PATH_MAX, "%s", path)
                                                      : snprintf(out, PATH_MAX, "/proc/self/fd/%d/%s", folder, path);

    if (path[0] == '\0' || length < 0 || length >= PATH_MAX)
        return false;
    while (length > 1 && out[length - 1] == '/')
        out[--length] = '\0';
    return true;
}

static bool find(int folder, const char *path, const struct stat *known, bool below, mpiox_past_mpi_file *out)
{
    const mpiox_service *service = mpiox_service_last();
    struct stat status = {.st_ino = 0};

    if (known != NULL)
        status = *known;
    else if (fstatat(folder, path, &status, 0) != 0 && errno != ENOENT)
        return false;
    if (!put_path(folder, path, out->path))
        return false;
    if (status.st_ino == 0) { /* nothing: there may be another name */
        out->kind = MPIOX_PAST_MPI_HIDDEN;
        return is_hidden(out->path);
    }
    out->closed = find_closed(&status);
    out->kind = below && S_ISDIR(status.st_mode) ? MPIOX_PAST_MPI_BELOW : MPIOX_PAST_MPI_NAMED;
    return service != NULL && (out->kind == MPIOX_PAST_MPI_BELOW || out->closed >= 0 ||
                               mpiox_forwarded_is_draining(service, (uint64_t)status.st_dev, (uint64_t)status.st_ino));
}

static bool find_listed(int folder, const char *entry, mpiox_past_mpi_file *out)
{
    char own[PATH_MAX], staging[PATH_MAX];

    out->kind = MPIOX_PAST_MPI_HIDDEN;
    return mpiox_storage_staging_final(entry, own, sizeof own) && put_path(folder, own, out->path) &&
           mpiox_storage_staging_name(out->path, staging, sizeof staging) && mpiox_storage_staging_is_closed(staging);
}

/* By a process that is no client. */
static void await_beside(const char *path)
{
    char staging[PATH_MAX];

    while (mpiox_storage_staging_name(path, staging, sizeof staging) && mpiox_storage_staging_is_closed(staging))
        poll(NULL, 0, PAUSE_MS);
}

static void await(const mpiox_past_mpi_file *file)
{
    mpiox_service *service = mpiox_service_last();
    const bool client = service != NULL && getpid() == service->process;

    if (!client && file->kind == MPIOX_PAST_MPI_HIDDEN)
        await_beside(file->path);
    else if (!client)
        return;
    else if (file->kind == MPIOX_PAST_MPI_HIDDEN)
        await_hidden(service, file->path);
    else if (file->kind == MPIOX_PAST_MPI_BELOW)
        await_below(service, file->path);
    else if (mpiox_opener_await(file->path) && file->closed >= 0)
        atomic_store(&closed[file->closed].inode, 0);
}

static void await_as_named(const char *filename)
{
    if (filename != NULL && mpiox_mpi_path_is_posix(filename))
        mpiox_opener_await(mpiox_mpi_path(filename));
}

static void await_at_0(uintptr_t comm, const char *filename)
{
    const MPI_Comm of_program = (MPI_Comm)(intptr_t)comm; /* an int, or a pointer */
    int rank = 1;

    if (of_program != MPI_COMM_NULL && PMPI_Comm_rank(of_program, &rank) == MPI_SUCCESS && rank == 0)
        await_as_named(filename);
}

static int beginning(const char *filename)
{
    await_as_named(filename);
    return mpiox_mpi_path_is_posix(filename) ? mpiox_storage_container.beginning(mpiox_mpi_path(filename)) : -1;
}

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* by the linker: where this library is */
extern const char _end[] __attribute__((visibility("hidden")));

static bool is_in_front; /* of the C library, for the program */

__attribute__((constructor)) static void offer(void)
{
    static mpiox_past_mpi library = {
        .begin = __ehdr_start,
        .end = _end,
        .delegates = &mpiox_service_was_there,
        .any = any,
        .find = find,
        .find_listed = find_listed,
        .await = await,
        .await_at_0 = await_at_0,
        .beginning = beginning,
    };
    mpiox_past_mpi_hook *hook = (mpiox_past_mpi_hook *)dlsym(RTLD_DEFAULT, MPIOX_PAST_MPI_HOOK);
    mpiox_hints hints = {.close = MPIOX_CLOSE_WRITTEN};

    if (hook != NULL)
        mpiox_hints_resolve("", MPI_INFO_NULL, &hints, NULL, NULL);
    atomic_store(&waits_beside, hints.close == MPIOX_CLOSE_BEHIND);
    if (hints.close == MPIOX_CLOSE_BEHIND)
        library.delegates = &waits_beside;
    is_in_front = hook != NULL && hook(&library);
}

/* This library may be unloaded before the other one. */
__attribute__((destructor)) static void withdraw(void)
{
    mpiox_past_mpi_hook *hook = (mpiox_past_mpi_hook *)dlsym(RTLD_DEFAULT, MPIOX_PAST_MPI_HOOK);

    if (hook != NULL)
        hook(NULL);
}

void mpiox_past_mpi_note_opened(const mpiox_handle *handle)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;

    if (is_written_behind(handle) && mpiox_service_current()->first && !is_in_front &&
        !atomic_flag_test_and_set(&printed))
        mpiox_print("mpiio_ext: %s: open(), stat(), rename() and other calls past MPI do not wait until it is written; "
                    "they wait if `mpiio-ext run` gets mpiox_close by -H, MPIOX_HINTS or a file of hints\n",
                    handle->path);
}
