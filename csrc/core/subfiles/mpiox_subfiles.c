/*
 * mpiox_subfiles.c - the back end that distributes one logical file over several.
 *
 * Problem.   A request of the logical file is one of a subfile, or of several; a subfile may end before the logical
 *            file does, and a process has a limited number of descriptors.
 * Algorithm. A transfer moves up to the end of its unit, by the back end of that subfile; the loop that finishes short
 *            transfers makes the rest. In a list, the calls within one unit go to their subfile together. Each subfile
 *            is a handle of its own (posix, ring, direct, fault), opened at its first use. If the subfiles of all files
 *            have a quarter of the process's descriptors, the file that has most of them closes one, but not its first,
 *            which carries the locks. A read behind the end of a subfile is a hole if the logical file continues; to
 *            find its end, the subfile that had the last byte at the previous check is checked first. The folder of the
 *            index has a descriptor, so that after its renaming subfiles can still be opened.
 * Guarantee. A subfile that is not accessed is not opened, but for the first. One access in a unit is one call.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"
#include "mpiox_storage_refresh.h"
#include "mpiox_storage_folder.h"
#include "mpiox_subfiles_files.h"

enum {
    CUT_VECTORS = 64,
    LEAST_OPEN = 8,
    TOGETHER = 256,
    BEGINNING = 8192 /* bytes in which formats have their signatures */
};

typedef struct member {
    mpiox_storage *storage; /* NULL: it is closed */
    int users;
    atomic_bool written; /* since the last sync */
} member;

typedef struct subfiles_state {
    mpiox_subfiles index; /* owned */
    mpiox_storage_options options;
    int flags, rank;
    struct subfiles_state *next; /* guarded by all_lock */
    pthread_mutex_t lock;        /* guards what follows; taken before all_lock, or after it without waiting */
    _Atomic int32_t open_count;
    int32_t hand;
    int sys_errno;           /* of a close that was in between */
    int guard;               /* its lock shows that this process, a delegate, has the file; -1: it does not */
    int folder;              /* of the index, which may be renamed; -1: it is found by its name */
    _Atomic int32_t longest; /* had the logical file's last byte at the last check */
    member files[];
} subfiles_state;

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static subfiles_state *all;           /* that are open in this process */
static _Atomic int32_t open_in_total; /* subfiles */

/* ---- handles of subfiles ----------------------------------------------------------------------------------------- */

/* Close an unused one, if there is one. */
static bool close_one(subfiles_state *state)
{
    for (int32_t looked = 0; looked < state->index.count; looked++) {
        const int32_t i = state->hand++ % state->index.count;
        member *f = &state->files[i];
        state->hand %= state->index.count;
        if (i == 0 || f->storage == NULL || f->users > 0)
            continue;
        if (mpiox_storage_close(f->storage) != MPIOX_OK && state->sys_errno == 0)
            state->sys_errno = errno;
        f->storage = NULL;
        state->open_count--;
        open_in_total--;
        return true;
    }
    return false;
}

/* Of the file that has most of them, or of this one, whose lock is held. */
static bool close_somewhere(subfiles_state *state)
{
    subfiles_state *most = state;
    bool closed = false;
    pthread_mutex_lock(&all_lock);
    for (subfiles_state *other = all; other != NULL; other = other->next)
        if (other->open_count > most->open_count)
            most = other;
    if (most != state && pthread_mutex_trylock(&most->lock) == 0) {
        closed = close_one(most);
        pthread_mutex_unlock(&most->lock);
    }
    pthread_mutex_unlock(&all_lock);
    return closed || close_one(state);
}

static int32_t most_open(void)
{
    struct rlimit limit;
    int64_t most = LEAST_OPEN;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && (int64_t)(limit.rlim_cur / 4) > most)
        most = (int64_t)(limit.rlim_cur / 4);
    return most < INT32_MAX ? (int32_t)most : INT32_MAX;
}

