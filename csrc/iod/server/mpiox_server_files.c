/*
 * mpiox_server_files.c - the records of the files, their descriptors, flush barriers.
 *
 * Files.    The delegate opens each file itself, so that it depends on no client. Clients (and survivors) need only the
 *           record in the segment; handle and lists are here. Opening, fsync and closing may take long: I/O threads
 *           carry them out, as operations.
 * Barriers. A flush barrier counts the frames that were dirty when it began. A frame is done when its dirty marks have
 *           been cleared, which needs exclusive use: then all bytes deposited before are in the file. New dirty frames
 *           do not delay a flush barrier. Discarding, dropping, closing and moving a range are flush barriers that do
 *           something else, or more, with the frames. Up to 64 run side by side; requests continue meanwhile.
 * Errors.   A deferred error of the file (offset, length) names bytes that cannot be written. They are not dirty any
 *           more: otherwise they would fill the cache for ever. The record keeps its errors until a client takes them,
 *           also after the file is closed. When another file needs the record, the errors go to the caller of
 *           mpiox_server_run(). The failure of an fsync or close is the result of its request.
 */
#include "mpiox_server_files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mpiox_integer.h"
#include "mpiox_server_hidden.h"
#include "mpiox_server_pages.h"
#include "mpiox_server_ranges.h"
#include "mpiox_server_replica.h"
#include "mpiox_storage_container.h"
#include "mpiox_testing.h"

/* ---- flush barriers: which frames -------------------------------------------------------------------------------- */

static bool is_meant(const mpiox_server *server, const mpiox_flush_barrier *barrier, int32_t file, uint32_t frame)
{
    const int64_t page = mpiox_server_page_of(server, frame);
    const mpiox_file_record *record = mpiox_server_record(server, file);
    return page >= barrier->first && page < barrier->end &&
           (barrier->range < 0 || page / record->unit_pages % record->ranges == barrier->range);
}

/* Begin with one frame. A clean one without pins can be dropped at once. */
static void begin_frame(mpiox_server *server, mpiox_flush_barrier *barrier, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    const bool idle = !info->busy && info->wants == 0;
    uint8_t wants = barrier->cut >= 0 ? MPIOX_WANT_CUT : MPIOX_WANT_FLUSH;
    if (barrier->drop)
        wants |= MPIOX_WANT_DROP;
    else if (barrier->cut < 0 && mpiox_server_dirty_of(server, frame) == 0)
        return;
    if (barrier->drop && idle && mpiox_frame_try_exclusive(&server->cache, frame)) {
        if (mpiox_server_dirty_of(server, frame) == 0) {
            mpiox_server_drop_page(server, frame);
            return;
        }
        mpiox_frame_end_exclusive(&server->cache, frame);
    }
    barrier->pending++;
    info->flush_barriers |= UINT64_C(1) << (barrier - server->flush_barriers);
    mpiox_server_want(server, frame, wants);
    if (barrier->cut < 0)
        atomic_fetch_or(&server->cache.frames[frame].flags, MPIOX_FRAME_URGENT);
}

static void begin_file(mpiox_server *server, mpiox_flush_barrier *barrier, int32_t file)
{
    uint32_t next;
    for (uint32_t frame = server->files[file].frames.first; frame != MPIOX_CACHE_NO_FRAME; frame = next) {
        next = server->info[frame].links[MPIOX_LINK_FILE].next;
        if (is_meant(server, barrier, file, frame))
            begin_frame(server, barrier, frame);
    }
}

static void begin_frames(mpiox_server *server, mpiox_flush_barrier *barrier)
{
    if (barrier->file >= 0)
        begin_file(server, barrier, barrier->file);
    for (int32_t file = 0; barrier->file < 0 && file < MPIOX_CACHE_MAX_FILES; file++) {
        if (mpiox_server_is_open(server, file) && !server->files[file].drain.left)
            begin_file(server, barrier, file);
    }
}

/* ---- flush barriers: their end ----------------------------------------------------------------------------------- */

static uint32_t operation_of(const mpiox_server *server, const mpiox_flush_barrier *barrier)
{
    return server->cache.ring->slots + (uint32_t)(barrier - server->flush_barriers);
}

