/*
 * mpiox_forwarded_hold.c - files that delegates write behind their close, opened or deleted meanwhile.
 *
 * Problem.   Such a file may have a hidden name, or bytes that only its delegates have, and may get its name or lose
 *            its record at any moment. A rank that opens or deletes it must find all of it.
 * Algorithm. One rank queries every delegate of the job. A closed file is written before others and at full speed then.
 *            The rank repeats the query until no delegate has bytes of the file, and as long as a delegate writes the
 *            leftovers of an earlier job. If a rank has the file open, the delegates hold it: record and hidden name
 *            stay until the rank that asked releases them. Copies stand in for the bytes of a dead delegate: the
 *            delegates that have them write them first.
 * Waits.     They have no limit, as the file system's own calls have none: an error would leave a program without a
 *            file that is safe, and servers come back. A rank that waits for one call of a delegate prints a line after
 *            a while (mpiox_service_patience.h). If the file system refuses the bytes, the caller's patience limits the
 *            wait.
 * Limits.    The rank checks delegates of this node first, without a message. It queries those of other nodes only if
 *            the hints of the job, or of a file that this process has opened, permit such files.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_cache_hidden.h"
#include "mpiox_forwarded_impl.h"
#include "mpiox_service_patience.h"
#include "mpiox_storage_staging.h"

/* The state of the file at one delegate. */
typedef struct hold_part {
    int32_t index;    /* of the record; -1: it has none */
    int32_t op, file; /* of the call on the file that is under way: */
    int64_t ms;       /* seconds that it has lasted; 0: there is none */
} hold_part;

struct mpiox_forwarded_hold {
    mpiox_service *service;
    hold_part of[]; /* [service->count] */
};

enum { LONG_MS = 1000, LONGEST_PAUSE_MS = 20 }; /* LONG_MS: a call that is shorter is not reported */

static const double keepers_s = 10; /* limit on a wait for a process that has the file open */

static atomic_bool seen; /* this process has opened such a file */

void mpiox_forwarded_expect_holds(void)
{
    atomic_store(&seen, true);
}

static bool has_some(const mpiox_process *delegate)
{
    const int32_t flags = MPIOX_FILE_HIDDEN | MPIOX_FILE_DRAINING;
    const mpiox_file_record *records = delegate->cache.header->files;

    if (atomic_load(&delegate->cache.header->adopting))
        return true;
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        if (atomic_load(&records[i].openers) > 0 && atomic_load(&records[i].flags) & flags)
            return true;
    }
    return false;
}

bool mpiox_forwarded_may_hold(const mpiox_service *service)
{
    bool elsewhere = false;

    for (int32_t i = 0; service && i < service->count; i++) {
        if (service->delegates[i].local && has_some(&service->delegates[i]))
            return true;
        elsewhere |= !service->delegates[i].local;
    }
    return elsewhere && (atomic_load(&seen) || service->hints.close != MPIOX_CLOSE_WRITTEN);
}

bool mpiox_forwarded_is_draining(const mpiox_service *service, uint64_t device, uint64_t inode)
{
    const int32_t flags = MPIOX_FILE_DRAINING | MPIOX_FILE_HIDDEN | MPIOX_FILE_REPLICA;

    for (int32_t i = 0; i < service->count * MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_process *delegate = &service->delegates[i / MPIOX_CACHE_MAX_FILES];
        const mpiox_file_record *record = delegate->local ? &delegate->cache.header->files[i % MPIOX_CACHE_MAX_FILES]
                                                          : NULL;

        if (record != NULL && atomic_load(&record->openers) > 0 && record->inode == inode && record->device == device &&
            (atomic_load(&record->flags) & flags) == MPIOX_FILE_DRAINING)
            return true;
    }
    return false;
}