/* 0 or -errno. */
static int open_subfile(mpiox_storage *storage, int32_t number)
{
    subfiles_state *state = storage->state;
    member *f = &state->files[number];
    mpiox_error error = {.code = MPIOX_OK};
    char path[PATH_MAX];
    if (!mpiox_subfiles_path(&state->index, number, path, sizeof path))
        return -ENAMETOOLONG;
    while (open_in_total >= most_open() && close_somewhere(state))
        continue;
    int code;
    do
        code = mpiox_storage_open_stack(path, state->flags | O_NOFOLLOW, state->rank, &state->options, &f->storage,
                                        &error);
    while (code != MPIOX_OK && (error.sys_errno == EMFILE || error.sys_errno == ENFILE) && close_somewhere(state));
    if (code != MPIOX_OK) {
        f->storage = NULL;
        return code == MPIOX_E_NOMEM ? -ENOMEM : error.sys_errno != 0 ? -error.sys_errno : -EINVAL;
    }
    state->open_count++;
    open_in_total++;
    f->storage->most_written = storage->most_written;
    if (storage->exact)
        mpiox_storage_read_exactly(f->storage);
    return 0;
}

/* The handle of a subfile, which stays until it is released. 0 or -errno. */
static int acquire(mpiox_storage *storage, int32_t number, bool write, mpiox_storage **out)
{
    subfiles_state *state = storage->state;
    member *f = &state->files[number];
    pthread_mutex_lock(&state->lock);
    const int code = f->storage != NULL ? 0 : open_subfile(storage, number);
    if (code == 0) {
        f->users++;
        f->written |= write;
        *out = f->storage;
    }
    pthread_mutex_unlock(&state->lock);
    return code;
}

/* Bytes were written that no sync has brought to stable storage, unless it began later. */
static void release(mpiox_storage *storage, int32_t number, bool wrote)
{
    subfiles_state *state = storage->state;
    pthread_mutex_lock(&state->lock);
    state->files[number].users--;
    state->files[number].written |= wrote;
    pthread_mutex_unlock(&state->lock);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Bytes of a subfile, or -errno. */
static int64_t bytes_of(mpiox_storage *storage, int32_t number)
{
    const subfiles_state *state = storage->state;
    char path[PATH_MAX];
    struct statx status;
    if (!mpiox_subfiles_path(&state->index, number, path, sizeof path))
        return -ENAMETOOLONG;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | (storage->exact ? AT_STATX_FORCE_SYNC : 0), STATX_SIZE, &status) !=
        0)
        return -errno;
    return (int64_t)status.stx_size;
}

/* Where the logical file ends by one of its subfiles, or -errno. */
static int64_t end_by(mpiox_storage *storage, int32_t number)
{
    const subfiles_state *state = storage->state;
    const int64_t bytes = bytes_of(storage, number);
    return bytes < 0 ? bytes : mpiox_subfiles_reach(state->index.unit, state->index.count, number, bytes);
}

static int subfiles_size(mpiox_storage *storage, int64_t *bytes)
{
    subfiles_state *state = storage->state;
    *bytes = 0;
    for (int32_t i = 0; i < state->index.count; i++) {
        const int64_t end = end_by(storage, i);
        if (end < 0)
            return (int)end;
        if (end > *bytes) {
            *bytes = end;
            state->longest = i;
        }
    }
    return 0;
}

/* A subfile ends at or before `place`. What of `wanted` bytes at `offset` is in the logical file all the same? Or
 * -errno. */
