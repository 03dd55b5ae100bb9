/*
 * mpiox_frame.c - the map from page to frame, pins, and exclusive use.
 *
 * Problem.    Clients look pages up and pin frames while the delegate puts pages in and takes them out, without a lock
 *             that a client could die with.
 * Algorithm.  A hash table with chains, changed by the delegate alone. A client follows a chain without any lock. The
 *             frame that the client finds is only a candidate: the client first raises the frame's pin count and then
 *             compares the key, which cannot change while a client has the frame pinned. The client knows that the page
 *             is *not* there only if the table did not change during the walk, which a counter shows (a sequence lock).
 *             A chain that is being changed may lead anywhere: a walk has at most as many steps as there are frames.
 *             Exclusive use is one bit of the pin count: a client that raises the count and finds the bit set unpins
 *             again.
 * Guarantees. A hit is pinned, has the page, and its range belonged to this delegate while it was pinned. A miss is
 *             exact. The death of a delegate in the middle of a change is detected: no client hangs.
 * Source.     Sequence lock with release stores and acquire loads of the data: H.-J. Boehm, "Can seqlocks get along
 *             with programming language memory models?", MSPC 2012.
 */
#include "mpiox_cache.h"

#include <assert.h>

#include "mpiox_cache_waiting.h"

static const double most_patience_s = 0.5; /* until a caller may check whether the range's mover still lives */

static _Atomic uint32_t *bucket_of(const mpiox_cache *cache, int32_t file, int64_t page)
{
    const uint64_t key = ((uint64_t)page << 6 ^ (uint64_t)(uint32_t)file) * UINT64_C(0x9e3779b97f4a7c15);
    return &cache->buckets[(uint32_t)(key >> 32) & (cache->bucket_count - 1)];
}

