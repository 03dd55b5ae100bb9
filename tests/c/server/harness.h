/*
 * harness.h - a delegate in a thread of the test, clients in others or in processes, and accesses byte range by byte
 * range.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_cache_page.h"
#include "mpiox_ring.h"
#include "mpiox_server.h"

enum { HARNESS_LOST = 8 };

#if defined(__SANITIZE_THREAD__)
/* The delegate writes from a frame while a client may be copying into it. It finds out afterwards, and writes again. */
__attribute__((unused)) const char *__tsan_default_suppressions(void)
{
    return "race:mpiox_storage_posix_call\nrace:move_through\n";
}
#endif

typedef struct running {
    mpiox_server *server;
    mpiox_segment_address address;
    pthread_t thread;
    int result, lost_count;
    mpiox_server_lost lost[HARNESS_LOST];
} running;

__attribute__((unused)) static void *run_server(void *context)
{
    running *self = context;
    const mpiox_server_lost *lost;
    int rest;
    self->result = mpiox_server_run(self->server, &lost, &self->lost_count, &rest);
    self->lost_count += rest;
    memcpy(self->lost, lost, sizeof self->lost);
    return NULL;
}

/* A cap that holds exactly so many pages. */
__attribute__((unused)) static mpiox_server_options options_for(int64_t page_bytes, int frames)
{
    mpiox_server_options options = {
        .geometry = {.page_bytes = page_bytes, .slots = 16},
        .delegates = 1,
        .io_threads = 1,
        .patience_s = 20,
    };
    mpiox_cache_geometry geometry = options.geometry;
    do { /* the overhead depends on the number of frames */
        options.geometry.cap_bytes += page_bytes < 16384 ? 4096 : page_bytes / 4;
        geometry = options.geometry;
    } while (mpiox_cache_plan(&geometry) != MPIOX_OK || geometry.page_bytes != page_bytes || geometry.frames < frames);
    return options;
}

__attribute__((unused)) static const mpiox_cache *create_server(running *self, const mpiox_server_options *options)
{
    mpiox_error error;
    memset(self, 0, sizeof *self);
    const int code = mpiox_server_create(options, &self->server, &self->address, &error);
    if (code != MPIOX_OK) {
        fprintf(stderr, "cannot create a delegate: %d\n", code);
        exit(1);
    }
    return mpiox_server_cache(self->server);
}

__attribute__((unused)) static const mpiox_cache *start_server(running *self, const mpiox_server_options *options)
{
    const mpiox_cache *cache = create_server(self, options);
    pthread_create(&self->thread, NULL, run_server, self);
    return cache;
}

/* Wait for the delegate's end, which its last client or mpiox_server_stop() brings about; returns its result. */
__attribute__((unused)) static int end_server(running *self)
{
    pthread_join(self->thread, NULL);
    CHECK_EQUAL(mpiox_futex_get(&mpiox_server_cache(self->server)->header->state), MPIOX_CACHE_ENDED);
    mpiox_server_free(self->server);
    return self->result;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

__attribute__((unused)) static const mpiox_op_question nothing;

__attribute__((unused)) static int request(const mpiox_cache *cache, int op, int32_t file, mpiox_op_question question,
                                           mpiox_error *error)
{
    mpiox_slot *slot = mpiox_ring_take(cache);
    if (slot == NULL)
        return MPIOX_E_UNSUPPORTED;
    slot->op = op;
    slot->file = file;
    slot->question = question;
    const int code = mpiox_ring_call(cache, slot, NULL);
    if (error != NULL)
        *error = slot->error;
    mpiox_ring_give_back(slot);
    return code;
}

/* Returns the index of the record, or an error. */
__attribute__((unused)) static int open_shared(const mpiox_cache *cache, const char *path, int flags, int unit_pages,
                                               int owners)
{
    mpiox_slot *slot = mpiox_ring_take(cache);
    if (slot == NULL)
        return MPIOX_E_UNSUPPORTED;
    slot->op = MPIOX_OP_OPEN;
    slot->question.open = (struct mpiox_op_open){
        .flags = flags, .unit_pages = unit_pages, .owners = owners, .servers = 3};
    snprintf(slot->text, sizeof slot->text, "%s", path);
    const int code = mpiox_ring_call(cache, slot, NULL), file = slot->file;
    mpiox_ring_give_back(slot);
    return code == MPIOX_OK ? file : code;
}

__attribute__((unused)) static int flush_file(const mpiox_cache *cache, int file, bool stable, bool drop)
{
    return request(
        cache, MPIOX_OP_FLUSH, file,
        (mpiox_op_question){
            .flush = {.end = INT64_MAX, .stable = stable, .then = drop ? MPIOX_FLUSH_DROPS : MPIOX_FLUSH_CACHES}},
        NULL);
}

__attribute__((unused)) static int close_shared(const mpiox_cache *cache, int file)
{
    return request(cache, MPIOX_OP_CLOSE, file, nothing, NULL);
}

__attribute__((unused)) static void leave(const mpiox_cache *cache, int client)
{
    (void)request(cache, MPIOX_OP_DETACH, -1, (mpiox_op_question){.detach.client = client}, NULL);
    mpiox_ring_leave(cache, client);
}

__attribute__((unused)) static int64_t counter(const atomic_int_least64_t *value)
{
    return atomic_load((atomic_int_least64_t *)value);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

typedef struct access_how {
    const int64_t *ahead;
    int ahead_count;
    int client; /* id + 1 */
    mpiox_error error;
} access_how;

/* Write or read [offset, offset + length) of a file. Reads behind the end of the file give zeros. */
__attribute__((unused)) static int access_bytes(const mpiox_cache *cache, int file, bool write, char *bytes,
                                                int64_t offset, int64_t length, access_how *how)
{
    for (int64_t done = 0, part; done < length; done += part) {
        const int64_t at = offset + done, rest = cache->page_bytes - at % cache->page_bytes;
        int64_t known;
        mpiox_error error;
        part = length - done < rest ? length - done : rest;
        const mpiox_page_access access = {
            .file = file,
            .client = how != NULL ? how->client : 0,
            .page = at / cache->page_bytes,
            .write = write,
            .origin = at,
            .length = part,
            .memory = {.base = bytes + done},
            .ahead = how != NULL ? how->ahead : NULL,
            .ahead_count = how != NULL ? how->ahead_count : 0,
        };
        int code = mpiox_cache_access_page(cache, &access, false, &known, &error);
        if (code == MPIOX_PAGE_SHORT)
            code = mpiox_cache_access_page(cache, &access, true, &known, &error);
        if (code != MPIOX_OK) {
            if (how != NULL)
                how->error = error;
            return code;
        }
    }
    return MPIOX_OK;
}

__attribute__((unused)) static int64_t read_whole(const char *path, char *bytes, int64_t length)
{
    const int fd = open(path, O_RDONLY);
    const ssize_t count = fd < 0 ? -1 : pread(fd, bytes, (size_t)length, 0);
    close(fd);
    return count;
}

__attribute__((unused)) static void make_file(const char *path, const char *bytes, int64_t length)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || (length > 0 && write(fd, bytes, (size_t)length) != length)) {
        perror(path);
        exit(1);
    }
    close(fd);
}

__attribute__((unused)) static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif
