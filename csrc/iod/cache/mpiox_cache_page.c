/*
 * mpiox_cache_page.c - a client's access to the bytes of one page.
 *
 * Problem.    A small access must cost little more than its copy, must not lose a byte if the delegate flushes the same
 *             page concurrently, and must not count as done if the delegate has died.
 * Algorithm.  Pin the frame (request it from the delegate if the page is missing), copy, mark, raise `writes`, unpin.
 *             The delegate clears marks only when `writes` has not changed, so that what is copied while it flushes
 *             stays dirty. The client whose marks make the page full notifies the delegate, with the frame still
 *             pinned.
 * Guarantees. No client waits while it has a frame pinned. A write is done only if the delegate was serving after it: a
 *             survivor waits for pins for a limited time, so that a client that was stopped repeats its write, in the
 *             file.
 */
#include "mpiox_cache_page.h"
#include "mpiox_ring.h"
#include "mpiox_segment_guard.h"

#include <string.h>
#include <unistd.h>

enum {
    MAX_REQUESTS = 16, /* for one page; one is enough unless the page is taken away again at once */
    LOOK_EVERY = 1024  /* accesses */
};

/* Where the access lies in its page. */
typedef struct span {
    int64_t start, end; /* byte offsets in the page, of the first byte and one past the last */
    bool contiguous;
} span;

static span span_of(const mpiox_cache *cache, const mpiox_page_access *access)
{
    const int64_t last = access->position + access->length - 1, page_start = access->page * cache->page_bytes;
    const mpiox_typemap *view = access->view;
    span found;
    found.start = access->origin + (view ? mpiox_typemap_offset(view, access->position) : access->position) -
                  page_start;
    found.end = access->origin + (view ? mpiox_typemap_offset(view, last) : last) + 1 - page_start;
    found.contiguous = found.end - found.start == access->length; /* the view is monotonic */
    return found;
}

static void copy_bytes(const mpiox_cache *cache, const mpiox_page_access *access, uint32_t frame, const span *span)
{
    const uintptr_t bytes = (uintptr_t)mpiox_cache_bytes_of(cache, frame);
    mpiox_memory_layout page = {.base = (void *)(bytes + (uintptr_t)span->start)};
    if (!span->contiguous) {
        page.base = (void *)(bytes - (uintptr_t)(access->page * cache->page_bytes));
        page.typemap = access->view;
        page.origin = access->origin;
        page.position = access->position;
    }
    if (access->write)
        mpiox_copy(&page, &access->memory, access->length);
    else
        mpiox_copy(&access->memory, &page, access->length);
}

/* Mark the bytes of the access; returns how many were not dirty before. */
static int64_t mark_bytes(const mpiox_cache *cache, const mpiox_page_access *access, uint32_t frame, const span *span)
{
    if (span->contiguous)
        return mpiox_dirty_mark(cache, frame, span->start, access->length, 0, 1);
    mpiox_cursor cursor;
    mpiox_run run;
    int64_t fresh = 0;
    mpiox_cursor_init(&cursor, access->view, access->origin - access->page * cache->page_bytes, access->position);
    for (int64_t left = access->length; left > 0;) {
        left -= mpiox_cursor_next(&cursor, left, &run);
        fresh += mpiox_dirty_mark(cache, frame, run.offset, run.length, run.stride, run.count);
    }
    return fresh;
}

static bool are_dirty(const mpiox_cache *cache, const mpiox_page_access *access, uint32_t frame, const span *span)
{
    if (atomic_load_explicit(&cache->frames[frame].dirty, memory_order_relaxed) == 0)
        return false;
    if (span->contiguous)
        return mpiox_dirty_covers(cache, frame, span->start, access->length, 0, 1);
    mpiox_cursor cursor;
    mpiox_run run;
    mpiox_cursor_init(&cursor, access->view, access->origin - access->page * cache->page_bytes, access->position);
    for (int64_t left = access->length; left > 0;) {
        left -= mpiox_cursor_next(&cursor, left, &run);
        if (!mpiox_dirty_covers(cache, frame, run.offset, run.length, run.stride, run.count))
            return false;
    }
    return true;
}

