/*
 * mpiox_server_flush.c - I/O threads: dirty pages to the file, in file order, neighbours merged.
 *
 * Problem.    File systems are fast at few large requests in file order. Exactly the dirty bytes may be written, and no
 *             byte may be lost that a client deposits while its page is being written.
 * Algorithm.  Files take turns. In a file the threads take waiting pages in the order of their offsets, from the end of
 *             the last ones on, and begin again at its start (an elevator). Consecutive pages are written together, up
 *             to 16 MiB or a unit of the file: their dirty runs are one list, in which storage merges neighbours. The
 *             frames themselves are written, without a copy, while clients may deposit more. Afterwards, in exclusive
 *             use, the marks are cleared if `writes` is unchanged. If it is not, and a request waits for the frame, the
 *             second try ends by writing in exclusive use.
 * Guarantees. Marks are cleared only when the bytes are in the file or an error of the file names them.
 */
#include "mpiox_server_flush.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mpiox_server_alone.h"
#include "mpiox_server_evict.h"
#include "mpiox_server_files.h"
#include "mpiox_server_pages.h"
#include "mpiox_testing.h"

static const int64_t most_bytes = INT64_C(16) << 20;
static const uint64_t all_barriers = ~UINT64_C(0);

enum { CLEARED, CHANGED, PINNED, FAILED }; /* outcome of a frame; CLEARED and CHANGED: it is in exclusive use */

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void count_request(mpiox_server *server, int64_t bytes)
{
    MPIOX_COUNT(server, flush_requests, 1);
    MPIOX_COUNT(server, flush_bytes, bytes);
    MPIOX_COUNT(server, flush_size_log2[63 - __builtin_clzll((unsigned long long)bytes)], 1);
}

/* The calls that storage makes of the list: pieces that follow each other are one request. */
static void count_requests(mpiox_server *server, const mpiox_storage *storage, const mpiox_storage_piece *pieces,
                           int64_t count)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < count; i++) {
        bytes += pieces[i].length;
        if (i + 1 == count || storage->backend->separate ||
            pieces[i].offset + pieces[i].length != pieces[i + 1].offset) {
            count_request(server, bytes);
            bytes = 0;
        }
    }
}

static void add_error(mpiox_io *io)
{
    if (io->error.code != MPIOX_OK)
        mpiox_cache_add_error(&io->server->cache, io->file, &io->error);
    io->error.code = MPIOX_OK;
}

/* A piece failed. What failed before it joins it, when nothing between them succeeded: one error then names both. */
static void join_error(mpiox_io *io, const mpiox_error *error)
{
    if (io->error.code != MPIOX_OK && io->error.sys_errno == error->sys_errno && io->error.offset <= error->offset) {
        io->error.length = error->offset + error->length - io->error.offset;
        return;
    }
    add_error(io);
    io->error = *error;
}

/* The piece that an error of a list is about; count: none. */
static int64_t failed_piece(const mpiox_storage_piece *pieces, int64_t count, const mpiox_error *error)
{
    int64_t i = 0;
    while (i < count && !(error->offset >= pieces[i].offset && error->offset < pieces[i].offset + pieces[i].length))
        i++;
    return i;
}

/* These are in the file. */
static void mend_errors(const mpiox_io *io, const mpiox_storage_piece *pieces, int64_t count)
{
    if (mpiox_cache_error_count(&io->server->cache, io->file) == 0)
        return;
    for (int64_t i = 0; i < count; i++)
        mpiox_cache_mend_errors(&io->server->cache, io->file, pieces[i].offset, pieces[i].offset + pieces[i].length);
}

/* Write all pieces. Those behind one that failed may or may not be in the file, so they are written again. */
static void write_pieces(mpiox_io *io, mpiox_storage *storage, int64_t count)
{
    const mpiox_storage_piece *pieces = io->pieces;
    count_requests(io->server, storage, pieces, count);
    while (count > 0) {
        mpiox_error error = {.code = MPIOX_OK};
        MPIOX_POINT("write");
        if (mpiox_storage_write_list(storage, pieces, count, &error) == MPIOX_OK) {
            MPIOX_POINT("written");
            mend_errors(io, pieces, count);
            add_error(io);
            return;
        }
        if (error.sys_errno == EFAULT)
            mpiox_server_tear();
        if (io->behind) {
            io->failed = error.sys_errno != 0 ? error.sys_errno : EIO;
            io->failed_at = error.offset >= 0 ? error.offset : pieces[0].offset;
            return;
        }
        int64_t failed = failed_piece(pieces, count, &error);
        if (failed == count) { /* nothing was written at all */
            failed = count - 1;
            error.offset = pieces[0].offset;
            error.length = pieces[failed].offset + pieces[failed].length - error.offset;
            add_error(io);
        } else if (failed > 0 || error.offset > pieces[0].offset) {
            add_error(io);
        }
        mend_errors(io, pieces, error.offset == pieces[0].offset ? 0 : failed);
        join_error(io, &error);
        pieces += failed + 1;
        count -= failed + 1;
    }
}