static int64_t hole_bytes(mpiox_storage *storage, mpiox_subfiles_spot place, int64_t offset, int64_t wanted)
{
    const subfiles_state *state = storage->state;
    const int64_t own = bytes_of(storage, place.subfile), end = end_by(storage, state->longest);
    int64_t size = end;
    int code = 0;
    if (own < 0 || own > place.offset) /* it has grown meanwhile, or a layer below reports an end */
        return own < 0 ? own : 0;
    if (end < 0 || end < offset + wanted)
        code = subfiles_size(storage, &size);
    if (code != 0 || size <= offset)
        return code;
    return size - offset < wanted ? size - offset : wanted;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

static void clear(const struct iovec *iov, int64_t bytes)
{
    for (; bytes > 0; iov++) {
        const size_t step = (uint64_t)bytes < iov->iov_len ? (size_t)bytes : iov->iov_len;
        if (step > 0)
            memset(iov->iov_base, 0, step);
        bytes -= (int64_t)step;
    }
}

static int64_t read_hole(mpiox_storage *storage, mpiox_subfiles_spot place, const struct iovec *iov, int iov_count,
                         int64_t offset)
{
    const int64_t bytes = hole_bytes(storage, place, offset, mpiox_storage_request_bytes(iov, iov_count, 0));
    if (bytes > 0)
        clear(iov, bytes);
    return bytes;
}

static int32_t subfiles_part_of(const mpiox_storage *storage, int64_t offset)
{
    const subfiles_state *state = storage->state;
    return mpiox_subfiles_place(state->index.unit, state->index.count, offset).subfile;
}

static int64_t subfiles_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count,
                                 int64_t offset)
{
    const subfiles_state *state = storage->state;
    const mpiox_subfiles_spot place = mpiox_subfiles_place(state->index.unit, state->index.count, offset);
    struct iovec part[CUT_VECTORS];
    mpiox_storage *inner;
    if (mpiox_storage_request_bytes(iov, iov_count, 0) > place.left) {
        iov_count = mpiox_storage_cut(iov, iov_count, place.left, part, CUT_VECTORS);
        iov = part;
    }
    const int code = acquire(storage, place.subfile, write, &inner);
    if (code != 0)
        return code;
    const int64_t moved = inner->backend->transfer(inner, write, iov, iov_count, place.offset);
    release(storage, place.subfile, write);
    return moved == 0 && !write ? read_hole(storage, place, iov, iov_count, offset) : moved;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* The calls of a list that lie in units of one subfile, from the first one on, in its places. */
typedef struct together {
    mpiox_storage_call calls[TOGETHER];
    int from[TOGETHER], count; /* in the list */
} together;

static void gather(const subfiles_state *state, mpiox_storage_call *calls, int count, int first, bool *seen,
                   together *out)
{
    const int32_t subfile = mpiox_subfiles_place(state->index.unit, state->index.count, calls[first].offset).subfile;
    out->count = 0;
    for (int i = first; i < count && out->count < TOGETHER; i++) {
        const mpiox_subfiles_spot place = mpiox_subfiles_place(state->index.unit, state->index.count, calls[i].offset);
        if (seen[i] || place.subfile != subfile)
            continue;
        seen[i] = true;
        if (calls[i].skip || mpiox_storage_request_bytes(calls[i].iov, calls[i].iov_count, 0) > place.left)
            continue;
        out->from[out->count] = i;
        out->calls[out->count] = calls[i];
        out->calls[out->count++].offset = place.offset;
    }
}

/* Pieces that end in a hole, or were not begun, are left to single transfers. False: one has failed. */
static bool settle(bool write, const together *t, mpiox_storage_call *calls)
{
    bool fine = true;
    for (int i = 0; i < t->count; i++) {
        const int64_t moved = t->calls[i].moved;
        calls[t->from[i]].moved = moved == 0 && !write ? MPIOX_STORAGE_NOT_STARTED : moved;
        fine &= moved >= 0 || moved == MPIOX_STORAGE_NOT_STARTED;
    }
    return fine;
}

static void subfiles_many(mpiox_storage *storage, bool write, mpiox_storage_call *calls, int count)
{
    const subfiles_state *state = storage->state;
    bool seen[TOGETHER] = {false}, fine = true;
    together t;
    if (state->options.kind == MPIOX_STORAGE_POSIX || (state->options.kind == MPIOX_STORAGE_AUTO && write) ||
        count > TOGETHER) /* one by one is as good, or all that there is */
        return;
    for (int first = 0; fine && first < count; first++) {
        mpiox_storage *inner;
        if (seen[first])
            continue;
        gather(state, calls, count, first, seen, &t);
        const int32_t subfile =
            mpiox_subfiles_place(state->index.unit, state->index.count, calls[first].offset).subfile;
        if (t.count < 2 || acquire(storage, subfile, write, &inner) != 0)
            continue;
        if (inner->backend->many != NULL)
            inner->backend->many(inner, write, t.calls, t.count);
        release(storage, subfile, write);
        fine = settle(write, &t, calls);
    }
}

/* ---- the whole file ---------------------------------------------------------------------------------------------- */

static int subfiles_sync(mpiox_storage *storage)
{
    subfiles_state *state = storage->state;
    int code = state->sys_errno;
    state->sys_errno = 0;
    for (int32_t i = 0; i < state->index.count; i++) {
        mpiox_error error = {.code = MPIOX_OK};
        mpiox_storage *inner;
        if (!state->files[i].written)
            continue;
        state->files[i].written = false; /* before: a concurrent writer marks it at its end */
        const int opened = acquire(storage, i, false, &inner);
        if (opened == 0) {
            mpiox_storage_sync(inner, &error);
            release(storage, i, false);
        }
        state->files[i].written |= opened != 0 || error.code != MPIOX_OK;
        if (code == 0)
            code = opened != 0 ? -opened : error.code != MPIOX_OK ? error.sys_errno : 0;
    }
    return -code;
}

/* Do a step on each subfile's share of the first `bytes` bytes, of each `parts`-th one. empty: on empty shares, too. */
static int on_shares(mpiox_storage *storage, int64_t bytes, int part, int parts, bool empty,
                     int (*step)(int fd, int64_t share))
{
    const subfiles_state *state = storage->state;
    int code = 0;
    for (int32_t i = part; code == 0 && i < state->index.count; i += parts) {
        const int64_t share = mpiox_subfiles_share(state->index.unit, state->index.count, i, bytes);
        mpiox_storage *inner;
        if (share == 0 && !empty)
            continue;
        code = acquire(storage, i, true, &inner);
        if (code != 0)
            return code;
        code = -step(inner->fd, share);
        release(storage, i, true);
    }
    return code;
}

/* No subfile grows before all have their space. */
static int subfiles_reserve(mpiox_storage *storage, int64_t bytes)
{
    int code = on_shares(storage, bytes, 0, 1, false, mpiox_storage_claim_space);
    if (code == 0)
        code = on_shares(storage, bytes, 0, 1, false, mpiox_storage_grow_file);
    if (code != 0)
        on_shares(storage, bytes, 0, 1, false, mpiox_storage_free_claimed);
    return code;
}

static int subfiles_resize(mpiox_storage *storage, int64_t bytes, int part, int parts)
{
    return on_shares(storage, bytes, part, parts, true, mpiox_storage_cut_file);
}

static int subfiles_refresh(mpiox_storage *storage)
{
    const subfiles_state *state = storage->state;
    int code = 0;
    for (int32_t i = 0; i < state->index.count; i++) {
        mpiox_error error = {.code = MPIOX_OK};
        mpiox_storage *inner;
        if (state->files[i].storage == NULL || acquire(storage, i, false, &inner) != 0)
            continue;
        if (mpiox_storage_refresh(inner, &error) != MPIOX_OK && code == 0)
            code = error.sys_errno != 0 ? -error.sys_errno : -EIO;
        release(storage, i, false);
    }
    return code;
}

/* From here on no other file closes subfiles of this one, or begins to. */
static void leave_all(subfiles_state *state)
{
    pthread_mutex_lock(&all_lock);
    subfiles_state **at = &all;
    while (*at != state)
        at = &(*at)->next;
    *at = state->next;
    open_in_total -= state->open_count;
    pthread_mutex_unlock(&all_lock);
}

static void discard_state(subfiles_state *state)
{
    if (state->guard >= 0)
        close(state->guard);
    if (state->folder >= 0)
        close(state->folder);
    pthread_mutex_destroy(&state->lock);
    mpiox_subfiles_free(&state->index);
    free(state);
}

static int subfiles_close(mpiox_storage *storage)
{
    subfiles_state *state = storage->state;
    leave_all(state);
    int code = state->sys_errno;
    for (int32_t i = 0; i < state->index.count; i++) {
        if (mpiox_storage_close(state->files[i].storage) != MPIOX_OK && code == 0)
            code = errno;
    }
    discard_state(state);
    return -code;
}

static const mpiox_storage_backend subfiles_backend = {
    .name = "subfiles",
    .transfer = subfiles_transfer,
    .close = subfiles_close,
    .many = subfiles_many,
    .sync = subfiles_sync,
    .reserve = subfiles_reserve,
    .resize = subfiles_resize,
    .size = subfiles_size,
    .refresh = subfiles_refresh,
    .part_of = subfiles_part_of,
    .part = "subfile",
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* From now on subfiles are found by a descriptor of the index's folder. Without memory or descriptors they go by its
 * name. */
static void keep_folder(subfiles_state *state)
{
    char path[PATH_MAX], *kept = NULL;
    state->folder = mpiox_storage_folder_open(state->index.index);
    if (state->folder >= 0 && mpiox_storage_folder_in(state->folder, state->index.index, path, sizeof path))
        kept = strdup(path);
    if (kept == NULL)
        return;
    free(state->index.index);
    state->index.index = kept;
}

/* The index is taken over. */
static int open_index(mpiox_subfiles *index, int flags, int rank, const mpiox_storage_options *options,
                      mpiox_storage **out, mpiox_error *error)
{
    mpiox_storage *storage = calloc(1, sizeof *storage), *first;
    subfiles_state *state = calloc(1, sizeof *state + sizeof state->files[0] * (size_t)index->count);
    if (storage == NULL || state == NULL) {
        free(storage);
        free(state);
        mpiox_subfiles_free(index);
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "open");
    }
    state->index = *index;
    state->flags = flags;
    state->rank = rank;
    state->guard = -1;
    keep_folder(state);
    if (options != NULL)
        state->options = *options;
    pthread_mutex_init(&state->lock, NULL);
    pthread_mutex_lock(&all_lock);
    state->next = all;
    all = state;
    pthread_mutex_unlock(&all_lock);
    *storage = (mpiox_storage){.backend = &subfiles_backend, .fd = -1, .state = state};
    const int code = acquire(storage, 0, false, &first);
    if (code != 0) {
        leave_all(state);
        discard_state(state);
        free(storage);
        return mpiox_error_set(error, MPIOX_E_IO, -code, -1, -1, "open (a subfile)");
    }
    storage->fd = first->fd;
    release(storage, 0, false);
    *out = storage;
    return MPIOX_OK;
}

static int open_container(const char *path, int flags, int rank, const mpiox_storage_options *options,
                          mpiox_storage **out, mpiox_error *error)
{
    mpiox_subfiles index;
    const char *why;
    *out = NULL;
    const int code = mpiox_subfiles_read(path, &index, &why);
    if (code != 0)
        return mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "open (the index of subfiles)");
    return open_index(&index, flags, rank, options, out, error);
}

