/*
 * mpiox_dirty.c - the dirty bytes of a frame.
 *
 * Problem.    Many clients deposit pieces of any size in one page at once. Exactly the deposited bytes may be written
 *             to the file, and the last client must know that the page is complete. Marking must cost little beside
 *             copying, for pieces of 8 bytes and for whole pages.
 * Algorithm.  One bit per byte in 64-bit words, and one word of state per block of 4096 bytes. One atomic operation
 *             sets the bits of a word for several small pieces; the old value shows how many bits are new. The caller
 *             adds these to the block's count when it leaves the block. A piece that covers a whole block sets the flag
 *             FULL instead, and the block's bits mean nothing any more: then the bytes that were not counted before are
 *             new. A client that adds to the count later sees the flag, and has marked nothing new. TOUCHED is set
 *             before the first bit of a block, so that blocks without it need no check.
 * Guarantees. The results of all callers add up to the number of dirty bytes, whatever the order. Bytes that were
 *             copied before a mark are visible to a reader of the mark. A caller that dies in between leaves a count
 *             that is too low, never a bit that dirty_clear() overlooks.
 */
#include "mpiox_cache.h"

#include <assert.h>
#include <string.h>

enum { BLOCK = 4096, BLOCK_WORDS = BLOCK / 64 };

static const uint32_t count_mask = (UINT32_C(1) << 30) - 1, touched_flag = UINT32_C(1) << 30,
                      full_flag = UINT32_C(1) << 31;
static const uint64_t all_ones = ~UINT64_C(0);

static inline _Atomic uint64_t *words_of(const mpiox_cache *cache, uint32_t frame)
{
    return cache->dirty + (int64_t)frame * (cache->page_bytes / 64);
}

static inline _Atomic uint32_t *blocks_of(const mpiox_cache *cache, uint32_t frame)
{
    return cache->blocks + (int64_t)frame * (cache->page_bytes / BLOCK);
}

static inline bool is_full(uint32_t block)
{
    return block & full_flag || (block & count_mask) == BLOCK;
}

/* Bits first .. first + count - 1 of a word; first + count <= 64, count >= 1. */
static inline uint64_t bits(int64_t first, int64_t count)
{
    return (all_ones >> (64 - count)) << first;
}

/* ---- marking ----------------------------------------------------------------------------------------------------- */

typedef struct marker {
    _Atomic uint64_t *words;
    _Atomic uint32_t *blocks;
    int64_t block;      /* where the caller is; -1: nowhere yet */
    bool full;          /* that block is full: there is nothing to mark */
    uint32_t block_new; /* bits set in it that are not in its count yet */
    int64_t word;       /* index of the word that bits are gathered for */
    uint64_t mask;      /* those bits, not set yet */
    uint32_t gathered;  /* their number */
    int64_t fresh;      /* result */
} marker;

static void leave_block(marker *self)
{
    if (self->block_new == 0)
        return;
    const uint32_t old = atomic_fetch_add_explicit(&self->blocks[self->block], self->block_new, memory_order_acq_rel);
    if (!(old & full_flag))
        self->fresh += self->block_new;
    self->block_new = 0;
}

static void enter_block(marker *self, int64_t block)
{
    leave_block(self);
    const uint32_t state = atomic_load_explicit(&self->blocks[block], memory_order_acquire);
    self->block = block;
    self->full = is_full(state);
    if (!self->full && !(state & touched_flag))
        atomic_fetch_or_explicit(&self->blocks[block], touched_flag, memory_order_acq_rel);
}

/* Set `mask`, which has `number` bits, in the word where the caller is. Without the number the bits would have to be
 * counted for each word, which takes longer than the rest where the processor's instruction for it may not be used. */
static inline void set_bits(marker *self, uint64_t mask, uint32_t number)
{
    if (self->word / BLOCK_WORDS != self->block)
        enter_block(self, self->word / BLOCK_WORDS);
    _Atomic uint64_t *word = &self->words[self->word];
    if (self->full || (atomic_load_explicit(word, memory_order_relaxed) & mask) == mask)
        return; /* bytes that are overwritten */
    const uint64_t old = atomic_fetch_or_explicit(word, mask, memory_order_acq_rel) & mask;
    self->block_new += old == 0 ? number : (uint32_t)__builtin_popcountll(mask & ~old);
}