static void count(atomic_int_least64_t *counter, int64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* Threads of all processes are spread over the shards. */
static mpiox_cache_shard *my_shard(const mpiox_cache *cache)
{
    static atomic_uint threads;
    static _Thread_local uint32_t mine;
    if (mine == 0)
        mine = 1 + ((uint32_t)getpid() + 7 * atomic_fetch_add(&threads, 1)) % MPIOX_CACHE_SHARDS;
    return &cache->header->shards[mine - 1];
}

/* After an access. A rank that finds all pages in the cache would not detect the delegate's death before the next flush
 * barrier; so it checks now and then. */
static void count_access(const mpiox_cache *cache, const mpiox_page_access *access, bool missed)
{
    static _Thread_local uint32_t accesses;
    if (++accesses % LOOK_EVERY == 0)
        (void)mpiox_cache_is_serving(cache, true);
    mpiox_cache_shard *shard = my_shard(cache);
    count(access->write ? &shard->writes : &shard->reads, 1);
    count(access->write ? &shard->bytes_written : &shard->bytes_read, access->length);
    if (missed)
        count(&shard->misses, 1);
}

/* The frame is used: for the eviction, and for the statistics of reading ahead. */
static void touch(const mpiox_cache *cache, uint32_t frame)
{
    _Atomic uint32_t *flags = &cache->frames[frame].flags;
    const uint32_t seen = atomic_load_explicit(flags, memory_order_relaxed);
    if (!(seen & MPIOX_FRAME_REFERENCED))
        atomic_fetch_or_explicit(flags, MPIOX_FRAME_REFERENCED, memory_order_relaxed);
    if (seen & MPIOX_FRAME_PREFETCHED &&
        atomic_fetch_and_explicit(flags, ~(uint32_t)MPIOX_FRAME_PREFETCHED, memory_order_relaxed) &
            MPIOX_FRAME_PREFETCHED)
        count(&my_shard(cache)->prefetch_used, 1);
}

static void raise(_Atomic int64_t *value, int64_t to)
{
    int64_t now = atomic_load_explicit(value, memory_order_relaxed);
    while (now < to &&
           !atomic_compare_exchange_weak_explicit(value, &now, to, memory_order_release, memory_order_relaxed)) {
    }
}

/* ---- with the frame pinned --------------------------------------------------------------------------------------- */

/* The page may have been lost: the bytes were then written to, or read from, private memory. */
static bool is_torn(const mpiox_cache *cache)
{
    return atomic_load_explicit(&mpiox_segment_lost_some, memory_order_relaxed) &&
           mpiox_cache_torn(cache) != MPIOX_TORN_NOT;
}

static int write_pinned(const mpiox_cache *cache, const mpiox_page_access *access, uint32_t frame, const span *span)
{
    mpiox_frame *at = &cache->frames[frame];
    copy_bytes(cache, access, frame, span);
    if (is_torn(cache)) {
        mpiox_frame_unpin(cache, frame);
        return MPIOX_PAGE_GONE;
    }
    const int64_t fresh = mark_bytes(cache, access, frame, span);
    atomic_store_explicit(&at->client, access->client, memory_order_relaxed);
    raise(&at->known_end, span->end);
    mpiox_cache_raise_end(cache, access->file, access->page * cache->page_bytes + span->end);
    touch(cache, frame);
    if (fresh > 0) {
        const int64_t before = atomic_fetch_add_explicit(&at->dirty, fresh, memory_order_acq_rel);
        if (before == 0)
            atomic_fetch_add_explicit(&cache->header->dirty_frames, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&at->writes, 1, memory_order_release);
        if (before + fresh == cache->page_bytes)
            mpiox_ring_push_frame(cache, frame);
    } else {
        atomic_fetch_add_explicit(&at->writes, 1, memory_order_release);
    }
    mpiox_frame_unpin(cache, frame);
    return mpiox_cache_is_serving(cache, false) ? MPIOX_OK : MPIOX_PAGE_GONE;
}

enum { NOT_FILLED = 100 };

/* The file system has refused bytes, and no call has reported it yet: a read must not return what is in their place,
 * unless they are dirty, that is, written again. While the frame is pinned they stay marked. */
static bool are_lost(const mpiox_cache *cache, const mpiox_page_access *access, uint32_t frame, const span *span,
                     mpiox_error *error)
{
    const int64_t page_start = access->page * cache->page_bytes;
    mpiox_error found;
    if (!mpiox_cache_find_error(cache, access->file, page_start + span->start, page_start + span->end, &found) ||
        are_dirty(cache, access, frame, span))
        return false;
    if (error != NULL)
        *error = found;
    return true;
}

static int read_pinned(const mpiox_cache *cache, const mpiox_page_access *access, uint32_t frame, const span *span,
                       bool beyond, int64_t *known, mpiox_error *error)
{
    mpiox_frame *at = &cache->frames[frame];
    int result = MPIOX_OK;
    const bool filled = atomic_load_explicit(&at->flags, memory_order_acquire) & MPIOX_FRAME_FILLED;
    const int64_t known_end = atomic_load_explicit(&at->known_end, memory_order_acquire);
    if (!filled) {
        if (!are_dirty(cache, access, frame, span))
            result = NOT_FILLED;
    } else if (span->end > known_end && !beyond) {
        result = MPIOX_PAGE_SHORT;
        *known = known_end;
    }
    if (result == MPIOX_OK) {
        copy_bytes(cache, access, frame, span);
        if (are_lost(cache, access, frame, span, error))
            result = MPIOX_E_IO;
    }
    if (result != NOT_FILLED)
        touch(cache, frame);
    mpiox_frame_unpin(cache, frame);
    return is_torn(cache) ? MPIOX_PAGE_GONE : result;
}

/* ---- asking the delegate ----------------------------------------------------------------------------------------- */

/* MPIOX_OK: *frame is pinned. MPIOX_PAGE_GONE, MPIOX_PAGE_MOVED, MPIOX_E_* with *error. */
static int ask(const mpiox_cache *cache, const mpiox_page_access *access, uint32_t *frame, mpiox_error *error)
{
    mpiox_slot *slot = mpiox_ring_take(cache);
    if (slot == NULL)
        return MPIOX_PAGE_GONE;
    const int ahead = access->ahead == NULL ? 0 : access->ahead_count;
    slot->op = MPIOX_OP_PAGE;
    slot->client = access->client - 1;
    slot->file = access->file;
    slot->question.page.page = access->page;
    slot->question.page.reads = !access->write;
    slot->question.page.client = access->client;
    slot->question.page.ahead.count = ahead < MPIOX_OP_AHEAD ? ahead : MPIOX_OP_AHEAD;
    for (int i = 0; i < ahead && i < MPIOX_OP_AHEAD; i++)
        slot->question.page.ahead.page[i] = access->ahead[i];
    int code = mpiox_ring_call(cache, slot, NULL);
    *frame = slot->frame;
    if (code == MPIOX_E_UNSUPPORTED) {
        code = MPIOX_PAGE_GONE;
    } else if (code < 0 && error != NULL) {
        *error = slot->error;
        if (error->code == MPIOX_OK)
            (void)mpiox_error_set(error, code, 0, access->page * cache->page_bytes, cache->page_bytes, "page request");
    }
    mpiox_ring_give_back(slot);
    if (code == MPIOX_OK && !mpiox_cache_is_serving(cache, false)) {
        mpiox_frame_unpin(cache, *frame);
        code = MPIOX_PAGE_GONE;
    }
    return code;
}

int mpiox_cache_access_page(const mpiox_cache *cache, const mpiox_page_access *access, bool beyond, int64_t *known,
                            mpiox_error *error)
{
    if (access->length <= 0)
        return MPIOX_OK;
    const span span = span_of(cache, access);
    uint32_t frame;
    int code = mpiox_frame_pin(cache, access->file, access->page, !access->impatient, &frame);
    const bool missed = code == MPIOX_FRAME_MISS;
    for (int requests = 0; requests < MAX_REQUESTS; requests++) {
        if (code == MPIOX_FRAME_GONE)
            return MPIOX_PAGE_GONE;
        if (code == MPIOX_FRAME_MOVED)
            return MPIOX_PAGE_MOVED;
        if (code == MPIOX_FRAME_MISS) {
            code = ask(cache, access, &frame, error);
            if (code != MPIOX_OK)
                return code;
        }
        code = access->write ? write_pinned(cache, access, frame, &span)
                             : read_pinned(cache, access, frame, &span, beyond, known, error);
        if (code == MPIOX_OK)
            count_access(cache, access, missed);
        if (code != NOT_FILLED)
            return code;
        code = MPIOX_FRAME_MISS; /* the page is cached, but not these bytes */
    }
    return mpiox_error_set(error, MPIOX_E_IO, 0, access->page * cache->page_bytes, cache->page_bytes, "filling a page");
}

int mpiox_cache_has_page(const mpiox_cache *cache, int32_t file, int64_t page)
{
    return mpiox_frame_look(cache, file, page);
}