uint32_t mpiox_frame_find(const mpiox_cache *cache, int32_t file, int64_t page)
{
    uint32_t frame = atomic_load_explicit(bucket_of(cache, file, page), memory_order_acquire);
    for (int32_t steps = cache->frame_count; steps > 0 && frame < (uint32_t)cache->frame_count; steps--) {
        mpiox_frame *at = &cache->frames[frame];
        if (atomic_load_explicit(&at->page, memory_order_acquire) == page &&
            atomic_load_explicit(&at->file, memory_order_acquire) == file)
            return frame;
        frame = atomic_load_explicit(&at->next, memory_order_acquire);
    }
    return MPIOX_CACHE_NO_FRAME;
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

/* HIT: the page's range belongs to this delegate; MOVED: to another; MISS: it is moving. */
static int look_at_owner(const mpiox_cache *cache, int32_t file, int64_t page)
{
    mpiox_file_record *record = &cache->header->files[file];
    if (record->ranges <= 0 || record->unit_pages <= 0)
        return MPIOX_FRAME_HIT;
    const uint32_t unit_pages = (uint32_t)record->unit_pages, ranges = (uint32_t)record->ranges;
    const uint64_t place = (uint64_t)page; /* divisions of 32 bits take a third of the time */
    const uint64_t range = place <= UINT32_MAX ? (uint32_t)place / unit_pages % ranges : place / unit_pages % ranges;
    const int owner = atomic_load_explicit(&record->owner_of[range], memory_order_acquire);
    if (owner == cache->header->delegate)
        return MPIOX_FRAME_HIT;
    return owner == MPIOX_RANGE_MOVING ? MPIOX_FRAME_MISS : MPIOX_FRAME_MOVED;
}

/* Since `changes` was read the table did not change: the page was in it, or missing, all the time. */
static bool is_unchanged(const mpiox_cache *cache, uint32_t changes)
{
    return changes % 2 == 0 && changes == atomic_load_explicit(&cache->header->table_changes, memory_order_acquire);
}

/* One try. False: the delegate is changing something; wait a little. True: *result is final. *moving: the page's range
 * is changing hands. */
static bool try_pin(const mpiox_cache *cache, int32_t file, int64_t page, uint32_t *frame, int *result, bool *moving)
{
    const uint32_t changes = atomic_load_explicit(&cache->header->table_changes, memory_order_acquire);
    const uint32_t found = mpiox_frame_find(cache, file, page);
    int owner;
    *result = MPIOX_FRAME_MISS;
    *moving = false;
    if (found == MPIOX_CACHE_NO_FRAME) {
        owner = look_at_owner(cache, file, page); /* before the table is checked again: both at one moment */
        *moving = owner == MPIOX_FRAME_MISS;
        if (owner == MPIOX_FRAME_MOVED)
            *result = MPIOX_FRAME_MOVED;
        return owner == MPIOX_FRAME_MOVED || (owner == MPIOX_FRAME_HIT && is_unchanged(cache, changes));
    }
    mpiox_frame *at = &cache->frames[found];
    const uint32_t pins = atomic_fetch_add_explicit(&at->pins, 1, memory_order_acq_rel);
    if (pins & MPIOX_FRAME_EXCLUSIVE || atomic_load_explicit(&at->file, memory_order_acquire) != file ||
        atomic_load_explicit(&at->page, memory_order_acquire) != page) {
        mpiox_frame_unpin(cache, found);
        return false;
    }
    owner = look_at_owner(cache, file, page);
    if (owner == MPIOX_FRAME_HIT && mpiox_cache_is_serving(cache, false)) {
        *frame = found;
        *result = MPIOX_FRAME_HIT;
        return true;
    }
    mpiox_frame_unpin(cache, found);
    *moving = owner == MPIOX_FRAME_MISS;
    if (owner == MPIOX_FRAME_MOVED)
        *result = MPIOX_FRAME_MOVED;
    return owner == MPIOX_FRAME_MOVED;
}

int mpiox_frame_pin(const mpiox_cache *cache, int32_t file, int64_t page, bool patient, uint32_t *frame)
{
    mpiox_backoff backoff = {0};
    mpiox_cache_wait wait = {0};
    double begun = 0;
    bool moving, decided;
    int result;
    while (!(decided = try_pin(cache, file, page, frame, &result, &moving))) {
        if (moving && begun <= 0)
            begun = mpiox_now();
        if (moving && (!patient || mpiox_now() - begun > most_patience_s))
            result = MPIOX_FRAME_MOVED;
        else if (!mpiox_cache_is_serving(cache, false))
            result = MPIOX_FRAME_GONE;
        if (result == MPIOX_FRAME_MOVED || result == MPIOX_FRAME_GONE)
            break;
        mpiox_wait_backoff(&backoff);
        mpiox_cache_wait_step(cache, &wait, MPIOX_WAITS_FOR_FRAME, file, page);
    }
    mpiox_cache_wait_end(cache, &wait);
    if (decided && result != MPIOX_FRAME_HIT && !mpiox_cache_is_serving(cache, false))
        return MPIOX_FRAME_GONE;
    return result;
}

void mpiox_frame_unpin(const mpiox_cache *cache, uint32_t frame)
{
    atomic_fetch_sub_explicit(&cache->frames[frame].pins, 1, memory_order_acq_rel);
}

int mpiox_frame_look(const mpiox_cache *cache, int32_t file, int64_t page)
{
    mpiox_backoff backoff = {0};
    mpiox_cache_wait wait = {0};
    int result = MPIOX_FRAME_GONE;
    for (;;) {
        const uint32_t changes = atomic_load_explicit(&cache->header->table_changes, memory_order_acquire);
        const uint32_t found = mpiox_frame_find(cache, file, page);
        const int owner = look_at_owner(cache, file, page);
        if (!mpiox_cache_is_serving(cache, false))
            break;
        if (owner != MPIOX_FRAME_HIT)
            result = MPIOX_FRAME_MOVED;
        else if (is_unchanged(cache, changes))
            result = found == MPIOX_CACHE_NO_FRAME ? MPIOX_FRAME_MISS : MPIOX_FRAME_HIT;
        if (result != MPIOX_FRAME_GONE)
            break;
        mpiox_wait_backoff(&backoff);
        mpiox_cache_wait_step(cache, &wait, MPIOX_WAITS_FOR_FRAME, file, page);
    }
    mpiox_cache_wait_end(cache, &wait);
    return result;
}

/* ---- delegate ---------------------------------------------------------------------------------------------------- */

static void begin_change(const mpiox_cache *cache)
{
    atomic_fetch_add_explicit(&cache->header->table_changes, 1, memory_order_acq_rel);
}

static void end_change(const mpiox_cache *cache)
{
    atomic_fetch_add_explicit(&cache->header->table_changes, 1, memory_order_release);
}

/* Free frames keep the key of no page: a client that still has the frame's number from before sees file -1 until the
 * page is in place. */
void mpiox_frame_insert(const mpiox_cache *cache, uint32_t frame, int32_t file, int64_t page, bool pin)
{
    mpiox_frame *at = &cache->frames[frame];
    _Atomic uint32_t *bucket = bucket_of(cache, file, page);
    assert(frame < (uint32_t)cache->frame_count && file >= 0 && page >= 0);
    assert(atomic_load_explicit(&at->file, memory_order_relaxed) == -1);
    atomic_fetch_or_explicit(&at->pins, MPIOX_FRAME_EXCLUSIVE, memory_order_acq_rel);
    atomic_fetch_and_explicit(&at->flags, MPIOX_FRAME_QUEUED, memory_order_relaxed);
    atomic_store_explicit(&at->dirty, 0, memory_order_relaxed);
    atomic_store_explicit(&at->known_end, 0, memory_order_relaxed);
    begin_change(cache);
    atomic_store_explicit(&at->page, page, memory_order_release);
    atomic_store_explicit(&at->file, file, memory_order_release);
    atomic_store_explicit(&at->next, atomic_load_explicit(bucket, memory_order_relaxed), memory_order_release);
    atomic_store_explicit(bucket, frame, memory_order_release);
    end_change(cache);
    /* In one step: clients that find the bit set raise and lower the count at any time. */
    atomic_fetch_add_explicit(&at->pins, MPIOX_FRAME_EXCLUSIVE + (pin ? 1 : 0), memory_order_acq_rel);
}

void mpiox_frame_remove(const mpiox_cache *cache, uint32_t frame)
{
    mpiox_frame *at = &cache->frames[frame];
    _Atomic uint32_t *link = bucket_of(cache, atomic_load_explicit(&at->file, memory_order_relaxed),
                                       atomic_load_explicit(&at->page, memory_order_relaxed));
    uint32_t other = atomic_load_explicit(link, memory_order_relaxed);
    assert(mpiox_frame_is_exclusive(cache, frame) && atomic_load_explicit(&at->dirty, memory_order_relaxed) == 0);
    begin_change(cache);
    while (other != frame && other < (uint32_t)cache->frame_count) {
        link = &cache->frames[other].next;
        other = atomic_load_explicit(link, memory_order_relaxed);
    }
    if (other == frame)
        atomic_store_explicit(link, atomic_load_explicit(&at->next, memory_order_relaxed), memory_order_release);
    atomic_store_explicit(&at->file, -1, memory_order_release);
    atomic_store_explicit(&at->next, MPIOX_CACHE_NO_FRAME, memory_order_release);
    end_change(cache);
}

bool mpiox_frame_try_exclusive(const mpiox_cache *cache, uint32_t frame)
{
    uint32_t none = 0;
    return atomic_compare_exchange_strong_explicit(&cache->frames[frame].pins, &none, MPIOX_FRAME_EXCLUSIVE,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

bool mpiox_frame_wait_exclusive(const mpiox_cache *cache, uint32_t frame, double seconds)
{
    mpiox_frame *at = &cache->frames[frame];
    mpiox_backoff backoff = {0};
    const double end = mpiox_now() + seconds;
    atomic_fetch_or_explicit(&at->pins, MPIOX_FRAME_EXCLUSIVE, memory_order_acq_rel);
    while (atomic_load_explicit(&at->pins, memory_order_acquire) != MPIOX_FRAME_EXCLUSIVE) {
        if (mpiox_now() >= end) {
            mpiox_frame_end_exclusive(cache, frame);
            return false;
        }
        mpiox_wait_backoff(&backoff);
    }
    return true;
}

void mpiox_frame_end_exclusive(const mpiox_cache *cache, uint32_t frame)
{
    atomic_fetch_and_explicit(&cache->frames[frame].pins, ~MPIOX_FRAME_EXCLUSIVE, memory_order_acq_rel);
}
