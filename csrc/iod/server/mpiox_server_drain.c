/*
 * mpiox_server_drain.c - writing files behind their close.
 *
 * Problem.    A program that has closed a file computes, while its bytes are still in the cache. They have to reach the
 *             file system without disturbing the program's next steps, in the order of the closes. No byte may be lost
 *             if the file system refuses it for a while.
 * Algorithm.  When the last opener closes the file the delegate becomes an opener in its place. Its I/O threads write
 *             the dirty pages in file order if no client waits: flush barriers, fills and frames that are needed come
 *             first, and may write pages of the file out of turn. A rate may delay the next run of pages. The user sets
 *             it, or it is such that all dirty pages are written by the time at which the next checkpoint is expected.
 *             That time is the last checkpoint plus the shorter of the last two intervals between checkpoints; files
 *             whose closes follow each other closely are one checkpoint.
 *             Pages that cannot be written stay dirty. The threads try them again, ever less often, down to every few
 *             seconds.
 *             A program that keeps a file open and completes no page for a while computes. Then the threads write the
 *             file's complete pages, to make room for its next writes.
 *             When no page is dirty the threads bring the file to stable storage, end its part of a hidden name
 *             (mpiox_server_hidden.h), and close it like any other.
 *             Copies of another delegate's pages (MPIOX_FILE_REPLICA) stay until that delegate has ended its part of
 *             the hidden name. If it is lost before, this delegate writes the copies in its place, and ends its part:
 *             since the close no client has changed the file, so that the copies are the bytes that it would have
 *             written.
 *             A rank that opens a closed file by MPI_File_open, or waits for it, waits until all this is done
 *             (MPIOX_OP_HOLD), and the file is written before others. An existing file may be closed while a rank opens
 *             it: the rank becomes the opener in the delegate's place, and the file is open as before.
 * Guarantees. A file has its own name only if all deposited bytes are in it. Marks of dirty bytes are cleared only when
 *             the bytes are in the file. While the delegate owns a record no other process ends it.
 */
#include "mpiox_server_drain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mpiox_server_files.h"
#include "mpiox_server_flush.h"
#include "mpiox_server_hidden.h"
#include "mpiox_server_replica.h"
#include "mpiox_testing.h"

static const double first_pause_s = 0.05, longest_pause_s = 5, run_s = 0.1; /* run_s: of a run, under a rate */
static const double quiet_s = 1;    /* an open file is written after such a pause */
static const double ready_at = 0.9; /* of the interval between checkpoints */
static const double look_s = 0.25;  /* copies: interval between checks whether the originals are in the file */
static const double gone_s = 2;     /* a process that maps the originals' memory writes them before that */
/* Limit on the copies' wait for the name: another file may have it for good, and two delegates must not wait for each
 * other's end. */
static const double unnamed_s = 20;

enum { MUCH = 4 }; /* times as long: another interval than that between files of one checkpoint */

static bool has(const mpiox_server *server, int32_t file, int32_t flag)
{
    return (atomic_load(&mpiox_server_record(server, file)->flags) & flag) != 0;
}

static bool is_draining(const mpiox_server *server, int32_t file)
{
    return server->files[file].storage != NULL && has(server, file, MPIOX_FILE_DRAINING);
}

/* It is for another delegate to write the file. */
static bool keeps_copies(const mpiox_server *server, int32_t file)
{
    return has(server, file, MPIOX_FILE_REPLICA) && !server->files[file].drain.restores;
}

/* Around work that is done without the lock. */
static void begin_call(mpiox_server *server, mpiox_server_file *file)
{
    file->drain.ending = true;
    file->called = mpiox_now();
    pthread_mutex_unlock(&server->lock);
}

static void end_call(mpiox_server *server, mpiox_server_file *file)
{
    pthread_mutex_lock(&server->lock);
    file->drain.ending = false;
}

/* Milliseconds since a call on the file that is under way began, or one beside it ended; 0: there is none. */
static int64_t lasts_ms(const mpiox_server_file *file)
{
    return file->drain.ending || file->writers > 0 ? (int64_t)(1e3 * (mpiox_now() - file->called)) : 0;
}

/* ---- closing and holding ----------------------------------------------------------------------------------------- */