/* Save untaken errors before a record is used for another file. */
static void lose_errors(mpiox_server *server, int32_t file)
{
    mpiox_error errors[MPIOX_CACHE_ERRORS];
    int more = 0;
    const int count = mpiox_cache_take_errors(&server->cache, file, errors, MPIOX_CACHE_ERRORS, &more);
    const int kept = count < MPIOX_LOST - server->lost_count ? count : MPIOX_LOST - server->lost_count;
    for (int i = 0; i < kept; i++) {
        mpiox_server_lost *lost = &server->lost[server->lost_count++];
        lost->error = errors[i];
        lost->more = i == count - 1 ? more : 0;
        memcpy(lost->path, mpiox_server_record(server, file)->path, sizeof lost->path);
    }
    if (kept < count)
        server->lost_rest += count - kept + more;
}

/* The last opener is gone and no page is left: the record is free, the handles are the flush barrier's to close. */
static void release_file(mpiox_server *server, mpiox_flush_barrier *barrier)
{
    mpiox_server_file *file = &server->files[barrier->file];
    barrier->handles[0] = file->storage;
    memcpy(&barrier->handles[1], file->retired, sizeof file->retired);
    memset(file->retired, 0, sizeof file->retired);
    file->storage = NULL;
    mpiox_server_drop_hidden(file);
    barrier->closing = false;
    atomic_store(&mpiox_server_record(server, barrier->file)->openers, 0);
}

/* All frames are done: the next step. True: the flush barrier has ended. */
static bool advance(mpiox_server *server, mpiox_flush_barrier *barrier)
{
    while (barrier->closing && barrier->pending == 0) {
        mpiox_file_record *record = mpiox_server_record(server, barrier->file);
        if (atomic_load(&record->openers) > 1) {
            atomic_fetch_sub(&record->openers, 1);
            barrier->closing = false;
        } else if (server->files[barrier->file].syncing > 0) {
            return false; /* continues at the end of that fsync */
        } else if (server->files[barrier->file].frames.count == 0) {
            release_file(server, barrier);
        } else { /* pages that came meanwhile */
            barrier->drop = true;
            begin_frames(server, barrier);
        }
    }
    if (barrier->pending > 0)
        return false;
    if (barrier->stable || barrier->handles[0] != NULL) {
        if (barrier->stable)
            server->files[barrier->file].syncing++;
        mpiox_server_add_operation(server, operation_of(server, barrier));
        return false;
    }
    mpiox_server_look_at_disk(server);
    barrier->used = false;
    server->barriers_used--;
    if (barrier->done != NULL)
        mpiox_futex_set(barrier->done, 1);
    if (barrier->slot != NULL) {
        if (barrier->slot->op == MPIOX_OP_COMMIT)
            mpiox_server_end_commit(server, barrier->slot);
        barrier->slot->error = barrier->error;
        mpiox_server_answer(server, barrier->slot, barrier->error.code);
    }
    return true;
}

static void begin_barrier(mpiox_server *server, mpiox_flush_barrier *barrier, const mpiox_flush_barrier *what)
{
    *barrier = *what;
    barrier->used = true;
    server->barriers_used++;
    begin_frames(server, barrier);
    (void)advance(server, barrier);
}

static mpiox_flush_barrier *free_barrier(mpiox_server *server)
{
    for (int i = 0; i < MPIOX_FLUSH_BARRIERS; i++) {
        if (!server->flush_barriers[i].used)
            return &server->flush_barriers[i];
    }
    return NULL;
}

static bool is_move(const mpiox_slot *slot)
{
    return slot->op == MPIOX_OP_MIGRATE || slot->op == MPIOX_OP_COMMIT;
}

