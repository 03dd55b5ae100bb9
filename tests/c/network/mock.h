/*
 * mock.h - a delegate for the tests of csrc/iod/network: a cache in memory, one service thread, a file in memory behind
 * it.
 *
 * Pages are filled at the first read; when there are more pages than frames the next frame in turn is emptied. Tests
 * reach in to make it slow, to move ranges, to let fills fail.
 */
#ifndef MOCK_H
#define MOCK_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_cache_page.h"
#include "mpiox_ring.h"

typedef struct mock {
    mpiox_cache cache;
    pthread_t thread;
    int fd;
    uint32_t next;
    _Atomic int64_t bad_page;           /* whose fill fails; -1: none */
    _Atomic int32_t flush_ms;           /* how long a flush barrier takes */
    _Atomic int32_t attached, detached; /* clients that left by DETACH */
    _Atomic int32_t pings, aheads;
    _Atomic bool stop;
} mock;

static inline uint64_t mock_random(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717) >> 16;
}

static inline int64_t mock_pick(uint64_t *state, int64_t low, int64_t high) /* both possible */
{
    return low + (int64_t)(mock_random(state) % (uint64_t)(high - low + 1));
}

static void mock_sleep(int64_t ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void mock_write_back(mock *self, uint32_t frame)
{
    const int64_t start = atomic_load(&self->cache.frames[frame].page) * self->cache.page_bytes;
    int64_t offset = 0, length = 0;
    while (mpiox_dirty_run(&self->cache, frame, offset + length, &offset, &length)) {
        const char *bytes = mpiox_cache_bytes_of(&self->cache, frame) + offset;
        if (pwrite(self->fd, bytes, (size_t)length, (off_t)(start + offset)) != (ssize_t)length)
            abort();
    }
}

/* Bring a page to the file; drop: out of the cache, too. */
static void mock_flush(mock *self, uint32_t frame, bool drop)
{
    if (atomic_load(&self->cache.frames[frame].file) < 0)
        return;
    if (!mpiox_frame_wait_exclusive(&self->cache, frame, 60))
        abort();
    mock_write_back(self, frame);
    mpiox_dirty_clear(&self->cache, frame);
    if (drop)
        mpiox_frame_remove(&self->cache, frame);
    else
        mpiox_frame_end_exclusive(&self->cache, frame);
}

static void mock_fill(mock *self, uint32_t frame)
{
    const mpiox_cache *cache = &self->cache;
    mpiox_frame *at = &cache->frames[frame];
    char *bytes = malloc((size_t)cache->page_bytes);
    if (!mpiox_frame_wait_exclusive(cache, frame, 60) || bytes == NULL)
        abort();
    const ssize_t count = pread(self->fd, bytes, (size_t)cache->page_bytes,
                                (off_t)(atomic_load(&at->page) * cache->page_bytes));
    if (count < 0)
        abort();
    mpiox_dirty_fill(cache, frame, bytes, count);
    free(bytes);
    if (atomic_load(&at->known_end) < count)
        atomic_store(&at->known_end, count);
    atomic_fetch_or(&at->flags, MPIOX_FRAME_FILLED);
    mpiox_frame_end_exclusive(cache, frame);
}

static int mock_page(mock *self, mpiox_slot *slot)
{
    const mpiox_cache *cache = &self->cache;
    const mpiox_file_record *record = &cache->header->files[slot->file];
    const int64_t page = slot->question.page.page, reads = slot->question.page.reads;
    const int64_t range = page / record->unit_pages % record->ranges;
    uint32_t frame = mpiox_frame_find(cache, slot->file, page);
    atomic_fetch_add(&self->aheads, (int32_t)slot->question.page.ahead.count);
    if (atomic_load(&record->owner_of[range]) != cache->header->delegate)
        return MPIOX_PAGE_MOVED;
    if (reads != 0 && page == atomic_load(&self->bad_page))
        return mpiox_error_set(&slot->error, MPIOX_E_IO, 5, page * cache->page_bytes, 1, "mock fill");
    if (frame == MPIOX_CACHE_NO_FRAME) {
        frame = self->next++ % (uint32_t)cache->frame_count;
        mock_flush(self, frame, true);
        mpiox_frame_insert(cache, frame, slot->file, page, reads == 0);
    } else if (reads == 0) {
        atomic_fetch_add(&cache->frames[frame].pins, 1);
    }
    if (reads != 0) {
        mock_fill(self, frame);
        atomic_fetch_add(&cache->frames[frame].pins, 1);
    }
    slot->frame = frame;
    return MPIOX_OK;
}

/* Every path is the one file. */
static int mock_open(mock *self, mpiox_slot *slot)
{
    mpiox_file_record *record = &self->cache.header->files[0];
    if (strcmp(slot->text, "/full") == 0)
        return MPIOX_E_FULL;
    if (atomic_load(&record->openers) == 0) {
        record->unit_pages = (int32_t)slot->question.open.unit_pages;
        record->owners = (int32_t)slot->question.open.owners;
        record->ranges = mpiox_file_ranges(record->owners);
        for (int32_t r = 0; r < record->ranges; r++)
            atomic_store(&record->owner_of[r], (int16_t)(r % record->owners));
    }
    atomic_fetch_add(&record->openers, 1);
    slot->file = 0;
    slot->answer.open.unit_pages = record->unit_pages;
    slot->answer.open.owners = record->owners;
    return MPIOX_OK;
}

static int mock_answer(mock *self, mpiox_slot *slot)
{
    switch (slot->op) {
    case MPIOX_OP_PAGE:
        return mock_page(self, slot);
    case MPIOX_OP_OPEN:
        return mock_open(self, slot);
    case MPIOX_OP_FLUSH:
        mock_sleep(atomic_load(&self->flush_ms));
        for (int32_t i = 0; i < self->cache.frame_count; i++)
            mock_flush(self, (uint32_t)i, slot->question.flush.then == MPIOX_FLUSH_DROPS);
        return MPIOX_OK;
    case MPIOX_OP_CLOSE:
        atomic_fetch_sub(&self->cache.header->files[slot->file].openers, 1);
        return MPIOX_OK;
    case MPIOX_OP_AHEAD_ONLY:
        atomic_fetch_add(&self->aheads, (int32_t)slot->question.ahead_only.count);
        return MPIOX_OK;
    case MPIOX_OP_PING:
        atomic_fetch_add(&self->pings, 1);
        return MPIOX_OK;
    case MPIOX_OP_DETACH:
        atomic_fetch_add(&self->detached, 1);
        return MPIOX_OK;
    default:
        return MPIOX_OK;
    }
}

static void *mock_run(void *context)
{
    mock *self = context;
    const mpiox_cache *cache = &self->cache;
    const int life = mpiox_cache_live(cache);
    mpiox_futex_set(&cache->header->state, MPIOX_CACHE_SERVING);
    for (;;) {
        const uint32_t seen = mpiox_futex_get(&cache->ring->bell);
        mpiox_slot *slot;
        uint32_t frame;
        if (mpiox_ring_next(cache, &slot, &frame)) {
            if (slot != NULL)
                mpiox_ring_answer(slot, mock_answer(self, slot));
            continue;
        }
        if (atomic_load(&self->stop))
            break;
        mpiox_ring_wait(cache, seen, 0.02);
    }
    mpiox_futex_set(&cache->header->state, MPIOX_CACHE_ENDED);
    mpiox_cache_end_life(cache, life);
    return NULL;
}

static void mock_start(mock *self, int64_t page_bytes, int32_t frames, int delegate, int delegates)
{
    mpiox_cache_geometry geometry = {.page_bytes = page_bytes, .slots = 16};
    memset(self, 0, sizeof *self);
    atomic_store(&self->bad_page, -1);
    for (geometry.cap_bytes = 1 << 19;; geometry.cap_bytes += page_bytes) {
        geometry.page_bytes = page_bytes;
        if (mpiox_cache_plan(&geometry) == 0 && geometry.page_bytes == page_bytes && geometry.frames >= frames)
            break;
    }
    void *base = mmap(NULL, (size_t)geometry.cap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    self->fd = memfd_create("file", MFD_CLOEXEC);
    if (base == MAP_FAILED || self->fd < 0 ||
        mpiox_cache_format(base, &geometry, delegate, delegates, &self->cache) != 0 ||
        pthread_create(&self->thread, NULL, mock_run, self) != 0)
        abort();
    while (mpiox_futex_get(&self->cache.header->state) != MPIOX_CACHE_SERVING)
        mock_sleep(1);
}

static inline void mock_stop(mock *self)
{
    atomic_store(&self->stop, true);
    pthread_join(self->thread, NULL);
    munmap(self->cache.header, (size_t)self->cache.header->geometry.cap_bytes);
    close(self->fd);
}

#endif
