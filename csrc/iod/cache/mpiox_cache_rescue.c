/*
 * mpiox_cache_rescue.c - a survivor writes the pages of a dead delegate.
 *
 * Problem.    The delegate has died with dirty pages. They still exist, because clients map the segment.
 * Algorithm.  A robust lock admits one survivor at a time. It waits until every thread of the delegate has ended (one
 *             may still be in a file-system call, which could otherwise write old bytes over newer ones). Then, frame
 *             by frame in file order, it waits for clients in the middle of an access, writes the dirty runs, and
 *             clears the marks.
 *             A file that was being written behind its close then gets its name (mpiox_cache_hidden.h).
 *             Copies of another delegate's pages (MPIOX_FILE_REPLICA) stay: their originals may be newer. A recovery
 *             after the end of all processes of the job writes copies of closed files, unless the originals are in the
 *             file.
 *             If the disk of a cache has failed, pages may be missing: pwrite() returns EFAULT. If tables are missing
 *             no page is written, because the dirty bytes are unknown. If the kernel could not write pages to that disk
 *             (mpiox_segment_has_failed) all are written, but reported as lost: they may be wrong. While the job runs,
 *             its other processes write the file, too. A recovery after its end checks for foreign writes
 *             (mpiox_cache_family.h): then the file stays as it is.
 * Guarantees. A byte that a finished access deposited is in the file, or a deferred error of the file names it, before
 *             the state is RESCUED. Marks are cleared after the write, so that the next survivor can continue if this
 *             one dies. Only marks are trusted, not counts: a client may have died between the two.
 */
#include "mpiox_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_cache_family.h"
#include "mpiox_cache_hidden.h"
#include "mpiox_segment.h"
#include "mpiox_segment_guard.h"
#include "mpiox_storage.h"
#include "mpiox_storage_container.h"
#include "mpiox_testing.h"

enum { SYSTEM_PAGE = 4096 };

static const double patience_s = 2; /* for clients that have frames pinned, all together */

typedef struct page_place {
    int64_t page;
    int32_t file;
    uint32_t frame;
} page_place;

typedef struct rescuer {
    const mpiox_cache *cache;
    const mpiox_cache_family *family; /* NULL: the job runs */
    bool force;                       /* foreign writes are overwritten */
    double deadline;
    int64_t rescued;
    bool failed;            /* in this frame */
    bool done;              /* other processes have written these bytes, and the file has got its name */
    int32_t file;           /* that storage is open for; -1: none */
    mpiox_storage *storage; /* NULL: it cannot be opened, for the reason in `why` */
    bool shared;            /* other jobs may use the file by this name: note the write */
    int64_t found_ns;       /* when it was changed last, before */
    mpiox_error why;
} rescuer;

static void await_threads(const mpiox_cache *cache)
{
    mpiox_cache_header *header = cache->header;
    mpiox_backoff backoff = {0};
    for (int32_t i = 0; i < atomic_load(&header->threads) && i < MPIOX_CACHE_MAX_THREADS; i++) {
        while (mpiox_cache_look_at_life(&header->life[i]) == MPIOX_LIFE_ALIVE)
            mpiox_wait_backoff(&backoff);
    }
}

static void close_file(rescuer *self)
{
    mpiox_error ignored;
    if (self->storage != NULL && self->shared && mpiox_storage_pin(self->storage, &ignored) == MPIOX_OK) {
        mpiox_cache_family_end_write(self->family, &self->cache->header->files[self->file], self->storage->fd,
                                     self->found_ns);
        mpiox_storage_unpin(self->storage);
    }
    (void)mpiox_storage_close(self->storage);
    self->storage = NULL;
    self->shared = false;
    self->file = -1;
}

/* Why an open file is not the one to be written; NULL: it is. */
static const char *refuse(rescuer *self, const mpiox_file_record *record)
{
    char own[MPIOX_CACHE_PATH_BYTES];
    struct stat status;
    if (fstat(self->storage->fd, &status) != 0 || (uint64_t)status.st_dev != record->device ||
        (uint64_t)status.st_ino != record->inode)
        return "rescue: another file has this name";
    self->shared = self->family != NULL && !mpiox_cache_own_name(record->path, own, sizeof own);
    self->found_ns = mpiox_cache_changed_ns(&status);
    return self->shared && !self->force && mpiox_cache_family_is_changed(self->family, record, &status)
               ? MPIOX_CACHE_CHANGED
               : NULL;
}