/* The barrier that a request describes. False: it is not legal. */
static bool read_request(const mpiox_server *server, mpiox_slot *slot, mpiox_flush_barrier *out)
{
    *out = (mpiox_flush_barrier){
        .file = slot->file, .range = -1, .first = 0, .end = INT64_MAX, .cut = -1, .slot = slot};
    if (!mpiox_server_is_open(server, slot->file))
        return false;
    if (is_move(slot)) {
        out->range = (int32_t)slot->question.range;
        out->drop = true;
        return true;
    }
    if (slot->op == MPIOX_OP_FLUSH) {
        out->first = slot->question.flush.first;
        out->end = slot->question.flush.end;
        out->stable = slot->question.flush.stable == 1;
        out->drop = slot->question.flush.then == MPIOX_FLUSH_DROPS;
        out->keeps = slot->question.flush.then == MPIOX_FLUSH_KEEPS;
    } else if (slot->op == MPIOX_OP_DISCARD) {
        out->cut = slot->question.discard.byte;
        out->first = out->cut / server->cache.page_bytes;
    } else {
        out->closing = true;
        out->drop = atomic_load(&mpiox_server_record(server, slot->file)->openers) <= 1;
    }
    return out->first >= 0 && (slot->op != MPIOX_OP_DISCARD || out->cut >= 0);
}

/* The file is shorter now: bytes deposited behind its new end are no part of it any more. */
static void lower_end(const mpiox_server *server, int32_t file, int64_t end)
{
    _Atomic int64_t *known = &mpiox_server_record(server, file)->end;
    int64_t now = atomic_load(known);
    while (now > end && !atomic_compare_exchange_weak(known, &now, end)) {
    }
}

void mpiox_server_ask_flush_barrier(mpiox_server *server, mpiox_slot *slot)
{
    mpiox_flush_barrier what, *barrier = free_barrier(server);
    int result;
    if (!read_request(server, slot, &what)) {
        mpiox_server_answer(server, slot, MPIOX_E_ARG);
        return;
    }
    if (is_move(slot) && (result = mpiox_server_judge_migration(server, slot)) != MPIOX_MIGRATE_BARRIER) {
        mpiox_server_answer(server, slot, result);
        return;
    }
    if (barrier == NULL) {
        mpiox_server_requests_append(server, &server->awaiting_barrier, slot);
        return;
    }
    if (is_move(slot))
        mpiox_server_begin_migration(server, slot);
    MPIOX_COUNT(server, flush_barriers, 1);
    if (what.cut >= 0)
        lower_end(server, what.file, what.cut);
    begin_barrier(server, barrier, &what);
    mpiox_server_serve_parked(server);
}

bool mpiox_server_empty(mpiox_server *server, mpiox_futex *done)
{
    mpiox_flush_barrier *barrier = free_barrier(server);
    if (barrier == NULL)
        return false;
    begin_barrier(
        server, barrier,
        &(mpiox_flush_barrier){.file = -1, .range = -1, .end = INT64_MAX, .cut = -1, .drop = true, .done = done});
    return true;
}

bool mpiox_server_close_alone(mpiox_server *server, int32_t file)
{
    mpiox_flush_barrier *barrier = free_barrier(server);
    if (barrier == NULL)
        return false;
    begin_barrier(
        server, barrier,
        &(mpiox_flush_barrier){.file = file, .range = -1, .end = INT64_MAX, .cut = -1, .drop = true, .closing = true});
    return true;
}

/* The thread that works on the frame may have had it exclusively before: that proves nothing. */
static void suspect(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    if (info->suspect == 0)
        server->suspects++;
    info->suspect = info->busy ? 2 : 1;
}

/* A client raises the count of a frame before it sees that its page has left: a free one can be pinned, too. */
void mpiox_server_flush_after_death(mpiox_server *server)
{
    for (uint32_t frame = 0; frame < (uint32_t)server->cache.frame_count; frame++) {
        const int32_t file = mpiox_server_file_of(server, frame);
        const uint32_t pins = atomic_load(&server->cache.frames[frame].pins) & ~MPIOX_FRAME_EXCLUSIVE;
        if (file >= 0 && mpiox_server_is_replica(server, file))
            continue;
        if (pins > 0)
            suspect(server, frame);
        if (file >= 0 && (pins > 0 || mpiox_server_dirty_of(server, frame) > 0))
            mpiox_server_want(server, frame, MPIOX_WANT_FLUSH);
    }
    if (server->suspects == 0)
        atomic_store(&server->dead, 0);
}

static void advance_and_next(mpiox_server *server, mpiox_flush_barrier *barrier)
{
    mpiox_slot *slot;
    if (advance(server, barrier) && (slot = mpiox_server_requests_take(server, &server->awaiting_barrier)) != NULL)
        mpiox_server_ask_flush_barrier(server, slot);
}