bool mpiox_server_closes_behind(const mpiox_server *server, const mpiox_slot *slot)
{
    return slot->op == MPIOX_OP_CLOSE && slot->file >= 0 && slot->file < MPIOX_CACHE_MAX_FILES &&
           server->files[slot->file].storage != NULL &&
           (slot->question.close.how == MPIOX_CLOSING_BEHIND || has(server, slot->file, MPIOX_FILE_HIDDEN));
}

/* A file was closed: does a checkpoint begin with it? */
static void note_checkpoint(mpiox_server *server, double now)
{
    const double since = now - server->checkpoints.begun, known = server->checkpoints.interval;
    if (server->checkpoints.begun > 0 && known > 0 && since < known / MUCH)
        return;
    if (server->checkpoints.begun > 0) { /* those before may have been files of one checkpoint */
        server->checkpoints.before = since > MUCH * known ? 0 : known;
        server->checkpoints.interval = since;
    }
    server->checkpoints.begun = now;
}

/* An opener leaves. */
static void leave(mpiox_server *server, int32_t number)
{
    mpiox_file_record *record = mpiox_server_record(server, number);
    if (atomic_load(&record->openers) > 1) {
        atomic_fetch_sub(&record->openers, 1);
    } else { /* its place is the delegate's now */
        if (!has(server, number, MPIOX_FILE_REPLICA))
            note_checkpoint(server, mpiox_now());
        mpiox_server_begin_drain(server, number);
    }
}

void mpiox_server_close_behind(mpiox_server *server, mpiox_slot *slot)
{
    mpiox_server_file *file = &server->files[slot->file];
    const bool of_hold = slot->question.close.of_hold != 0;
    if (!of_hold || file->holds > 0)
        leave(server, slot->file);
    file->holds -= of_hold && file->holds > 0;
    MPIOX_COUNT(server, requests, 1);
    mpiox_ring_answer(slot, MPIOX_OK);
    mpiox_server_wake(server);
}

void mpiox_server_end_holds(mpiox_server *server)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        for (; server->files[i].storage != NULL && server->files[i].holds > 0; server->files[i].holds--)
            leave(server, i);
    }
}

/* A MPIOX_OP_HOLD about copies. Returns MPIOX_HOLD_*. */
static int64_t answer_hold_of_copies(mpiox_server *server, mpiox_slot *slot)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        mpiox_server_file *file = &server->files[i];
        mpiox_file_record *record = mpiox_server_record(server, i);
        if (!is_draining(server, i) || !has(server, i, MPIOX_FILE_REPLICA) || strcmp(record->path, slot->text) != 0)
            continue;
        if (record->part == slot->question.hold.copies_of - 1) {
            file->drain.again = file->drain.orphaned ? file->drain.again : 0;
            file->drain.orphaned = true;
            mpiox_server_wake(server);
            slot->file = i;
            slot->answer.hold.lasts_ms = lasts_ms(file);
            return file->drain.failing_since > 0 ? MPIOX_HOLD_FAILED : MPIOX_HOLD_SOON;
        }
    }
    return MPIOX_HOLD_NONE;
}

/* Hurry a closed file to its name; the client repeats the request until then. *slot: the answer. */
static void hurry(mpiox_server *server, mpiox_server_file *file, int32_t drain_errno, mpiox_slot *slot)
{
    slot->answer.hold.error = file->drain.refused ? EAGAIN : file->drain.failing_since > 0 ? drain_errno : 0;
    slot->answer.hold.state = slot->answer.hold.error != 0 ? MPIOX_HOLD_FAILED : MPIOX_HOLD_SOON;
    slot->answer.hold.stage = file->drain.ending ? MPIOX_HOLD_NAMING : MPIOX_HOLD_WRITING;
    file->drain.soon = true;
    mpiox_server_wake(server);
}