static bool deal(const mpiox_storage *storage, mpiox_storage_deal *out)
{
    const subfiles_state *state = storage->state;
    if (storage->backend != &subfiles_backend)
        return false;
    *out = (mpiox_storage_deal){state->index.id, state->index.unit, state->index.count};
    return true;
}

static void mark_written(mpiox_storage *storage)
{
    if (storage->backend != &subfiles_backend)
        return;
    subfiles_state *state = storage->state;
    pthread_mutex_lock(&state->lock);
    if (state->guard < 0)
        state->guard = mpiox_subfiles_guard(&state->index, MPIOX_GUARD_BEHIND);
    pthread_mutex_unlock(&state->lock);
}

/* ---- by its name ------------------------------------------------------------------------------------------------- */

static int beginning(const char *path)
{
    char bytes[BEGINNING];
    int64_t done = 0;
    mpiox_storage *storage = NULL;
    mpiox_error ignored;
    int fd = -1;
    if (!mpiox_subfiles_is_index(path) || open_container(path, O_RDONLY, -1, NULL, &storage, &ignored) != MPIOX_OK)
        return -1;
    if (mpiox_storage_read(storage, bytes, sizeof bytes, 0, &done, &ignored) == MPIOX_OK)
        fd = memfd_create("mpiox_beginning", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, bytes, (size_t)done) != (ssize_t)done) {
        close(fd);
        fd = -1;
    }
    mpiox_storage_close(storage);
    return fd;
}