void mpiox_server_pass_flush_barriers(mpiox_server *server, uint32_t frame, uint64_t flush_barriers)
{
    flush_barriers &= server->info[frame].flush_barriers;
    server->info[frame].flush_barriers &= ~flush_barriers;
    if (server->info[frame].flush_barriers == 0)
        atomic_fetch_and(&server->cache.frames[frame].flags, ~(uint32_t)MPIOX_FRAME_URGENT);
    while (flush_barriers != 0) {
        mpiox_flush_barrier *barrier = &server->flush_barriers[__builtin_ctzll(flush_barriers)];
        flush_barriers &= flush_barriers - 1;
        if (--barrier->pending == 0)
            advance_and_next(server, barrier);
    }
}

uint64_t mpiox_server_keeping_barriers(const mpiox_server *server)
{
    uint64_t keeping = 0;
    for (int i = 0; i < MPIOX_FLUSH_BARRIERS && server->barriers_used > 0; i++) {
        if (server->flush_barriers[i].used && server->flush_barriers[i].keeps)
            keeping |= UINT64_C(1) << i;
    }
    return keeping;
}

void mpiox_server_fail_flush_barriers(mpiox_server *server, uint32_t frame, uint64_t flush_barriers,
                                      const mpiox_error *error)
{
    flush_barriers &= server->info[frame].flush_barriers;
    for (uint64_t rest = flush_barriers; rest != 0; rest &= rest - 1) {
        mpiox_flush_barrier *barrier = &server->flush_barriers[__builtin_ctzll(rest)];
        if (barrier->error.code == MPIOX_OK)
            barrier->error = *error;
    }
    mpiox_server_pass_flush_barriers(server, frame, flush_barriers);
}

int64_t mpiox_server_cut_of(const mpiox_server *server, uint32_t frame)
{
    int64_t cut = INT64_MAX;
    for (uint64_t flush_barriers = server->info[frame].flush_barriers; flush_barriers != 0;
         flush_barriers &= flush_barriers - 1) {
        const mpiox_flush_barrier *barrier = &server->flush_barriers[__builtin_ctzll(flush_barriers)];
        if (barrier->cut >= 0 && barrier->cut < cut)
            cut = barrier->cut;
    }
    return cut;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A handle for the access that the flags name, with more rights if possible: another opener may need them. */
static int open_handle(const mpiox_server *server, const char *path, int64_t flags, mpiox_storage **out, int *access,
                       mpiox_error *error)
{
    const mpiox_storage_options options = {.kind = (mpiox_storage_kind)server->options.storage,
                                           .direct_read = (flags & MPIOX_FILE_DIRECT_READ) != 0,
                                           .direct_write = (flags & MPIOX_FILE_DIRECT_WRITE) != 0,
                                           .changing = true}; /* clients deposit while a frame is written */
    const int rank = server->options.delegate;
    int (*const open_it)(const char *, int, int, const mpiox_storage_options *, mpiox_storage **,
                         mpiox_error *) = flags & MPIOX_FILE_CONTAINER ? mpiox_storage_container.open
                                                                       : mpiox_storage_open;
    *access = O_RDONLY;
    if (!(flags & MPIOX_FILE_WRITABLE))
        return open_it(path, O_RDONLY, rank, &options, out, error);
    *access = O_RDWR;
    const int code = open_it(path, O_RDWR, rank, &options, out, error);
    if (code == MPIOX_OK || flags & MPIOX_FILE_READABLE || (error->sys_errno != EACCES && error->sys_errno != EPERM))
        return code;
    *access = O_WRONLY;
    return open_it(path, O_WRONLY, rank, &options, out, error);
}

static int32_t find_record(const mpiox_server *server, const struct stat *status, int32_t replica)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_file_record *record = mpiox_server_record(server, i);
        if (server->files[i].storage != NULL && record->device == (uint64_t)status->st_dev &&
            record->inode == (uint64_t)status->st_ino && (atomic_load(&record->flags) & MPIOX_FILE_REPLICA) == replica)
            return i;
    }
    return -1;
}