/* Set the collected bits. */
static inline void set_gathered(marker *self)
{
    const uint64_t mask = self->mask;
    if (mask != 0)
        set_bits(self, mask, self->gathered);
    self->mask = 0;
    self->gathered = 0;
}

static inline void gather(marker *self, int64_t at, int64_t count)
{
    if (at / 64 != self->word) {
        set_gathered(self);
        self->word = at / 64;
    }
    const uint64_t more = bits(at % 64, count);
    self->gathered += (self->mask & more) == 0 ? (uint32_t)count : (uint32_t)__builtin_popcountll(more & ~self->mask);
    self->mask |= more;
}

static void fill_block(marker *self, int64_t block)
{
    _Atomic uint32_t *state = &self->blocks[block];
    if (atomic_load_explicit(state, memory_order_acquire) & full_flag)
        return;
    const uint32_t old = atomic_fetch_or_explicit(state, full_flag, memory_order_acq_rel);
    if (!(old & full_flag))
        self->fresh += BLOCK - (old & count_mask);
}

/* A piece that lies in more than one word. */
static void mark_long(marker *self, int64_t at, int64_t end)
{
    while (at < end) {
        if (at % BLOCK == 0 && end - at >= BLOCK) {
            set_gathered(self);
            leave_block(self);
            self->block = -1; /* its flag may be set now */
            fill_block(self, at / BLOCK);
            at += BLOCK;
            continue;
        }
        const int64_t here = end - at < 64 - at % 64 ? end - at : 64 - at % 64;
        gather(self, at, here);
        at += here;
    }
}

/* Pieces that lie alike in every word, the first at the beginning of their place in a word: all words have one mask.
 * Returns how many pieces were marked, in whole words. */
static int64_t mark_words(marker *self, int64_t offset, int64_t length, int64_t stride, int64_t count)
{
    const int64_t each = 64 / stride, words = count / each;
    uint64_t mask = 0;
    for (int64_t i = 0; i < each; i++)
        mask |= bits(offset % 64 + i * stride, length);
    set_gathered(self);
    for (int64_t i = 0; i < words; i++) {
        self->word = offset / 64 + i;
        set_bits(self, mask, (uint32_t)(each * length));
    }
    return words * each;
}

