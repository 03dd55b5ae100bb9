/*
 * mpiox_server_fill.c - I/O threads: pages from the file, on demand and ahead.
 *
 * Problem.    A page that is read must be filled from the file, without changing its dirty bytes, and without memory
 *             beside the segment.
 * Algorithm.  One request reads consecutive pages that wait to be filled. A page without dirty bytes (nearly all) is
 *             read in place, in exclusive use. A page with dirty bytes is read in exclusive use, too: stretches without
 *             dirty bytes in place, the others through a buffer of 64 KiB, from which the bytes between the dirty runs
 *             are copied.
 * Guarantees. The page is in the map before the file is read, so that a client that accesses the file itself and checks
 *             for the page afterwards finds it. Requests that wait for the page get an error as their answer; a page
 *             that was only read ahead is dropped silently.
 */
#include "mpiox_server_fill.h"

#include <errno.h>
#include <string.h>

#include "mpiox_server_alone.h"
#include "mpiox_server_pages.h"

static const int64_t most_bytes = INT64_C(16) << 20;

enum { FILLED, FAILED, PINNED }; /* outcome of a frame; but for PINNED it is in exclusive use */

static void count_request(mpiox_server *server, int64_t bytes)
{
    MPIOX_COUNT(server, fill_requests, 1);
    MPIOX_COUNT(server, fill_bytes, bytes);
}

static int64_t start_of(const mpiox_server *server, uint32_t frame)
{
    return mpiox_server_page_of(server, frame) * server->cache.page_bytes;
}

/* In exclusive use: `exist` bytes of the page exist in the file, and all that was not dirty has been read. */
static void set_filled(mpiox_server *server, uint32_t frame, int64_t exist)
{
    mpiox_frame *at = &server->cache.frames[frame];
    if (atomic_load(&at->known_end) < exist)
        atomic_store(&at->known_end, exist);
    atomic_fetch_or(&at->flags, MPIOX_FRAME_FILLED);
}

/* ---- pages with dirty bytes -------------------------------------------------------------------------------------- */

/* Read a part of a page, zeros behind the end of the file. *end is raised to the offset behind its last byte that
 * exists. */
static int read_part(mpiox_server *server, mpiox_storage *storage, const mpiox_storage_piece *part, int64_t *end,
                     mpiox_error *error)
{
    int64_t done;
    count_request(server, part->length);
    const int code = mpiox_storage_read(storage, part->base, part->length, part->offset, &done, error);
    if (code != MPIOX_OK)
        return code;
    memset((char *)part->base + done, 0, (size_t)(part->length - done));
    if (done > 0 && *end < part->offset + done)
        *end = part->offset + done;
    return MPIOX_OK;
}

/* Copy those bytes of [from, to) of the page that are not dirty. */
static void merge(const mpiox_cache *cache, uint32_t frame, int64_t from, int64_t to, const char *bytes)
{
    char *page = mpiox_cache_bytes_of(cache, frame);
    for (int64_t at = from, run, length; at < to; at = run + length) {
        if (!mpiox_dirty_run(cache, frame, at, &run, &length) || run > to) {
            run = to;
            length = 0;
        }
        memcpy(page + at, bytes + (at - from), (size_t)(run - at));
    }
}

/* In exclusive use: fill all bytes that are not dirty. */
static int fill_between(mpiox_server *server, mpiox_io *io, mpiox_storage *storage, uint32_t frame, mpiox_error *error)
{
    const mpiox_cache *cache = &server->cache;
    const int64_t start = start_of(server, frame);
    int64_t end = start, next;
    int code = MPIOX_OK;
    for (int64_t at = 0, run, length; at < cache->page_bytes && code == MPIOX_OK; at = next) {
        if (!mpiox_dirty_run(cache, frame, at, &run, &length)) {
            run = cache->page_bytes;
            length = 0;
        }
        next = run + length;
        if (run == at)
            continue;
        if (run - at >= MPIOX_SCRATCH || run == cache->page_bytes) {
            const mpiox_storage_piece in_place = {mpiox_cache_bytes_of(cache, frame) + at, run - at, start + at};
            code = read_part(server, storage, &in_place, &end, error);
            continue;
        }
        next = at + MPIOX_SCRATCH < cache->page_bytes ? at + MPIOX_SCRATCH : cache->page_bytes;
        const mpiox_storage_piece aside = {io->scratch, next - at, start + at};
        code = read_part(server, storage, &aside, &end, error);
        if (code == MPIOX_OK)
            merge(cache, frame, at, next, io->scratch);
    }
    if (code == MPIOX_OK)
        set_filled(server, frame, end - start);
    return code;
}

/* ---- pages without ----------------------------------------------------------------------------------------------- */

/* Read `count` consecutive pages without dirty bytes, in exclusive use. */
static int fill_whole(mpiox_server *server, mpiox_io *io, mpiox_storage *storage, int first, int count,
                      mpiox_error *error)
{
    const int64_t page_bytes = server->cache.page_bytes;
    int64_t end = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const uint32_t frame = io->frames[first + i];
        io->pieces[i] = (mpiox_storage_piece){mpiox_cache_bytes_of(&server->cache, frame), page_bytes,
                                              start_of(server, frame)};
    }
    count_request(server, count * page_bytes);
    const int code = mpiox_storage_read_list(storage, io->pieces, count, &end, error);
    for (int i = 0; i < count && code == MPIOX_OK; i++) {
        int64_t exist = end - io->pieces[i].offset;
        exist = exist < 0 ? 0 : exist < page_bytes ? exist : page_bytes;
        memset((char *)io->pieces[i].base + exist, 0, (size_t)(page_bytes - exist));
        set_filled(server, io->frames[first + i], exist);
    }
    return code;
}