bool mpiox_forwarded_next_draining(const mpiox_service *service, const char *folder, int32_t *at, char path[PATH_MAX])
{
    const size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);

    for (; *at < service->count * MPIOX_CACHE_MAX_FILES; ++*at) {
        const mpiox_process *delegate = &service->delegates[*at / MPIOX_CACHE_MAX_FILES];
        const mpiox_file_record *record = delegate->local ? &delegate->cache.header->files[*at % MPIOX_CACHE_MAX_FILES]
                                                          : NULL;
        char name[PATH_MAX];

        if (record == NULL || atomic_load(&record->openers) == 0 ||
            !(atomic_load(&record->flags) & MPIOX_FILE_DRAINING))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)sizeof record->path, record->path); /* it may just change */
        if (strncmp(name, folder, length) != 0 || name[length] != '/')
            continue;
        if (!mpiox_cache_own_name(name, path, PATH_MAX))
            memcpy(path, name, sizeof name);
        ++*at;
        return true;
    }
    return false;
}

/* Another thread may be leaving the delegates of other nodes meanwhile. */
static int request(mpiox_process *delegate, mpiox_slot *slot)
{
    mpiox_service_begin_asking();
    const int code = mpiox_forwarded_request_of(delegate, slot);
    mpiox_service_end_asking();
    return code;
}

/* One request to each delegate that has the file. The first failure is the error. */
static int request_all(const mpiox_forwarded_hold *hold, const mpiox_slot *what, mpiox_error *error)
{
    *error = (mpiox_error){.code = MPIOX_OK};
    for (int32_t i = 0; i < hold->service->count; i++) {
        mpiox_slot slot = *what;

        if (hold->of[i].index < 0)
            continue;
        slot.file = hold->of[i].index;
        const int code = request(&hold->service->delegates[i], &slot);
        if (code == MPIOX_E_UNSUPPORTED)
            mpiox_process_is_serving(&hold->service->delegates[i]); /* when this returns it is rescued */
        else if (code != MPIOX_OK && error->code == MPIOX_OK)
            *error = slot.error;
    }
    return error->code;
}

static void release(const mpiox_forwarded_hold *hold)
{
    mpiox_error ignored;
    const mpiox_slot slot = {.op = MPIOX_OP_CLOSE, .question.close = {.how = MPIOX_CLOSING_BEHIND, .of_hold = 1}};

    request_all(hold, &slot, &ignored);
}

static void note_call(hold_part *part, const mpiox_slot *answer)
{
    const int64_t lasts_ms = answer->answer.hold.lasts_ms;

    part->op = answer->answer.hold.stage == MPIOX_HOLD_NAMING ? MPIOX_WAITS_FOR_NAME : MPIOX_OP_HOLD;
    if (lasts_ms == INT64_MAX)
        part->op = MPIOX_WAITS_FOR_EARLIER;
    part->file = answer->file;
    part->ms = lasts_ms;
}

/* The wait stays with its delegate while that one hangs: of two that do so, now one is found to hang longer, now the
 * other. Else it is the longest. */
static void note_wait(const mpiox_forwarded_hold *hold, mpiox_service_wait *wait, const char *path)
{
    int32_t at = 0;

    for (int32_t i = 1; i < hold->service->count; i++)
        at = hold->of[i].ms > hold->of[at].ms ? i : at;
    for (int32_t i = 0; i < hold->service->count; i++)
        at = wait->delegate == &hold->service->delegates[i] && hold->of[i].ms >= LONG_MS ? i : at;
    if (hold->of[at].ms >= LONG_MS)
        mpiox_service_patience_step(wait, &hold->service->delegates[at], hold->of[at].op, hold->of[at].file, path);
    else
        mpiox_service_patience_end(wait);
}

/* The MPIOX_HOLD_* of all delegates together. SOON or FAILED, for the reason *why, if one delegate answers so: the
 * ranks are just closing the file, and no delegate holds it. */