/* A free record, the one that has been free for longest: the errors of a closed file stay as long as possible. */
static int32_t free_record(mpiox_server *server)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const int32_t file = (server->next_record + i) % MPIOX_CACHE_MAX_FILES;
        if (server->files[file].storage == NULL && atomic_load(&mpiox_server_record(server, file)->openers) == 0) {
            server->next_record = file + 1;
            return file;
        }
    }
    return -1;
}

static void fill_record(mpiox_server *server, int32_t file, const mpiox_slot *slot, const struct stat *status,
                        mpiox_server_targets *targets)
{
    mpiox_file_record *record = mpiox_server_record(server, file);
    const int64_t owners = mpiox_clamp(slot->question.open.owners, 1, MPIOX_FILE_RANGES);
    const int64_t unit_pages = slot->question.open.unit_pages, servers = slot->question.open.servers;
    const int64_t weight = slot->question.open.weight, rate = slot->question.open.drain_rate;
    const int64_t patience = slot->question.open.drain_patience;
    const bool is_replica = (slot->question.open.flags & MPIOX_FILE_REPLICA) != 0;
    lose_errors(server, file);
    record->device = (uint64_t)status->st_dev;
    record->inode = (uint64_t)status->st_ino;
    memcpy(record->path, slot->text, sizeof record->path);
    atomic_store(&record->seen_ns, 0);
    atomic_store(&record->begun_ns, 0);
    mpiox_cache_see(record, status, 0);
    atomic_store(&record->end, 0);
    atomic_store(&record->drain_errno, 0);
    atomic_store(&record->collectives, 0);
    record->unit_pages = unit_pages >= 1 && unit_pages <= INT32_MAX ? (int32_t)unit_pages : 1;
    record->owners = (int32_t)owners;
    record->part = server->options.delegate;
    if (is_replica)
        record->part = (int32_t)((record->part - slot->question.open.shift % owners + owners) % owners);
    /* Of a replica all pages are this delegate's. */
    record->ranges = is_replica ? 0 : mpiox_file_ranges((int32_t)owners);
    for (int32_t r = 0; r < record->ranges; r++)
        atomic_store(&record->owner_of[r], (int16_t)(r % owners));
    atomic_store(&record->flags, (int32_t)slot->question.open.flags);
    atomic_store(&record->openers, 1);
    mpiox_server_targets_free(&server->files[file].targets);
    server->files[file] = (mpiox_server_file){
        .frames = {MPIOX_CACHE_NO_FRAME, MPIOX_CACHE_NO_FRAME, 0, MPIOX_LINK_FILE},
        .tree = MPIOX_CACHE_NO_FRAME,
        .ahead = {.usefulness = 1},
        .servers = servers > 0 && servers <= INT32_MAX ? (int32_t)servers : 0,
        .weight = weight > 0 && weight <= INT32_MAX ? (int32_t)weight : 1,
        .stamp = (++server->records_made << 20) + server->options.delegate,
        .targets = *targets,
        .drain = {.rate = rate > 0 ? rate : 0,
                  .patience = patience > 0 ? (double)patience : 0,
                  .even = slot->question.open.drain_even == 1},
    };
    *targets = (mpiox_server_targets){0}; /* they are the file's now */
}

/* A handle with more rights replaces the present one; of two equal ones the older stays, with direct I/O or without.
 * *left = the one that is not needed. False: no memory to keep the older one. */
static bool take_handle(mpiox_server_file *file, mpiox_storage *storage, int access, mpiox_storage **left)
{
    const bool readable = access != O_WRONLY, writable = access != O_RDONLY;
    *left = storage;
    if (file->storage != NULL && (!readable || file->readable) && (!writable || file->writable))
        return true;
    for (int i = 0; i < MPIOX_RETIRED; i++) {
        if (file->storage == NULL || file->retired[i] == NULL) {
            file->retired[i] = file->storage; /* threads may be using it */
            file->storage = storage;
            file->readable = readable;
            file->writable = writable;
            *left = NULL;
            return true;
        }
    }
    return false;
}

/* The opener leaves. After the last one the drain opens the file; a record that was made for this opener is released,
 * and its hidden name stays. */