/* Add the dirty runs below byte `end` of a page to the list, which is written whenever it is full. */
static int64_t add_runs(mpiox_io *io, mpiox_storage *storage, uint32_t frame, int64_t end, int64_t count)
{
    const mpiox_cache *cache = &io->server->cache;
    const int64_t start = mpiox_server_page_of(io->server, frame) * cache->page_bytes;
    char *bytes = mpiox_cache_bytes_of(cache, frame);
    int64_t offset, length;
    for (int64_t at = 0; at < end && mpiox_dirty_run(cache, frame, at, &offset, &length); at = offset + length) {
        if (offset >= end)
            break;
        if (length > end - offset)
            length = end - offset;
        io->pieces[count++] = (mpiox_storage_piece){bytes + offset, length, start + offset};
        if (count == MPIOX_RUN_FRAMES) {
            write_pieces(io, storage, count);
            count = 0;
        }
    }
    return count;
}

static void write_alone(mpiox_io *io, mpiox_storage *storage, uint32_t frame, int64_t end)
{
    write_pieces(io, storage, add_runs(io, storage, frame, end, 0));
    add_error(io);
}

/* With the lock, before and after the write without it. */
static void begin_write(mpiox_server *server, const mpiox_io *io)
{
    server->files[io->file].writers++;
    server->files[io->file].called = mpiox_now();
    mpiox_cache_begin_write(&server->cache.header->files[io->file]);
}

static void end_write(mpiox_server *server, const mpiox_io *io)
{
    assert(server->files[io->file].writers > 0);
    server->files[io->file].writers--;
    server->files[io->file].called = mpiox_now();
}

/* ---- after writing ----------------------------------------------------------------------------------------------- */

/* In exclusive use: the bytes are in the file. A page that was completely dirty is completely known. */
static void clear(mpiox_server *server, uint32_t frame)
{
    mpiox_frame *at = &server->cache.frames[frame];
    const int64_t dirty = atomic_load(&at->dirty);
    assert(server->info[frame].busy && mpiox_frame_is_exclusive(&server->cache, frame));
    if (dirty == server->cache.page_bytes) {
        atomic_store(&at->known_end, server->cache.page_bytes);
        atomic_fetch_or(&at->flags, MPIOX_FRAME_FILLED);
    }
    mpiox_dirty_clear(&server->cache, frame);
}

/* Without the lock: end the work on frame number i. `needed`: a request waits until it is clean. */
static void settle(mpiox_server *server, mpiox_io *io, mpiox_storage *storage, int i, bool needed)
{
    const uint32_t frame = io->frames[i];
    mpiox_frame *at = &server->cache.frames[frame];
    if (io->failed != 0) {
        io->outcome[i] = FAILED;
        return;
    }
    if (!mpiox_server_alone(server, frame)) {
        io->outcome[i] = PINNED;
        return;
    }
    io->outcome[i] = CLEARED;
    if (atomic_load(&at->writes) != io->writes[i]) {
        if (!needed || ++server->info[frame].tries < 2) {
            io->outcome[i] = CHANGED;
            return;
        }
        write_alone(io, storage, frame, server->cache.page_bytes);
        if (io->failed != 0) {
            io->outcome[i] = CHANGED;
            return;
        }
    }
    clear(server, frame);
    server->info[frame].tries = 0;
}

static bool is_needed(const mpiox_server *server, uint32_t frame)
{
    const mpiox_frame_info *info = &server->info[frame];
    return info->flush_barriers != 0 || info->suspect || info->wants & MPIOX_WANT_DROP ||
           info->residence == MPIOX_LEAVING;
}

/* Pages that are never read are of no more use once they are written whole. */
static bool is_finished(const mpiox_server *server, int32_t file, uint32_t frame)
{
    const int32_t flags = atomic_load(&server->cache.header->files[file].flags);
    return !(flags & MPIOX_FILE_READABLE) && atomic_load(&server->cache.frames[frame].flags) & MPIOX_FRAME_FILLED;
}