/* One about the originals. */
static void hold(mpiox_server *server, mpiox_slot *slot)
{
    const int64_t how = slot->question.hold.how;
    const bool adopts = atomic_load(&server->cache.header->adopting);
    slot->answer.hold.state = adopts ? MPIOX_HOLD_SOON : MPIOX_HOLD_NONE;
    slot->answer.hold.lasts_ms = adopts ? INT64_MAX : 0;
    slot->file = -1;
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        mpiox_server_file *file = &server->files[i];
        mpiox_file_record *record = mpiox_server_record(server, i);
        if (file->storage == NULL || !has(server, i, MPIOX_FILE_HIDDEN | MPIOX_FILE_DRAINING) ||
            has(server, i, MPIOX_FILE_REPLICA) || strcmp(record->path, slot->text) != 0)
            continue;
        slot->file = i;
        slot->answer.hold.stage = MPIOX_HOLD_WRITING;
        slot->answer.hold.lasts_ms = lasts_ms(file);
        if (is_draining(server, i) && (how != MPIOX_HOLD_TO_DELETE || file->drain.ending)) {
            hurry(server, file, atomic_load(&record->drain_errno), slot);
            break;
        }
        slot->answer.hold.state = MPIOX_HOLD_HELD;
        file->holds += how != MPIOX_HOLD_TO_LOOK;
        atomic_fetch_add(&record->openers, how != MPIOX_HOLD_TO_LOOK);
        break;
    }
}

void mpiox_server_hold(mpiox_server *server, mpiox_slot *slot)
{
    mpiox_server_follow_folders(server);
    if (slot->question.hold.copies_of != 0)
        slot->answer.hold.state = answer_hold_of_copies(server, slot);
    else
        hold(server, slot);
    MPIOX_COUNT(server, requests, 1);
    mpiox_ring_answer(slot, MPIOX_OK);
}

/* ---- which pages ------------------------------------------------------------------------------------------------- */

static int by_page(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void forget_pages(mpiox_server_file *file)
{
    free(file->drain.pages);
    file->drain.pages = NULL;
    file->drain.count = file->drain.next = 0;
}

/* All pages of the file of which so many bytes are dirty, in its order, as far as there is memory for the list. *busy:
 * others work on some. */
static void list_pages(mpiox_server *server, int32_t number, int64_t dirty_bytes, bool *busy)
{
    mpiox_server_file *file = &server->files[number];
    *busy = false;
    forget_pages(file);
    int64_t room = file->frames.count > 0 ? file->frames.count : 1;
    while ((file->drain.pages = malloc((size_t)room * sizeof *file->drain.pages)) == NULL && room > 1)
        room /= 2;
    for (uint32_t frame = file->frames.first; frame != MPIOX_CACHE_NO_FRAME;
         frame = server->info[frame].links[MPIOX_LINK_FILE].next) {
        *busy |= server->info[frame].busy;
        if (file->drain.pages != NULL && file->drain.count < room &&
            mpiox_server_dirty_of(server, frame) >= dirty_bytes)
            file->drain.pages[file->drain.count++] = mpiox_server_page_of(server, frame);
    }
    if (file->drain.count > 0)
        qsort(file->drain.pages, (size_t)file->drain.count, sizeof *file->drain.pages, by_page);
}

/* Is it written at full speed: does a client wait for it, does it disturb none, or is time short? */
static bool is_hurried(const mpiox_server *server, int32_t file)
{
    return server->files[file].drain.soon || atomic_load(&server->hurry) ||
           (atomic_load(&server->joined) && atomic_load(&server->clients) == 0);
}

/* Bytes a second with which all that is dirty is written shortly before the next checkpoint; 0: as fast as it can. */
static double even_rate(const mpiox_server *server, double now)
{
    const double interval = server->checkpoints.interval, before = server->checkpoints.before;
    const double shorter = before > 0 && before < interval ? before : interval;
    const double left = server->checkpoints.begun + ready_at * shorter - now;
    const double dirty_frames = atomic_load(&server->cache.header->dirty_frames);
    return shorter > 0 && left > 0 ? dirty_frames * (double)server->cache.page_bytes / left : 0;
}

/* Bytes a second at which the file is to be written; 0: no limit. */
static double pace_of(const mpiox_server *server, int32_t file, double now)
{
    const mpiox_server_drain *drain = &server->files[file].drain;
    const double given = (double)drain->rate, even = drain->even ? even_rate(server, now) : 0;
    if (is_hurried(server, file))
        return 0;
    return given > 0 && (even <= 0 || given < even) ? given : even;
}

/* The next frames of the list that follow each other, taken up; pace: bytes a second, 0: no limit. Returns their dirty
 * bytes. */
static int64_t gather(mpiox_server *server, mpiox_io *io, double pace)
{
    mpiox_server_file *file = &server->files[io->file];
    const double most = pace > 0 ? run_s * pace : 16 << 20;
    int64_t bytes = 0;
    io->count = 0;
    for (; file->drain.next < file->drain.count && io->count < MPIOX_RUN_FRAMES; file->drain.next++) {
        const int64_t page = file->drain.pages[file->drain.next];
        const uint32_t frame = mpiox_frame_find(&server->cache, io->file, page);
        if (frame == MPIOX_CACHE_NO_FRAME || server->info[frame].busy || mpiox_server_dirty_of(server, frame) == 0 ||
            server->info[frame].wants & MPIOX_WANT_CUT)
            continue; /* another one does it, or has done it */
        if (io->count > 0 && (page != file->drain.pages[file->drain.next - 1] + 1 || (double)bytes >= most))
            break;
        bytes += mpiox_server_dirty_of(server, frame);
        mpiox_server_want(server, frame, MPIOX_WANT_FLUSH);
        mpiox_server_take_up(server, frame);
        io->frames[io->count++] = frame;
    }
    return bytes;
}

/* A pass over the file has ended, or waits for its rate: record the file's state as this job's, for a recovery of the
 * cache (mpiox_cache_family.h). Not under a hidden name, which no other job uses. */
static void look_at_file(mpiox_server *server, int32_t number)
{
    mpiox_server_file *file = &server->files[number];
    mpiox_file_record *record = mpiox_server_record(server, number);
    mpiox_storage *storage = file->storage;
    const int64_t begun = atomic_load(&record->begun_ns);
    mpiox_error ignored;
    struct stat status;
    if (server->cache.header->kept[0] == '\0' || begun == 0 || file->writers > 0 ||
        has(server, number, MPIOX_FILE_HIDDEN))
        return;
    begin_call(server, file);
    bool seen = mpiox_storage_pin(storage, &ignored) == MPIOX_OK;
    if (seen) {
        seen = fstat(storage->fd, &status) == 0;
        mpiox_storage_unpin(storage);
    }
    end_call(server, file);
    if (seen)
        mpiox_cache_see(record, &status, begun);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void note_failure(mpiox_server *server, int32_t number, int code)
{
    mpiox_server_file *file = &server->files[number];
    const double now = mpiox_now();
    atomic_store(&mpiox_server_record(server, number)->drain_errno, code);
    file->drain.clashes = false;
    const bool changes = (code != 0) != (file->drain.failing_since > 0);
    file->drain.failing_since = code == 0 ? 0 : changes ? now : file->drain.failing_since;
    if (changes)
        mpiox_server_show_closed(server, number);
    if (code == 0) {
        file->drain.pause = file->drain.again = 0;
        return;
    }
    file->drain.pause = file->drain.pause <= 0 ? first_pause_s : 2 * file->drain.pause;
    if (file->drain.pause > longest_pause_s)
        file->drain.pause = longest_pause_s;
    file->drain.again = now + file->drain.pause;
    forget_pages(file); /* pages that could not be written are listed again */
}

/* ---- the end of a file ------------------------------------------------------------------------------------------- */

/* Nothing was asked of the file system, or it was interrupted: that can be tried again. */
static bool is_passing(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOMEM || code == EINTR;
}

/* A file system reports bytes that it has lost once, by one fsync, and the pages are gone: a later fsync means nothing.
 * So the error stays. 0 or an errno. */
static int make_stable(const mpiox_server *server, int32_t number)
{
    mpiox_storage *storage = server->files[number].storage;
    mpiox_error error = {.code = MPIOX_OK};
    if (mpiox_storage_pin(storage, &error) != MPIOX_OK)
        return error.sys_errno != 0 ? error.sys_errno : EIO;
    MPIOX_POINT("sync at the end");
    if (mpiox_storage_sync(storage, &error) != MPIOX_OK) {
        error.sys_errno = error.sys_errno != 0 ? error.sys_errno : EIO;
        if (!is_passing(error.sys_errno))
            mpiox_cache_add_error(&server->cache, number, &error);
    }
    mpiox_storage_unpin(storage);
    return error.sys_errno;
}

/* To stable storage, and to its name. 0 or an errno. */
static int make_whole(const mpiox_server *server, int32_t number, bool *renamed)
{
    const int code = has(server, number, MPIOX_FILE_WRITABLE) ? make_stable(server, number) : 0;
    *renamed = false;
    if (code != 0)
        return code;
    if (!has(server, number, MPIOX_FILE_HIDDEN | MPIOX_FILE_REPLICA))
        return 0;
    return mpiox_server_end_hidden(server, number, renamed);
}

/* All bytes of this delegate are in the file, which keeps its hidden name until the user removes the obstacle. */
static void note_clash(mpiox_server *server, int32_t number, int code)
{
    mpiox_server_drain *drain = &server->files[number].drain;
    drain->clashes = true;
    if (!drain->reported && server->reports.clash != NULL)
        server->reports.clash(mpiox_server_record(server, number)->path, code);
    drain->reported = true;
}

/* No page is dirty. If bytes were dropped, because a client waited for their page, the file does not get its name. */
static bool end_file(mpiox_server *server, int32_t number)
{
    mpiox_server_file *file = &server->files[number];
    mpiox_file_record *record = mpiox_server_record(server, number);
    mpiox_error lost;
    bool renamed = false;
    forget_pages(file);
    if (file->holds > 0) { /* a rank deletes it */
        file->drain.again = mpiox_now() + first_pause_s;
        return true;
    }
    mpiox_server_look_at_disk(server);
    begin_call(server, file);
    const int code = mpiox_cache_find_error(&server->cache, number, 0, INT64_MAX, &lost)
                         ? (lost.sys_errno != 0 ? lost.sys_errno : EIO)
                         : make_whole(server, number, &renamed);
    end_call(server, file);
    if (!is_draining(server, number)) { /* a rank has opened it meanwhile */
        if (code == 0)
            mpiox_server_settle_name(server, number, renamed);
        return true;
    }
    file->drain.refused = code == EAGAIN;
    if (code == EAGAIN) /* a rank is just closing it, or another delegate gives it its name */
        file->drain.again = mpiox_now() + first_pause_s;
    else
        note_failure(server, number, code);
    if (mpiox_server_is_clash(server, number, code))
        note_clash(server, number, code);
    if (code != 0)
        return true;
    MPIOX_POINT("settle");
    mpiox_server_settle_name(server, number, renamed);
    MPIOX_POINT("settled name");
    if (mpiox_server_close_alone(server, number))
        atomic_fetch_and(&record->flags, ~MPIOX_FILE_DRAINING);
    return true;
}

/* Copies: if the originals are neither in the file nor lost, check again later. */
static bool look_after_copies(mpiox_server *server, int32_t number)
{
    mpiox_server_file *file = &server->files[number];
    mpiox_file_record *record = mpiox_server_record(server, number);
    const bool gone = file->drain.orphaned || (server->peers.gone_s != NULL &&
                                               server->peers.gone_s(server->peers.context, record->part) > gone_s);
    char room[PATH_MAX];
    const char *path = mpiox_server_place(server, number, room);
    bool unnamed;
    begin_call(server, file);
    const bool needed = mpiox_server_needs_copies(record, path, gone, &unnamed);
    end_call(server, file);
    file->drain.unnamed_since = !unnamed ? 0 : file->drain.unnamed_since > 0 ? file->drain.unnamed_since : mpiox_now();
    const bool waits = unnamed && !gone && mpiox_now() - file->drain.unnamed_since < unnamed_s;
    file->drain.again = mpiox_now() + look_s;
    if (!is_draining(server, number)) /* if it is open, flush barriers flush or discard them */
        return true;
    if (!needed) {
        MPIOX_POINT("discard copies");
        mpiox_server_discard_copies(server, number);
        if (!waits && file->frames.count == 0 && mpiox_server_close_alone(server, number))
            atomic_fetch_and(&record->flags, ~MPIOX_FILE_DRAINING);
    } else if (gone) {
        file->drain.restores = file->drain.soon = true;
        file->drain.again = 0;
    }
    return true;
}

void mpiox_server_leave_behind(mpiox_server *server)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES && server->cache.header->kept[0] != '\0'; i++)
        server->files[i].drain.left |= is_draining(server, i) && server->files[i].drain.failing_since > 0 &&
                                       !server->files[i].drain.clashes;
}

bool mpiox_server_has_left(const mpiox_server *server)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        if (server->files[i].drain.left)
            return true;
    }
    return false;
}

static void drain_last(mpiox_server *server, int32_t number)
{
    mpiox_file_record *record = mpiox_server_record(server, number);
    mpiox_error error;
    bool renamed;
    if (!is_draining(server, number) || keeps_copies(server, number))
        return;
    if (mpiox_cache_error_count(&server->cache, number) > 0) { /* it has lost bytes: it does not get its name */
        atomic_fetch_and(&record->flags, ~MPIOX_FILE_HIDDEN);
        return;
    }
    forget_pages(&server->files[number]);
    if (server->files[number].drain.left) {
        (void)mpiox_error_set(&error, MPIOX_E_IO, atomic_load(&record->drain_errno), -1, -1, "write");
        mpiox_cache_add_error(&server->cache, number, &error);
        return;
    }
    const int code = make_whole(server, number, &renamed);
    if (code == 0 || code == EAGAIN) { /* another delegate does it */
        mpiox_server_settle_name(server, number, renamed);
    } else if (mpiox_server_is_clash(server, number, code)) {
        note_clash(server, number, code);
    } else if (mpiox_cache_error_count(&server->cache, number) == 0) { /* else it was reported already */
        (void)mpiox_error_set(&error, MPIOX_E_IO, code, -1, -1, "giving a file its name");
        mpiox_cache_add_error(&server->cache, number, &error);
    }
}