static void give_up(mpiox_server *server, int32_t file, bool was_made)
{
    mpiox_file_record *record = mpiox_server_record(server, file);
    if (atomic_load(&record->openers) > 1) {
        atomic_fetch_sub(&record->openers, 1);
        return;
    }
    if (was_made)
        atomic_fetch_and(&record->flags, ~MPIOX_FILE_HIDDEN);
    if (was_made && mpiox_server_close_alone(server, file))
        return;
    mpiox_server_begin_drain(server, file);
}

/* The file was closed while a client opened it, which becomes the opener in the delegate's place. */
static void stop_draining(mpiox_server *server, int32_t file)
{
    mpiox_server_drain *drain = &server->files[file].drain;
    free(drain->pages);
    drain->pages = NULL;
    drain->count = drain->next = 0;
    drain->restores = drain->orphaned = false;
    atomic_fetch_and(&mpiox_server_record(server, file)->flags, ~MPIOX_FILE_DRAINING);
    mpiox_server_show_closed(server, file);
}

/* It is open already, or was just closed. */
static void join_record(mpiox_server *server, int32_t file, const mpiox_slot *slot)
{
    mpiox_file_record *record = mpiox_server_record(server, file);
    if (mpiox_server_is_replica(server, file) && strcmp(slot->text, record->path) != 0)
        mpiox_server_discard_copies(server, file); /* it has got its name: they are of no use any more */
    const int64_t flags = slot->question.open.flags;
    if (flags & MPIOX_FILE_WRITABLE && !(flags & MPIOX_FILE_COPIED))
        atomic_fetch_and(&record->flags, ~MPIOX_FILE_COPIED);
    if (atomic_load(&record->flags) & MPIOX_FILE_DRAINING)
        stop_draining(server, file);
    else
        atomic_fetch_add(&record->openers, 1);
    atomic_fetch_or(&record->flags, (int32_t)flags);
}

/* The file is open: find or make its record. */
static int enter_file(mpiox_server *server, mpiox_slot *slot, mpiox_storage *storage, int access,
                      mpiox_server_targets *targets, mpiox_storage **left)
{
    struct stat status;
    *left = storage;
    if ((storage->fd >= 0 ? fstat(storage->fd, &status) : stat(slot->text, &status)) != 0)
        return mpiox_error_set(&slot->error, MPIOX_E_IO, errno, -1, -1, "fstat");
    const int64_t device = slot->question.open.device, inode = slot->question.open.inode;
    if (inode != 0 && (device != (int64_t)status.st_dev || inode != (int64_t)status.st_ino))
        return mpiox_error_set(&slot->error, MPIOX_E_IO, ESTALE, -1, -1, "open (its folder was renamed meanwhile)");
    int32_t file = find_record(server, &status, (int32_t)slot->question.open.flags & MPIOX_FILE_REPLICA);
    if (file < 0) {
        file = free_record(server);
        if (file < 0)
            return MPIOX_E_FULL;
        fill_record(server, file, slot, &status, targets);
    } else {
        join_record(server, file, slot);
    }
    if (!take_handle(&server->files[file], storage, access, left)) {
        give_up(server, file, false);
        return MPIOX_E_FULL;
    }
    slot->file = file;
    slot->answer.open.unit_pages = mpiox_server_record(server, file)->unit_pages;
    slot->answer.open.owners = mpiox_server_record(server, file)->owners;
    return MPIOX_OK;
}

/* Begin the delegate's part of a file with a hidden name: it will have bytes or copies of the file. */
static int open_hidden(mpiox_server *server, const mpiox_slot *slot)
{
    const bool was_made = server->files[slot->file].folder <= 0;
    if (mpiox_server_begin_hidden(server, slot))
        return MPIOX_OK;
    give_up(server, slot->file, was_made);
    return MPIOX_E_IO;
}