static bool delete_named(const char *path, mpiox_error *error)
{
    const int code = mpiox_subfiles_delete(path);
    mpiox_error_clear(error);
    if (code != 0)
        mpiox_error_set(error, MPIOX_E_IO, code, -1, -1,
                        code == EBUSY ? "deleting a file of subfiles that a program has open"
                                      : "deleting a file of subfiles");
    return code != EILSEQ;
}

static int remove_named(const char *path)
{
    mpiox_subfiles index;
    const char *why;
    int code = mpiox_subfiles_is_index(path) ? mpiox_subfiles_read(path, &index, &why) : EILSEQ;
    if (code != 0)
        return code;
    code = mpiox_subfiles_remove(&index);
    mpiox_subfiles_free(&index);
    return code;
}

const mpiox_storage_containers mpiox_storage_container = {
    .is = mpiox_subfiles_is_index,
    .is_open = mpiox_subfiles_is_open_index,
    .open = open_container,
    .deal = deal,
    .mark_written = mark_written,
    .first = mpiox_subfiles_first,
    .sync = mpiox_subfiles_sync,
    .publish = mpiox_subfiles_publish,
    .delete = delete_named,
    .remove = remove_named,
    .beginning = beginning,
    .open_elsewhere = "open (its subfiles are open elsewhere: it gets its name when they are closed)",
    .exists_already = "MPI_File_close waits until all is written, because the subfiles exist already",
};