void mpiox_server_drain_last(mpiox_server *server)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++)
        drain_last(server, i);
}

/* ---- which file -------------------------------------------------------------------------------------------------- */

static bool is_before(const mpiox_server_drain *a, const mpiox_server_drain *b)
{
    return a->soon != b->soon ? a->soon : a->number < b->number;
}

/* The file that was closed first among those that can continue, or for which a client waits; -1: none. *again: when the
 * first of the others can. */
static int32_t next_file(const mpiox_server *server, double now, double *again)
{
    int32_t found = -1;
    *again = INFINITY;
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_server_file *file = &server->files[i];
        if (!is_draining(server, i) || file->drain.ending)
            continue;
        if (file->drain.again > now)
            *again = file->drain.again < *again ? file->drain.again : *again;
        else if (found < 0 || is_before(&file->drain, &server->files[found].drain))
            found = i;
    }
    return found;
}

/* An open file of which no client has completed a page for a while; -1: none. *again: when there will be one. */
static int32_t next_open(const mpiox_server *server, double now, double *again)
{
    *again = INFINITY;
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES && server->open_touched; i++) {
        const mpiox_server_drain *drain = &server->files[i].drain;
        if (server->files[i].storage == NULL || drain->touched <= 0 || is_draining(server, i) || drain->ending)
            continue;
        if (drain->touched + quiet_s <= now)
            return i;
        *again = drain->touched + quiet_s < *again ? drain->touched + quiet_s : *again;
    }
    return -1;
}

/* It has time until it is closed, or until nothing more comes. */
static void touch(mpiox_server *server, int32_t file)
{
    const bool first = server->files[file].drain.touched <= 0;
    server->files[file].drain.touched = mpiox_now();
    server->open_touched = true;
    if (first)
        mpiox_server_wake(server);
}

bool mpiox_server_drain_defers(mpiox_server *server, int32_t file)
{
    const int32_t later = MPIOX_FILE_REPLICA | MPIOX_FILE_BEHIND,
                  flags = atomic_load_explicit(&mpiox_server_record(server, file)->flags, memory_order_relaxed) & later;
    if (flags == MPIOX_FILE_BEHIND)
        touch(server, file);
    return flags != 0;
}

double mpiox_server_drain_due(const mpiox_server *server)
{
    const double now = mpiox_now(), soon = now + run_s; /* recheck now and then whether a client waits for it */
    double again = INFINITY, open_again;
    int32_t file = server->closings > 0 ? next_file(server, now, &again) : -1;
    const int32_t open = next_open(server, now, &open_again);
    again = open_again < again ? open_again : again;
    file = file >= 0 ? file : open;
    if (file < 0)
        return again;
    const double at = pace_of(server, file, now) > 0 ? server->drain_at : 0;
    return at > soon || at <= 0 ? soon : at;
}