/* Open the file of a record; what stands in the way is kept in self->why. */
static void open_file(rescuer *self, int32_t file)
{
    const mpiox_file_record *record = &self->cache->header->files[file];
    mpiox_error error = {.code = MPIOX_OK};
    if (self->file == file)
        return;
    close_file(self);
    self->file = file;
    self->done = false;
    const int code = atomic_load(&record->flags) & MPIOX_FILE_CONTAINER
                         ? mpiox_storage_container.open(record->path, O_WRONLY, -1, NULL, &self->storage, &error)
                         : mpiox_storage_open(record->path, O_WRONLY, -1, NULL, &self->storage, &error);
    if (code != MPIOX_OK) {
        self->done = error.sys_errno == ENOENT && atomic_load(&record->flags) & MPIOX_FILE_COPIED;
        (void)mpiox_error_set(&self->why, MPIOX_E_IO, error.sys_errno, -1, -1, "rescue: open");
        return;
    }
    const char *why = refuse(self, record);
    if (why == NULL)
        return;
    (void)mpiox_error_set(&self->why, MPIOX_E_IO, ESTALE, -1, -1, why);
    (void)mpiox_storage_close(self->storage);
    self->storage = NULL;
    self->shared = false;
}

/* 0 or an errno; *done = bytes written. EFAULT: the page of the cache at `done` cannot be read. */
static int write_all(mpiox_storage *storage, const char *bytes, int64_t length, int64_t offset, int64_t *done)
{
    mpiox_error error;
    *done = 0;
    if (mpiox_segment_is_lost(bytes, length))
        return EFAULT;
    if (mpiox_storage_write(storage, bytes, length, offset, &error) == MPIOX_OK) {
        *done = length;
        return 0;
    }
    *done = error.offset > offset ? error.offset - offset : 0;
    return error.sys_errno != 0 ? error.sys_errno : EIO;
}

/* Write a run; if pages of the cache cannot be read, at most one page. Returns the number of bytes that are done. */
static int64_t rescue_some(rescuer *self, const page_place *at, int64_t offset, int64_t length)
{
    const int64_t place = at->page * self->cache->page_bytes + offset, in_page = SYSTEM_PAGE - offset % SYSTEM_PAGE;
    mpiox_error error = self->why;
    int64_t done = 0, tried = length;
    if (self->storage != NULL) {
        const char *bytes = mpiox_cache_bytes_of(self->cache, at->frame) + offset;
        if (in_page < tried && atomic_load(&mpiox_segment_lost_some))
            tried = in_page;
        const int code = write_all(self->storage, bytes, tried, place, &done);
        self->rescued += done;
        if (done > 0)
            mpiox_cache_mend_errors(self->cache, at->file, place, place + done);
        if (code == 0 || (code == EFAULT && done > 0))
            return done;
        if (code == EFAULT && in_page < tried)
            tried = in_page;
        (void)mpiox_error_set(&error, MPIOX_E_IO, code == EFAULT ? EIO : code, -1, -1,
                              code == EFAULT ? "rescue: reading the cache" : "rescue: pwrite");
    }
    self->failed = true;
    error.offset = place + done;
    error.length = tried - done;
    mpiox_cache_add_error(self->cache, at->file, &error);
    return tried;
}

static void rescue_run(rescuer *self, const page_place *at, int64_t offset, int64_t length)
{
    for (int64_t done = 0; done < length && mpiox_cache_torn(self->cache) != MPIOX_TORN_TABLES;)
        done += rescue_some(self, at, offset + done, length - done);
}

/* All of a page, of which the first is known. */
static void rescue_runs(rescuer *self, const page_place *at, int64_t offset, int64_t length)
{
    if (self->storage == NULL) { /* one error for all of the page */
        int64_t first = offset, end = offset + length;
        while (mpiox_dirty_run(self->cache, at->frame, end, &offset, &length))
            end = offset + length;
        rescue_run(self, at, first, end - first);
        return;
    }
    do
        rescue_run(self, at, offset, length);
    while (mpiox_dirty_run(self->cache, at->frame, offset + length, &offset, &length));
}

static void rescue_frame(rescuer *self, const page_place *at)
{
    const mpiox_cache *cache = self->cache;
    const double left = self->deadline - mpiox_now();
    int64_t offset = 0, length = 0;
    self->failed = false;
    /* A client whose pin stays has died, or will find the state and write its bytes itself. */
    (void)mpiox_frame_wait_exclusive(cache, at->frame, left > 0 ? left : 0);
    if (mpiox_dirty_run(cache, at->frame, 0, &offset, &length)) {
        open_file(self, at->file);
        if (self->shared)
            mpiox_cache_family_begin_write(self->family, &cache->header->files[at->file]);
        if (!self->done)
            rescue_runs(self, at, offset, length);
        if (!self->failed || cache->header->kept[0] == '\0')
            mpiox_dirty_clear(cache, at->frame);
    }
    mpiox_frame_end_exclusive(cache, at->frame);
}

static int by_place(const void *a, const void *b)
{
    const page_place *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->page > y->page) - (x->page < y->page);
}

