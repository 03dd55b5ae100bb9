/*
 * mock_delegate.h - a delegate of one thread, for the tests of csrc/iod/cache: the pages of one file are flushed,
 * filled and evicted one by one, at once, without any plan.
 */
#ifndef MOCK_DELEGATE_H
#define MOCK_DELEGATE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpiox_cache_page.h"
#include "mpiox_ring.h"

typedef struct mock {
    mpiox_cache cache;
    int fd;
    uint32_t next; /* frame to be evicted next */
    _Atomic bool stop;
} mock;

__attribute__((unused)) static uint64_t mock_random(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717) >> 16;
}

/* A cache of so many frames in memory that forked processes share. */
static void mock_make(mock *self, int64_t page_bytes, int32_t frames, int32_t slots)
{
    mpiox_cache_geometry geometry = {.page_bytes = page_bytes, .cap_bytes = INT64_C(1) << 40, .slots = slots};
    memset(self, 0, sizeof *self);
    for (geometry.cap_bytes = 1 << 19;
         mpiox_cache_plan(&geometry) != 0 || geometry.page_bytes < page_bytes || geometry.frames < frames;
         geometry.cap_bytes += page_bytes / 2)
        geometry.page_bytes = page_bytes;
    void *base = mmap(NULL, (size_t)geometry.cap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mpiox_cache_format(base, &geometry, 0, 1, &self->cache) != 0)
        abort();
    self->fd = -1;
}

static void mock_free(mock *self)
{
    munmap(self->cache.header, (size_t)self->cache.header->geometry.cap_bytes);
}

static void mock_write_runs(mock *self, uint32_t frame)
{
    const int64_t start = atomic_load(&self->cache.frames[frame].page) * self->cache.page_bytes;
    int64_t offset = 0, length = 0;
    while (mpiox_dirty_run(&self->cache, frame, offset + length, &offset, &length)) {
        const char *bytes = mpiox_cache_bytes_of(&self->cache, frame) + offset;
        if (pwrite(self->fd, bytes, (size_t)length, (off_t)(start + offset)) != (ssize_t)length)
            abort();
    }
}

static void mock_exclusive(mock *self, uint32_t frame)
{
    if (!mpiox_frame_wait_exclusive(&self->cache, frame, 60))
        abort();
}

/* Write while clients may go on; forget the marks only if none of them wrote. */
static void mock_flush(mock *self, uint32_t frame)
{
    mpiox_frame *at = &self->cache.frames[frame];
    const uint32_t writes = atomic_load(&at->writes);
    if (atomic_load(&at->file) < 0)
        return;
#ifndef __SANITIZE_THREAD__ /* it calls pwrite() of bytes that are overwritten meanwhile a race, which it is */
    mock_write_runs(self, frame);
    mock_exclusive(self, frame);
#else
    mock_exclusive(self, frame);
    mock_write_runs(self, frame);
#endif
    if (atomic_load(&at->writes) == writes)
        mpiox_dirty_clear(&self->cache, frame);
    mpiox_frame_end_exclusive(&self->cache, frame);
}

static void mock_evict(mock *self, uint32_t frame)
{
    mock_flush(self, frame);
    mock_exclusive(self, frame);
    if (atomic_load(&self->cache.frames[frame].file) < 0)
        return;
    mock_write_runs(self, frame); /* what was written since */
    mpiox_dirty_clear(&self->cache, frame);
    mpiox_frame_remove(&self->cache, frame);
}

static void mock_fill(mock *self, uint32_t frame)
{
    const mpiox_cache *cache = &self->cache;
    mpiox_frame *at = &cache->frames[frame];
    char *bytes = malloc((size_t)cache->page_bytes);
    mock_exclusive(self, frame);
    const ssize_t count = bytes ? pread(self->fd, bytes, (size_t)cache->page_bytes,
                                        (off_t)(atomic_load(&at->page) * cache->page_bytes))
                                : -1;
    if (count < 0)
        abort();
    mpiox_dirty_fill(cache, frame, bytes, count);
    free(bytes);
    if (atomic_load(&at->known_end) < count)
        atomic_store(&at->known_end, count);
    atomic_fetch_or(&at->flags, MPIOX_FRAME_FILLED);
    mpiox_frame_end_exclusive(cache, frame);
}

static void mock_page(mock *self, mpiox_slot *slot)
{
    const mpiox_cache *cache = &self->cache;
    uint32_t frame = mpiox_frame_find(cache, slot->file, slot->question.page.page);
    if (frame == MPIOX_CACHE_NO_FRAME) {
        frame = self->next++ % (uint32_t)cache->frame_count;
        mock_evict(self, frame);
        mpiox_frame_insert(cache, frame, slot->file, slot->question.page.page, slot->question.page.reads == 0);
    } else if (slot->question.page.reads == 0) {
        atomic_fetch_add(&cache->frames[frame].pins, 1);
    }
    if (slot->question.page.reads != 0) {
        mock_fill(self, frame);
        atomic_fetch_add(&cache->frames[frame].pins, 1);
    }
    slot->frame = frame;
    mpiox_ring_answer(slot, 0);
}

static void mock_serve(mock *self, mpiox_slot *slot)
{
    if (slot->op == MPIOX_OP_PAGE) {
        mock_page(self, slot);
        return;
    }
    if (slot->op == MPIOX_OP_FLUSH) {
        for (int32_t i = 0; i < self->cache.frame_count; i++)
            mock_flush(self, (uint32_t)i);
    }
    slot->answer.range.version = 2 * slot->question.range + 1;
    mpiox_ring_answer(slot, 0);
}

/* The service thread; returns when `stop` is set. */
__attribute__((unused)) static void *mock_run(void *context)
{
    mock *self = context;
    const mpiox_cache *cache = &self->cache;
    const int life = mpiox_cache_live(cache);
    mpiox_futex_set(&cache->header->state, MPIOX_CACHE_SERVING);
    for (;;) {
        const uint32_t seen = mpiox_futex_get(&cache->ring->bell);
        mpiox_slot *slot;
        uint32_t frame;
        if (!mpiox_ring_next(cache, &slot, &frame)) {
            if (atomic_load(&self->stop))
                break;
            mpiox_ring_wait(cache, seen, 0.02);
        } else if (slot != NULL) {
            mock_serve(self, slot);
        } else {
            mock_flush(self, frame);
        }
    }
    mpiox_futex_set(&cache->header->state, MPIOX_CACHE_ENDED);
    mpiox_cache_end_life(cache, life);
    return NULL;
}

#endif
