/*
 * mpiox_dirty.c - which bytes of a frame are dirty: one bit per byte.
 *
 * Problem.    Many clients deposit small pieces in one page at once. Exactly the deposited bytes may be written to the
 *             file, and somebody must know when all of the page is there.
 * Algorithm.  A bit per byte in 64-bit words. The bits of a word that several small blocks set are gathered and set by
 *             one atomic operation, whose old value says how many of them are new.
 * Guarantees. The counts of all callers add up to the number of dirty bytes, whatever the order. Bytes that were copied
 *             before a mark are seen by who sees the mark.
 */
#include "mpiox_cache.h"

#include <string.h>

static const uint64_t all_ones = ~UINT64_C(0);

static _Atomic uint64_t *words_of(const mpiox_cache *cache, uint32_t frame)
{
    return cache->dirty + (int64_t)frame * (cache->page_bytes / 64);
}

/* Bits first .. first + count - 1 of a word; first + count <= 64, count >= 1. */
static inline uint64_t bits(int64_t first, int64_t count)
{
    return (all_ones >> (64 - count)) << first;
}

static inline int64_t set_bits(_Atomic uint64_t *word, uint64_t mask)
{
    if ((atomic_load_explicit(word, memory_order_relaxed) & mask) == mask)
        return 0; /* bytes that are overwritten */
    const uint64_t old = atomic_fetch_or_explicit(word, mask, memory_order_acq_rel);
    return __builtin_popcountll(mask & ~old);
}

int64_t mpiox_dirty_mark(const mpiox_cache *cache, uint32_t frame, int64_t offset, int64_t length, int64_t stride,
                         int64_t count)
{
    _Atomic uint64_t *words = words_of(cache, frame);
    int64_t fresh = 0, word = offset / 64;
    uint64_t mask = 0; /* gathered for `word`, not set yet */
    if (length <= 0)
        return 0;
    if (stride == length) {
        length *= count;
        count = 1;
    }
    for (; count > 0; count--, offset += stride) {
        const int64_t first = offset / 64, last = (offset + length - 1) / 64;
        if (first != word) {
            fresh += set_bits(&words[word], mask);
            word = first;
            mask = 0;
        }
        if (first == last) {
            mask |= bits(offset % 64, length);
            continue;
        }
        fresh += set_bits(&words[first], mask | bits(offset % 64, 64 - offset % 64));
        for (word = first + 1; word < last; word++)
            fresh += set_bits(&words[word], all_ones);
        mask = bits(0, offset + length - 64 * last);
    }
    return fresh + set_bits(&words[word], mask);
}

bool mpiox_dirty_covers(const mpiox_cache *cache, uint32_t frame, int64_t offset, int64_t length, int64_t stride,
                        int64_t count)
{
    _Atomic uint64_t *words = words_of(cache, frame);
    for (; count > 0 && length > 0; count--, offset += stride) {
        for (int64_t at = offset, end = offset + length; at < end;) {
            const int64_t here = end - at < 64 - at % 64 ? end - at : 64 - at % 64;
            const uint64_t mask = bits(at % 64, here);
            if ((atomic_load_explicit(&words[at / 64], memory_order_acquire) & mask) != mask)
                return false;
            at += here;
        }
    }
    return true;
}

bool mpiox_dirty_is_full(const mpiox_cache *cache, uint32_t frame)
{
    return mpiox_dirty_covers(cache, frame, 0, cache->page_bytes, 0, 1);
}

/* The first bit at or after `from` that is `set`; page_bytes: none. */
static int64_t next_bit(const mpiox_cache *cache, uint32_t frame, int64_t from, bool set)
{
    _Atomic uint64_t *words = words_of(cache, frame);
    const uint64_t turned = set ? 0 : all_ones;
    if (from >= cache->page_bytes)
        return cache->page_bytes;
    uint64_t word = (atomic_load_explicit(&words[from / 64], memory_order_acquire) ^ turned) & all_ones << from % 64;
    for (int64_t i = from / 64;;) {
        if (word != 0)
            return 64 * i + __builtin_ctzll(word);
        if (++i >= cache->page_bytes / 64)
            return cache->page_bytes;
        word = atomic_load_explicit(&words[i], memory_order_acquire) ^ turned;
    }
}

bool mpiox_dirty_run(const mpiox_cache *cache, uint32_t frame, int64_t from, int64_t *offset, int64_t *length)
{
    *offset = next_bit(cache, frame, from, true);
    if (*offset >= cache->page_bytes)
        return false;
    *length = next_bit(cache, frame, *offset, false) - *offset;
    return true;
}

void mpiox_dirty_clear(const mpiox_cache *cache, uint32_t frame)
{
    _Atomic uint64_t *words = words_of(cache, frame);
    for (int64_t i = 0; i < cache->page_bytes / 64; i++)
        atomic_store_explicit(&words[i], 0, memory_order_relaxed);
    if (atomic_exchange_explicit(&cache->frames[frame].dirty, 0, memory_order_acq_rel) > 0)
        atomic_fetch_sub_explicit(&cache->header->dirty_frames, 1, memory_order_relaxed);
}

void mpiox_dirty_fill(const mpiox_cache *cache, uint32_t frame, const void *from, int64_t length)
{
    char *page = mpiox_cache_bytes_of(cache, frame);
    const char *source = from;
    for (int64_t at = next_bit(cache, frame, 0, false); at < cache->page_bytes;) {
        const int64_t end = next_bit(cache, frame, at, true);
        const int64_t copied = length >= end ? end - at : length > at ? length - at : 0;
        if (copied > 0)
            memcpy(page + at, source + at, (size_t)copied);
        memset(page + at + copied, 0, (size_t)(end - at - copied));
        at = next_bit(cache, frame, end, false);
    }
}