static int ask_all(mpiox_forwarded_hold *hold, const char *path, int how, int *why)
{
    bool held = false, soon = false;

    *why = 0;
    for (int32_t i = 0; i < hold->service->count; i++) {
        mpiox_slot slot = {.op = MPIOX_OP_HOLD, .question.hold.how = how};

        hold->of[i] = (hold_part){.index = -1};
        snprintf(slot.text, sizeof slot.text, "%s", path);
        if (request(&hold->service->delegates[i], &slot) != MPIOX_OK)
            continue;
        note_call(&hold->of[i], &slot);
        const int64_t state = slot.answer.hold.state;

        soon |= state == MPIOX_HOLD_SOON || state == MPIOX_HOLD_FAILED;
        *why = state == MPIOX_HOLD_FAILED ? (int)slot.answer.hold.error : *why;
        if (state != MPIOX_HOLD_HELD)
            continue;
        held = true;
        hold->of[i].index = how == MPIOX_HOLD_TO_LOOK ? -1 : slot.file;
    }
    if (soon && held)
        release(hold);
    return *why != 0 && how != MPIOX_HOLD_TO_DELETE ? MPIOX_HOLD_FAILED
           : soon                                   ? MPIOX_HOLD_SOON
           : held                                   ? MPIOX_HOLD_HELD
                                                    : MPIOX_HOLD_NONE;
}

/* The same until all hold it, or none has bytes of it. FAILED: the file system has refused it for too long. */
static int ask_until(mpiox_forwarded_hold *hold, const char *path, int how, double patience, int *why)
{
    mpiox_service_wait wait = {.delegate = NULL};
    double since = 0;
    int result, pause_ms = 1;

    while ((result = ask_all(hold, path, how, why)) == MPIOX_HOLD_SOON || result == MPIOX_HOLD_FAILED) {
        const double limit = *why == EAGAIN && patience < keepers_s ? keepers_s : patience;

        since = result == MPIOX_HOLD_SOON ? 0 : since > 0 ? since : mpiox_now();
        if (result == MPIOX_HOLD_FAILED && mpiox_now() - since >= limit)
            break;
        note_wait(hold, &wait, path);
        poll(NULL, 0, pause_ms);
        pause_ms += pause_ms < LONGEST_PAUSE_MS;
    }
    mpiox_service_patience_end(&wait);
    return result;
}

/* Have delegate i write its copies of a dead delegate's bytes of the file. False: they cannot be written. */
static bool restore_at(const mpiox_service *service, int32_t i, int32_t dead, const char *path)
{
    mpiox_service_wait wait = {.delegate = NULL};
    mpiox_slot slot;
    int code;

    for (;;) {
        slot = (mpiox_slot){.op = MPIOX_OP_HOLD, .question.hold.copies_of = dead + 1};
        snprintf(slot.text, sizeof slot.text, "%s", path);
        code = request(&service->delegates[i], &slot);
        if (code != MPIOX_OK || slot.answer.hold.state != MPIOX_HOLD_SOON)
            break;
        if (slot.answer.hold.lasts_ms >= LONG_MS)
            mpiox_service_patience_step(&wait, &service->delegates[i], MPIOX_OP_HOLD, slot.file, path);
        poll(NULL, 0, 1);
    }
    mpiox_service_patience_end(&wait);
    return code != MPIOX_OK || slot.answer.hold.state != MPIOX_HOLD_FAILED;
}

static bool restore(const mpiox_service *service, int32_t dead, const char *path)
{
    for (int32_t i = 0; i < service->count; i++) {
        if (i != dead && !restore_at(service, i, dead, path))
            return false;
    }
    return true;
}

/* There are no copies of a dead delegate's bytes, and it is unknown whether they are in the file: of this node, its
 * cache could not be read, or the file not be written; of another one, a process there may still write them, and end
 * the delegate's part of a hidden name. */
static bool has_lost(const mpiox_process *delegate, const char *path)
{
    const mpiox_file_record *files = delegate->local ? delegate->cache.header->files : NULL;
    char own[PATH_MAX];
    struct stat status;
    bool lost = delegate->lost && (delegate->local || mpiox_cache_own_name(path, own, sizeof own));

    for (int32_t i = 0; files != NULL && i < MPIOX_CACHE_MAX_FILES; i++)
        lost |= mpiox_cache_error_count(&delegate->cache, i) > 0 && strcmp(files[i].path, path) == 0;
    return lost && stat(path, &status) == 0 &&
           mpiox_storage_staging_pending(path, delegate->index, (uint64_t)status.st_dev, (uint64_t)status.st_ino);
}