static int64_t rescue_all(const mpiox_cache *cache, const mpiox_cache_family *family, bool force)
{
    rescuer self = {.cache = cache, .family = family, .force = force, .deadline = mpiox_now() + patience_s, .file = -1};
    page_place *places = malloc((size_t)cache->frame_count * sizeof *places);
    size_t count = 0;
    for (int32_t i = 0; i < cache->frame_count; i++) {
        const page_place at = {.page = atomic_load(&cache->frames[i].page),
                               .file = atomic_load(&cache->frames[i].file),
                               .frame = (uint32_t)i};
        if (at.file < 0 || at.file >= MPIOX_CACHE_MAX_FILES ||
            atomic_load(&cache->header->files[at.file].flags) & MPIOX_FILE_REPLICA)
            continue;
        if (places != NULL)
            places[count++] = at;
        else
            rescue_frame(&self, &at); /* no memory: in any order */
    }
    if (places != NULL)
        qsort(places, count, sizeof *places, by_place);
    for (size_t i = 0; i < count; i++)
        rescue_frame(&self, &places[i]);
    close_file(&self);
    free(places);
    return self.rescued;
}

/* It is unknown which bytes were dirty, or are right, so all may be lost; of copies none is. */
static void lose_all(const mpiox_cache *cache)
{
    atomic_store(&cache->header->torn, MPIOX_TORN_TABLES);
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_file_record *record = &cache->header->files[i];
        const int64_t end = atomic_load(&record->end);
        mpiox_error error;
        if (atomic_load(&record->openers) < 1 || end < 1 || atomic_load(&record->flags) & MPIOX_FILE_REPLICA)
            continue;
        (void)mpiox_error_set(&error, MPIOX_E_IO, EIO, 0, end, "rescue: reading the cache");
        mpiox_cache_add_error(cache, i, &error);
    }
}

/* All bytes are in the files: no later recovery is needed. */
static void drop_name(const mpiox_cache *cache)
{
    if (cache->header->kept[0] != '\0' && !mpiox_cache_has_errors(cache) && !mpiox_cache_has_copies(cache))
        unlink(cache->header->kept);
}

static int64_t rescue(const mpiox_cache *cache, const mpiox_cache_family *family, bool force)
{
    mpiox_cache_header *header = cache->header;
    int64_t rescued = -1;
    if (pthread_mutex_lock(&header->rescue_lock) == EOWNERDEAD)
        pthread_mutex_consistent(&header->rescue_lock);
    if (mpiox_futex_get(&header->state) == MPIOX_CACHE_DEAD) {
        await_threads(cache);
        MPIOX_POINT("rescue");
        mpiox_cache_keep_hidden(cache);
        rescued = rescue_all(cache, family, force);
        MPIOX_POINT("rescued");
        if (mpiox_cache_torn(cache) == MPIOX_TORN_TABLES || mpiox_segment_has_failed(cache->disk))
            lose_all(cache);
        else
            mpiox_cache_end_hidden(cache);
        atomic_fetch_add_explicit(&header->counters.rescued_bytes, rescued, memory_order_relaxed);
        drop_name(cache);
        MPIOX_POINT("settled");
        mpiox_futex_set(&header->state, MPIOX_CACHE_RESCUED);
    }
    pthread_mutex_unlock(&header->rescue_lock);
    return rescued;
}

int64_t mpiox_cache_rescue(const mpiox_cache *cache)
{
    return rescue(cache, NULL, false);
}

/* Forget errors of an earlier recovery. Bytes that the delegate itself has lost stay lost. */
static void forget_trials(const mpiox_cache *cache, int32_t file)
{
    mpiox_error before[MPIOX_CACHE_ERRORS], lost = {.code = MPIOX_OK};
    int more, count;
    while ((count = mpiox_cache_take_errors(cache, file, before, MPIOX_CACHE_ERRORS, &more)) > 0) {
        for (int i = 0; i < count; i++) {
            if (strncmp(before[i].what, MPIOX_CACHE_RESCUE, sizeof MPIOX_CACHE_RESCUE - 1) != 0)
                lost = before[i];
        }
    }
    if (lost.code != MPIOX_OK)
        mpiox_cache_add_error(cache, file, &lost);
}

int64_t mpiox_cache_recover(const mpiox_cache *cache, bool all_are_gone, bool force,
                            const struct mpiox_cache_family *family)
{
    if (mpiox_cache_is_serving(cache, true))
        return -1;
    mpiox_cache_find_hidden(cache);
    if (all_are_gone)
        mpiox_cache_take_copies(cache);
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++)
        forget_trials(cache, i);
    if (mpiox_futex_get(&cache->header->state) != MPIOX_CACHE_DEAD) /* only the recovering process still uses it */
        mpiox_futex_set(&cache->header->state, MPIOX_CACHE_DEAD);
    const int64_t rescued = rescue(cache, family, force);
    return rescued < 0 ? 0 : rescued; /* another one was faster */
}