static void open_file(mpiox_server *server, mpiox_slot *slot)
{
    mpiox_storage *storage = NULL, *left = NULL;
    mpiox_server_targets targets = {0};
    mpiox_error *error = &slot->error;
    int code = MPIOX_E_ARG, access = O_RDONLY;
    pthread_mutex_unlock(&server->lock);
    while (atomic_load(&server->cache.header->adopting)) /* else old bytes could overwrite this one's */
        poll(NULL, 0, 1);
    (void)mpiox_error_set(error, MPIOX_OK, 0, -1, -1, "");
    if (memchr(slot->text, '\0', sizeof slot->text) == NULL)
        (void)mpiox_error_set(error, MPIOX_E_ARG, ENAMETOOLONG, -1, -1, "open");
    else
        code = open_handle(server, slot->text, slot->question.open.flags, &storage, &access, error);
    if (code == MPIOX_OK)
        mpiox_server_targets_find(server->options.scheduler, storage, &targets);
    pthread_mutex_lock(&server->lock);
    mpiox_server_follow_folders(server);
    MPIOX_POINT("enter");
    if (code == MPIOX_OK)
        code = enter_file(server, slot, storage, access, &targets, &left);
    MPIOX_POINT("entered");
    if (code == MPIOX_OK && slot->question.open.flags & (MPIOX_FILE_HIDDEN | MPIOX_FILE_REPLICA))
        code = open_hidden(server, slot);
    mpiox_server_targets_free(&targets);
    if (left != NULL) {
        pthread_mutex_unlock(&server->lock);
        (void)mpiox_storage_close(left); /* nothing was written by it */
        pthread_mutex_lock(&server->lock);
    }
    mpiox_server_answer(server, slot, code);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Closing the file waits for this. */
static void end_sync(mpiox_server *server, int32_t file)
{
    server->files[file].syncing--;
    for (int i = 0; i < MPIOX_FLUSH_BARRIERS; i++) {
        mpiox_flush_barrier *other = &server->flush_barriers[i];
        if (other->used && other->closing && other->file == file && other->pending == 0)
            advance_and_next(server, other);
    }
}

static void sync_or_close(mpiox_server *server, mpiox_flush_barrier *barrier)
{
    const int32_t file = barrier->file;
    const bool stable = barrier->stable;
    mpiox_storage *handles[1 + MPIOX_RETIRED];
    mpiox_storage *storage = stable ? server->files[file].storage : NULL;
    mpiox_error error = {.code = MPIOX_OK};
    int code = MPIOX_OK;
    memcpy(handles, barrier->handles, sizeof handles);
    pthread_mutex_unlock(&server->lock);
    MPIOX_POINT("sync or close");
    if (storage != NULL)
        code = mpiox_storage_sync(storage, &error);
    for (int i = 0; !stable && i < 1 + MPIOX_RETIRED; i++) {
        if (mpiox_storage_close(handles[i]) != MPIOX_OK)
            code = mpiox_error_set(&error, MPIOX_E_IO, errno, -1, -1, "close");
    }
    pthread_mutex_lock(&server->lock);
    if (code != MPIOX_OK) {
        barrier->error = error;
        MPIOX_COUNT(server, errors, 1);
    }
    if (stable)
        barrier->stable = false;
    else
        memset(barrier->handles, 0, sizeof barrier->handles);
    advance_and_next(server, barrier);
    if (stable)
        end_sync(server, file);
}

void mpiox_server_operate(mpiox_server *server)
{
    const uint32_t size = (uint32_t)server->options.geometry.slots + MPIOX_FLUSH_BARRIERS,
                   slots = server->cache.ring->slots;
    const uint32_t operation = server->operations[server->operations_head];
    server->operations_head = (server->operations_head + 1) % size;
    server->operations_count--;
    if (operation < slots)
        open_file(server,
                  (mpiox_slot *)(void *)((char *)server->cache.ring + server->cache.ring->slots_at) + operation);
    else
        sync_or_close(server, &server->flush_barriers[operation - slots]);
}

void mpiox_server_close_files(mpiox_server *server, bool collect)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        mpiox_server_file *file = &server->files[i];
        mpiox_error error;
        for (int k = 0; k < MPIOX_RETIRED; k++) {
            (void)mpiox_storage_close(file->retired[k]);
            file->retired[k] = NULL;
        }
        if (mpiox_storage_close(file->storage) != MPIOX_OK) {
            (void)mpiox_error_set(&error, MPIOX_E_IO, errno, -1, -1, "close");
            mpiox_cache_add_error(&server->cache, i, &error);
        }
        file->storage = NULL;
        mpiox_server_drop_hidden(file);
        if (collect)
            lose_errors(server, i);
    }
}