/* The same of all that are dead, and have been found to be. */
static bool restore_all(const mpiox_service *service, const char *path)
{
    bool fine = true;

    for (int32_t i = 0; i < service->count; i++) {
        if (!mpiox_process_is_serving(&service->delegates[i]) && mpiox_process_has_died(&service->delegates[i]))
            fine &= restore(service, i, path) && !has_lost(&service->delegates[i], path);
    }
    return fine;
}

/* Ask until all bytes of the file are with living delegates or in the file, or for `patience` seconds. Returns
 * MPIOX_HOLD_*; FAILED: *why is an errno. */
static int ask_all_alive(mpiox_forwarded_hold *hold, const char *path, int how, double patience, int *why)
{
    const double until = mpiox_now() + patience;
    int result;

    for (;;) {
        result = ask_until(hold, path, how, patience, why);
        if (restore_all(hold->service, path) || how == MPIOX_HOLD_TO_DELETE)
            return result;
        if (result == MPIOX_HOLD_HELD)
            release(hold);
        if (mpiox_now() >= until)
            break;
        poll(NULL, 0, LONGEST_PAUSE_MS);
    }
    *why = ENODATA;
    return MPIOX_HOLD_FAILED;
}

mpiox_forwarded_hold *mpiox_forwarded_hold_file(mpiox_service *service, const char *path, int how, double patience,
                                                int *why)
{
    mpiox_forwarded_hold *hold = calloc(1, sizeof *hold + (size_t)service->count * sizeof hold->of[0]);
    char *real = realpath(path, NULL);
    int result = MPIOX_HOLD_NONE;

    *why = 0;
    if (hold && real) {
        hold->service = service;
        result = ask_all_alive(hold, real, how, patience, why);
    }
    *why = result == MPIOX_HOLD_FAILED ? *why : 0;
    const bool is_there = !real || access(real, F_OK) == 0;

    free(real);
    if (result == MPIOX_HOLD_HELD && is_there)
        return hold;
    if (result == MPIOX_HOLD_HELD)
        mpiox_forwarded_hold_end(hold);
    else
        free(hold);
    return NULL;
}

int mpiox_forwarded_hold_flush(const mpiox_forwarded_hold *hold, mpiox_error *error)
{
    mpiox_slot slot = {.op = MPIOX_OP_FLUSH};

    slot.question.flush.end = INT64_MAX;
    slot.question.flush.then = MPIOX_FLUSH_KEEPS;
    if (request_all(hold, &slot, error) != MPIOX_OK)
        return error->code;
    slot.question.flush.then = MPIOX_FLUSH_DROPS;
    return request_all(hold, &slot, error);
}

void mpiox_forwarded_hold_discard(const mpiox_forwarded_hold *hold)
{
    mpiox_error ignored;
    const mpiox_slot slot = {.op = MPIOX_OP_DISCARD};

    request_all(hold, &slot, &ignored);
}

void mpiox_forwarded_hold_end(mpiox_forwarded_hold *hold)
{
    if (hold)
        release(hold);
    free(hold);
}

void mpiox_forwarded_end_hidden(mpiox_forwarded *forwarded, int32_t owner)
{
    const mpiox_file *file = forwarded->file;
    char *path = forwarded->decision.hidden ? realpath(mpiox_file_place(file), NULL) : NULL;
    mpiox_error ignored;
    struct stat status;
    bool renamed;

    const bool pinned = mpiox_storage_pin(file->storage, &ignored) == MPIOX_OK;
    const bool found = (pinned && file->storage->fd >= 0 ? fstat(file->storage->fd, &status)
                        : path                           ? stat(path, &status)
                                                         : -1) == 0;
    if (pinned)
        mpiox_storage_unpin(file->storage);
    if (path && found)
        (void)mpiox_storage_staging_end(path, owner, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &renamed);
    free(path);
}