static int fill_one(mpiox_server *server, mpiox_io *io, mpiox_storage *storage, int i, mpiox_error *error)
{
    const uint32_t frame = io->frames[i];
    io->outcome[i] = FILLED;
    if (mpiox_server_dirty_of(server, frame) == server->cache.page_bytes)
        set_filled(server, frame, server->cache.page_bytes);
    else if (fill_between(server, io, storage, frame, error) != MPIOX_OK)
        io->outcome[i] = FAILED;
    return io->outcome[i] == FILLED ? MPIOX_OK : MPIOX_E_IO;
}

/* Without the lock. `alone`: the frame is in exclusive use already. Runs of clean pages are read together; when that
 * fails, one by one, to learn which page it is. */
static void fill(mpiox_server *server, mpiox_io *io, mpiox_storage *storage, mpiox_error *errors)
{
    int done = 0;
    while (done < io->count) {
        int clean = 0;
        while (done + clean < io->count && io->outcome[done + clean] == FILLED &&
               mpiox_server_dirty_of(server, io->frames[done + clean]) == 0)
            clean++;
        if (clean > 0 && fill_whole(server, io, storage, done, clean, &errors[done]) == MPIOX_OK) {
            done += clean;
            continue;
        }
        if (clean == 1) {
            io->outcome[done++] = FAILED;
            continue;
        }
        for (const int end = clean > 0 ? done + clean : done + 1; done < end; done++) {
            if (io->outcome[done] == PINNED && !mpiox_server_alone(server, io->frames[done]))
                continue;
            if (fill_one(server, io, storage, done, &io->error) != MPIOX_OK)
                errors[done] = io->error;
        }
    }
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

/* With the lock: the next state of a frame. */
static void finish(mpiox_server *server, mpiox_io *io, int i, const mpiox_error *error)
{
    if (io->outcome[i] == FAILED && error->sys_errno == EFAULT)
        mpiox_server_tear();
    const uint32_t frame = io->frames[i];
    mpiox_frame_info *info = &server->info[frame];
    const bool ahead = info->residence == MPIOX_AHEAD;
    if (io->outcome[i] == FILLED) {
        mpiox_server_satisfy(server, frame, MPIOX_WANT_FILL | MPIOX_WANT_AHEAD);
        if (ahead) {
            atomic_fetch_or(&server->cache.frames[frame].flags, MPIOX_FRAME_PREFETCHED);
            MPIOX_COUNT(server, prefetched, 1);
        } else {
            MPIOX_COUNT(server, fills, 1);
        }
    } else if (io->outcome[i] == FAILED) {
        mpiox_server_satisfy(server, frame, MPIOX_WANT_FILL | MPIOX_WANT_AHEAD);
        MPIOX_COUNT(server, errors, 1);
        mpiox_server_fail_waiting(server, frame, error);
    }
    if (io->outcome[i] == FAILED && info->wants == 0 && mpiox_server_dirty_of(server, frame) == 0)
        mpiox_server_drop_page(server, frame);
    else if (io->outcome[i] != PINNED)
        mpiox_frame_end_exclusive(&server->cache, frame);
    mpiox_server_put_down(server, frame);
    mpiox_server_serve_waiting(server, frame);
}

static void take_up(mpiox_server *server, mpiox_io *io, uint32_t frame)
{
    mpiox_server_take_up(server, frame);
    io->frames[io->count] = frame;
    io->outcome[io->count++] = mpiox_frame_try_exclusive(&server->cache, frame) ? FILLED : PINNED;
}

/* Take up the first page of a queue and those behind it that wait as well. *file: theirs. */
static void gather(mpiox_server *server, mpiox_io *io, uint32_t frame, int8_t queue)
{
    const int64_t most = most_bytes / server->cache.page_bytes;
    io->file = mpiox_server_file_of(server, frame);
    io->count = 0;
    do {
        const int64_t page = mpiox_server_page_of(server, frame);
        take_up(server, io, frame);
        frame = mpiox_frame_find(&server->cache, io->file, page + 1);
    } while (frame != MPIOX_CACHE_NO_FRAME && server->info[frame].fill_queue == queue && io->count < most &&
             io->count < MPIOX_RUN_FRAMES);
}

/* The frames that this thread works on. */
static void fill_gathered(mpiox_server *server, mpiox_io *io)
{
    mpiox_storage *storage = server->files[io->file].storage;
    mpiox_error errors[MPIOX_RUN_FRAMES];
    pthread_mutex_unlock(&server->lock);
    fill(server, io, storage, errors);
    pthread_mutex_lock(&server->lock);
    for (int i = 0; i < io->count; i++)
        finish(server, io, i, &errors[i]);
    mpiox_server_serve_parked(server);
}

bool mpiox_server_fill_some(mpiox_server *server, mpiox_io *io, bool ahead)
{
    const mpiox_frame_list *queue = ahead ? &server->aheads : &server->fills;
    if (queue->count == 0)
        return false;
    gather(server, io, queue->first, server->info[queue->first].fill_queue);
    fill_gathered(server, io);
    return true;
}

void mpiox_server_fill_batch(mpiox_server *server, mpiox_io *io, const uint32_t *frames, int32_t count)
{
    io->file = mpiox_server_file_of(server, frames[0]);
    io->count = 0;
    for (int32_t i = 0; i < count; i++)
        take_up(server, io, frames[i]);
    fill_gathered(server, io);
}