/* Flush barriers that wait for what stays dirty wait no more. */
static void fail_barriers(mpiox_server *server, const mpiox_io *io, uint32_t frame)
{
    const uint64_t keeping = mpiox_server_keeping_barriers(server);
    mpiox_error error;
    if (keeping == 0)
        return;
    (void)mpiox_error_set(&error, MPIOX_E_IO, io->failed, io->failed_at, -1, "pwrite");
    mpiox_server_fail_flush_barriers(server, frame, keeping, &error);
}

/* With the lock: the next state of a frame. */
static void finish(mpiox_server *server, mpiox_io *io, int i)
{
    const uint32_t frame = io->frames[i];
    mpiox_frame_info *info = &server->info[frame];
    const bool cleared = io->outcome[i] == CLEARED;
    if (cleared)
        MPIOX_COUNT(server, flushes, 1);
    if (io->outcome[i] == FAILED)
        fail_barriers(server, io, frame);
    if (cleared && (info->wants & MPIOX_WANT_DROP || is_finished(server, io->file, frame))) {
        mpiox_server_drop_page(server, frame);
    } else {
        if (cleared || io->outcome[i] == CHANGED)
            mpiox_frame_end_exclusive(&server->cache, frame);
        if (cleared || !is_needed(server, frame))
            mpiox_server_satisfy(server, frame, MPIOX_WANT_FLUSH);
        if (cleared)
            mpiox_server_offer(server, frame);
    }
    /* Bytes that were deposited before a flush barrier that began before the writing are in the file, even if a client
     * never unpins the frame. Later flush barriers, and dropping, must wait. */
    if (cleared)
        mpiox_server_pass_flush_barriers(server, frame, all_barriers);
    else if (io->outcome[i] == PINNED && !(info->wants & (MPIOX_WANT_DROP | MPIOX_WANT_CUT)))
        mpiox_server_pass_flush_barriers(server, frame, io->flush_barriers[i]);
    mpiox_server_put_down(server, frame);
    mpiox_server_serve_waiting(server, frame);
}

/* ---- discarding -------------------------------------------------------------------------------------------------- */

/* Bytes of a page from a flush barrier's cut on are dropped; dirty ones before it are written. */
static void cut(mpiox_server *server, mpiox_io *io)
{
    const uint32_t frame = io->frames[0];
    mpiox_frame *at = &server->cache.frames[frame];
    mpiox_storage *storage = server->files[io->file].storage;
    const int64_t page = mpiox_server_page_of(server, frame) * server->cache.page_bytes;
    const int64_t cut_at = mpiox_server_cut_of(server, frame), keep = cut_at > page ? cut_at - page : 0;
    begin_write(server, io);
    pthread_mutex_unlock(&server->lock);
    const bool alone = mpiox_server_alone(server, frame);
    if (alone) {
        if (keep > 0)
            write_alone(io, storage, frame, keep);
        clear(server, frame);
        if (keep > 0 && keep < server->cache.page_bytes)
            memset(mpiox_cache_bytes_of(&server->cache, frame) + keep, 0, (size_t)(server->cache.page_bytes - keep));
        if (atomic_load(&at->known_end) > keep)
            atomic_store(&at->known_end, keep);
    }
    pthread_mutex_lock(&server->lock);
    end_write(server, io);
    const bool dropped = alone && (keep == 0 || server->info[frame].wants & MPIOX_WANT_DROP);
    if (dropped)
        mpiox_server_drop_page(server, frame);
    else if (alone)
        mpiox_frame_end_exclusive(&server->cache, frame);
    if (dropped || (alone && mpiox_server_cut_of(server, frame) == cut_at)) { /* else another flush barrier cuts more */
        mpiox_server_satisfy(server, frame, MPIOX_WANT_CUT | MPIOX_WANT_FLUSH);
        mpiox_server_pass_flush_barriers(server, frame, all_barriers);
        if (!dropped)
            mpiox_server_offer(server, frame);
    }
    mpiox_server_put_down(server, frame);
    mpiox_server_serve_waiting(server, frame);
    mpiox_server_serve_parked(server);
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

/* The file whose turn it is; -1: none has anything to write. */
static int32_t next_file(mpiox_server *server)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const int32_t file = (server->file_turn + i) % MPIOX_CACHE_MAX_FILES;
        if (server->files[file].storage != NULL && server->files[file].tree != MPIOX_CACHE_NO_FRAME) {
            server->file_turn = file + 1;
            return file;
        }
    }
    return -1;
}