int64_t mpiox_dirty_mark(const mpiox_cache *cache, uint32_t frame, int64_t offset, int64_t length, int64_t stride,
                         int64_t count)
{
    marker self = {.words = words_of(cache, frame), .blocks = blocks_of(cache, frame), .block = -1};
    if (length <= 0 || count <= 0)
        return 0;
    assert(offset >= 0 && offset + (count - 1) * stride + length <= cache->page_bytes);
    if (stride == length) { /* one piece */
        length *= count;
        count = 1;
    }
    self.word = offset / 64;
    const bool alike = stride > 0 && stride <= 64 && 64 % stride == 0 && offset % stride + length <= stride;
    while (count > 0) {
        int64_t done = 1;
        if (alike && offset % 64 < stride && count >= 64 / stride)
            done = mark_words(&self, offset, length, stride, count);
        else if (offset % 64 + length > 64)
            mark_long(&self, offset, offset + length);
        else
            gather(&self, offset, length);
        count -= done;
        offset += done * stride;
    }
    set_gathered(&self);
    leave_block(&self);
    return self.fresh;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool covers_piece(const mpiox_cache *cache, uint32_t frame, int64_t at, int64_t end)
{
    _Atomic uint64_t *words = words_of(cache, frame);
    _Atomic uint32_t *blocks = blocks_of(cache, frame);
    while (at < end) {
        const int64_t block_end = (at / BLOCK + 1) * BLOCK, stop = end < block_end ? end : block_end;
        if (is_full(atomic_load_explicit(&blocks[at / BLOCK], memory_order_acquire)))
            at = stop;
        while (at < stop) {
            const int64_t here = stop - at < 64 - at % 64 ? stop - at : 64 - at % 64;
            const uint64_t mask = bits(at % 64, here);
            if ((atomic_load_explicit(&words[at / 64], memory_order_acquire) & mask) != mask)
                return false;
            at += here;
        }
    }
    return true;
}

bool mpiox_dirty_covers(const mpiox_cache *cache, uint32_t frame, int64_t offset, int64_t length, int64_t stride,
                        int64_t count)
{
    if (stride == length) {
        length *= count;
        count = 1;
    }
    for (; count > 0 && length > 0; count--, offset += stride) {
        if (!covers_piece(cache, frame, offset, offset + length))
            return false;
    }
    return true;
}

bool mpiox_dirty_is_full(const mpiox_cache *cache, uint32_t frame)
{
    return covers_piece(cache, frame, 0, cache->page_bytes);
}

/* The first byte at or after `from`, and before the end of its block, that is dirty (or, not dirty); the block's end if
 * there is none. */
static int64_t next_in_block(const mpiox_cache *cache, uint32_t frame, int64_t from, bool dirty)
{
    const int64_t end = (from / BLOCK + 1) * BLOCK;
    const uint32_t state = atomic_load_explicit(&blocks_of(cache, frame)[from / BLOCK], memory_order_acquire);
    if (is_full(state))
        return dirty ? from : end;
    if (state == 0)
        return dirty ? end : from;
    _Atomic uint64_t *words = words_of(cache, frame);
    const uint64_t turned = dirty ? 0 : all_ones;
    uint64_t mask = all_ones << from % 64;
    for (int64_t i = from / 64; i < end / 64; i++, mask = all_ones) {
        const uint64_t word = (atomic_load_explicit(&words[i], memory_order_acquire) ^ turned) & mask;
        if (word != 0)
            return 64 * i + __builtin_ctzll(word);
    }
    return end;
}

/* As above, in the page; page_bytes: there is none. */
static int64_t next_byte(const mpiox_cache *cache, uint32_t frame, int64_t from, bool dirty)
{
    while (from < cache->page_bytes) {
        const int64_t end = (from / BLOCK + 1) * BLOCK, found = next_in_block(cache, frame, from, dirty);
        if (found < end)
            return found;
        from = end;
    }
    return cache->page_bytes;
}

bool mpiox_dirty_run(const mpiox_cache *cache, uint32_t frame, int64_t from, int64_t *offset, int64_t *length)
{
    assert(from >= 0);
    *offset = next_byte(cache, frame, from, true);
    if (*offset >= cache->page_bytes)
        return false;
    *length = next_byte(cache, frame, *offset, false) - *offset;
    return true;
}

/* ---- under exclusive use ----------------------------------------------------------------------------------------- */

void mpiox_dirty_clear(const mpiox_cache *cache, uint32_t frame)
{
    _Atomic uint64_t *words = words_of(cache, frame);
    _Atomic uint32_t *blocks = blocks_of(cache, frame);
    for (int64_t block = 0; block < cache->page_bytes / BLOCK; block++) {
        if (atomic_load_explicit(&blocks[block], memory_order_relaxed) & touched_flag) {
            for (int64_t i = block * BLOCK_WORDS; i < (block + 1) * BLOCK_WORDS; i++)
                atomic_store_explicit(&words[i], 0, memory_order_relaxed);
        }
        atomic_store_explicit(&blocks[block], 0,
                              memory_order_release); /* last: a process that dies here leaves it touched */
    }
    if (atomic_exchange_explicit(&cache->frames[frame].dirty, 0, memory_order_acq_rel) > 0)
        atomic_fetch_sub_explicit(&cache->header->dirty_frames, 1, memory_order_relaxed);
}

void mpiox_dirty_fill(const mpiox_cache *cache, uint32_t frame, const void *from, int64_t length)
{
    char *page = mpiox_cache_bytes_of(cache, frame);
    const char *source = from;
    assert(mpiox_frame_is_exclusive(cache, frame) && length <= cache->page_bytes);
    for (int64_t at = next_byte(cache, frame, 0, false); at < cache->page_bytes;) {
        const int64_t end = next_byte(cache, frame, at, true);
        const int64_t copied = length >= end ? end - at : length > at ? length - at : 0;
        if (copied > 0)
            memcpy(page + at, source + at, (size_t)copied);
        memset(page + at + copied, 0, (size_t)(end - at - copied));
        at = next_byte(cache, frame, end, false);
    }
}