/* bytes: of a run that was written after the last check. Another process may have removed the file meanwhile, as `mv`
 * to another file system does: then its copy lacks them. A program that has removed its own open file knows it. */
static void note_removal(mpiox_server *server, const mpiox_io *io, int64_t bytes)
{
    mpiox_server_file *file = &server->files[io->file];
    file->drain.named |= io->names > 0;
    if (io->names != 0 || file->drain.removed || (!file->drain.named && !has(server, io->file, MPIOX_FILE_HIDDEN)))
        return;
    for (uint32_t frame = file->frames.first; frame != MPIOX_CACHE_NO_FRAME;
         frame = server->info[frame].links[MPIOX_LINK_FILE].next)
        bytes += mpiox_server_dirty_of(server, frame);
    file->drain.removed = true;
    if (server->reports.removal != NULL)
        server->reports.removal(mpiox_server_record(server, io->file)->path, bytes);
}

/* The next pages of the list, at the file's pace. */
static int write_pages(mpiox_server *server, mpiox_io *io, double pace, double now)
{
    const int64_t bytes = gather(server, io, pace);
    if (io->count == 0)
        return 0;
    if (pace > 0)
        server->drain_at = (now > server->drain_at ? now : server->drain_at) + (double)bytes / pace;
    const int code = mpiox_server_flush_behind(server, io);
    if (is_draining(server, io->file))
        note_removal(server, io, code == 0 ? bytes : 0);
    return code;
}

/* Complete pages of a file that is open, and at rest. What fails stays for the close. */
static bool drain_open(mpiox_server *server, mpiox_io *io)
{
    const double now = mpiox_now();
    double again;
    bool busy = false;
    const int32_t number = next_open(server, now, &again);
    const double pace = number >= 0 ? pace_of(server, number, now) : 0;
    if (number < 0 || (pace > 0 && now < server->drain_at))
        return false;
    mpiox_server_drain *drain = &server->files[number].drain;
    if (drain->next == drain->count)
        list_pages(server, number, server->cache.page_bytes, &busy);
    io->file = number;
    const int code = drain->count > 0 ? write_pages(server, io, pace, now) : 0;
    if (server->files[number].storage != NULL && !is_draining(server, number) &&
        (code != 0 || drain->next == drain->count) && drain->touched + quiet_s <= mpiox_now())
        drain->touched = 0;
    return drain->count > 0;
}

/* Pages of a file that was closed, or its end. */
static bool drain_closed(mpiox_server *server, mpiox_io *io)
{
    const double now = mpiox_now();
    double again;
    bool busy = false;
    const int32_t number = next_file(server, now, &again);
    if (number >= 0 && keeps_copies(server, number))
        return look_after_copies(server, number);
    const double pace = number >= 0 ? pace_of(server, number, now) : 0;
    if (number < 0 || (pace > 0 && now < server->drain_at))
        return false;
    mpiox_server_file *file = &server->files[number];
    if (file->drain.next == file->drain.count)
        list_pages(server, number, 1, &busy);
    if (file->drain.count == 0)
        return busy ? false : end_file(server, number);
    io->file = number;
    const int code = write_pages(server, io, pace, now);
    if (io->count == 0)
        return !busy;
    if (file->storage == NULL || !is_draining(server, number))
        return true;
    note_failure(server, number, code);
    if ((pace > 0 || file->drain.next == file->drain.count) && !file->drain.ending)
        look_at_file(server, number);
    return true;
}

bool mpiox_server_drain_some(mpiox_server *server, mpiox_io *io)
{
    return (server->closings > 0 && drain_closed(server, io)) || (server->open_touched && drain_open(server, io));
}

bool mpiox_server_is_draining(const mpiox_server *server)
{
    const double now = mpiox_now();
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES && server->closings > 0; i++) {
        const mpiox_server_file *file = &server->files[i];
        if (is_draining(server, i) && !file->drain.clashes &&
            (file->drain.failing_since <= 0 || now - file->drain.failing_since < file->drain.patience))
            return true;
    }
    return false;
}