/* Take up the next frame of the file and those that follow it without a gap. */
static void gather(mpiox_server *server, mpiox_io *io)
{
    mpiox_server_file *file = &server->files[io->file];
    const int64_t page_bytes = server->cache.page_bytes;
    const int64_t unit = server->cache.header->files[io->file].unit_pages * page_bytes;
    const int64_t most = (unit > most_bytes ? unit : most_bytes) / page_bytes;
    uint32_t frame = mpiox_server_next_in_file(server, io->file);
    io->count = 0;
    do {
        const bool single = server->info[frame].wants & MPIOX_WANT_CUT;
        if (single && io->count > 0)
            return;
        const int64_t page = mpiox_server_page_of(server, frame);
        file->position = page + 1;
        mpiox_server_take_up(server, frame);
        io->frames[io->count++] = frame;
        if (single || io->count >= most)
            return;
        frame = mpiox_frame_find(&server->cache, io->file, page + 1);
    } while (frame != MPIOX_CACHE_NO_FRAME && server->info[frame].in_tree && io->count < MPIOX_RUN_FRAMES);
}

/* How many names the file has; -1: not known. */
static int64_t count_names(mpiox_storage *storage)
{
    mpiox_error ignored;
    struct stat status;
    int64_t names = -1;
    if (mpiox_storage_pin(storage, &ignored) != MPIOX_OK)
        return -1;
    if (fstat(storage->fd, &status) == 0)
        names = (int64_t)status.st_nlink;
    mpiox_storage_unpin(storage);
    return names;
}

static void flush(mpiox_server *server, mpiox_io *io)
{
    mpiox_storage *storage = server->files[io->file].storage;
    bool needed[MPIOX_RUN_FRAMES];
    int64_t pieces = 0;
    assert(mpiox_server_is_locked(server) && io->count > 0 && io->count <= MPIOX_RUN_FRAMES);
    for (int i = 0; i < io->count; i++) {
        needed[i] = is_needed(server, io->frames[i]);
        io->flush_barriers[i] = server->info[io->frames[i]].flush_barriers;
    }
    begin_write(server, io);
    pthread_mutex_unlock(&server->lock);
    for (int i = 0; i < io->count; i++) {
        io->writes[i] = atomic_load(&server->cache.frames[io->frames[i]].writes);
        pieces = add_runs(io, storage, io->frames[i], server->cache.page_bytes, pieces);
    }
    io->names = io->behind ? count_names(storage) : -1;
    write_pieces(io, storage, pieces);
    add_error(io);
    for (int i = 0; i < io->count; i++)
        settle(server, io, storage, i, needed[i]);
    pthread_mutex_lock(&server->lock);
    end_write(server, io);
    for (int i = 0; i < io->count; i++)
        finish(server, io, i);
    mpiox_server_serve_parked(server);
}

/* If no request waits for these pages of a closed file, no call can report an error any more; if one waits, its answer
 * is that they are not written. In both cases pages that cannot be written stay dirty. */
static bool can_wait(const mpiox_server *server, const mpiox_io *io)
{
    const uint64_t keeping = mpiox_server_keeping_barriers(server);
    bool can = (atomic_load(&server->cache.header->files[io->file].flags) & MPIOX_FILE_DRAINING) != 0;
    for (int i = 0; i < io->count && can; i++)
        can = !is_needed(server, io->frames[i]);
    for (int i = 0; i < io->count && !can; i++)
        can = (server->info[io->frames[i]].flush_barriers & keeping) != 0;
    return can && !(server->info[io->frames[0]].wants & MPIOX_WANT_CUT);
}

/* The frames that this thread works on. */
static void flush_gathered(mpiox_server *server, mpiox_io *io)
{
    io->error.code = MPIOX_OK;
    io->behind = can_wait(server, io);
    io->failed = 0;
    if (server->info[io->frames[0]].wants & MPIOX_WANT_CUT)
        cut(server, io);
    else
        flush(server, io);
}

bool mpiox_server_flush_some(mpiox_server *server, mpiox_io *io)
{
    io->file = next_file(server);
    if (io->file < 0)
        return false;
    gather(server, io);
    flush_gathered(server, io);
    return true;
}

void mpiox_server_flush_batch(mpiox_server *server, mpiox_io *io, const uint32_t *frames, int32_t count)
{
    io->file = mpiox_server_file_of(server, frames[0]);
    io->count = count;
    for (int32_t i = 0; i < count; i++) {
        mpiox_server_take_up(server, frames[i]);
        io->frames[i] = frames[i];
    }
    flush_gathered(server, io);
}

int mpiox_server_flush_behind(mpiox_server *server, mpiox_io *io)
{
    io->error.code = MPIOX_OK;
    io->behind = true;
    io->failed = 0;
    flush(server, io);
    return io->failed;
}
