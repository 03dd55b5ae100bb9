/*
 * mpiox_server_pages.c - the frame of each page.
 *
 * Problem.    Any number of clients request pages; there may be fewer frames than clients, or one. The service thread
 *             must not wait for any of them.
 * Algorithm.  A request for a cached page is answered at once, or stays with the frame: until it is filled, or until
 *             the I/O thread that uses it exclusively is done. A request that gets no frame is parked. The thread that
 *             frees a frame serves parked requests in their order, and with the first one for a page all others for it.
 *             Pages that clients name as likely to be read next are read ahead, into frames that are free or reusable,
 *             at most half of all. How useful earlier ones were determines how many: all that a client names, half of
 *             them, or none except a trial now and then.
 * Guarantees. The answer pins the frame for the client, so that the page stays until the client's access: each answer
 *             is progress, even with one frame. For every parked request a frame is on its way, or worth waiting for
 *             (mpiox_server_evict.c).
 */
#include "mpiox_server_pages.h"

#include <assert.h>
#include <string.h>

#include "mpiox_server_evict.h"
#include "mpiox_server_share.h"
enum {
    AHEAD_STEPS = 16,  /* pages read ahead that are checked with each request */
    AHEAD_WINDOW = 32, /* pages after which their usefulness is judged */
    AHEAD_TRIAL = 4,   /* the same while reading ahead is stopped */
    AHEAD_PAUSE = 64   /* requests between two trials */
};
static const double ahead_full = 0.5, ahead_stop = 0.125; /* usefulness */

void mpiox_server_drop_page(mpiox_server *server, uint32_t frame)
{
    assert(mpiox_server_is_locked(server) && mpiox_frame_is_exclusive(&server->cache, frame));
    mpiox_server_take_out(server, frame);
    mpiox_server_requests_move(server, &server->parked, &server->info[frame].waiting);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

int mpiox_server_look_at_owner(const mpiox_server *server, int32_t file, int64_t page)
{
    const mpiox_file_record *record = &server->cache.header->files[file];
    if (record->ranges <= 0)
        return MPIOX_FRAME_HIT;
    const int owner = atomic_load_explicit(&record->owner_of[page / record->unit_pages % record->ranges],
                                           memory_order_acquire);
    if (owner == server->options.delegate)
        return MPIOX_FRAME_HIT;
    return owner == MPIOX_RANGE_MOVING ? MPIOX_FRAME_MISS : MPIOX_FRAME_MOVED;
}

static void answer_pinned(mpiox_server *server, mpiox_slot *slot, uint32_t frame)
{
    slot->frame = frame;
    if (!mpiox_ring_is_awaited(slot)) /* its client has been found dead, and will not unpin the frame */
        mpiox_frame_unpin(&server->cache, frame);
    mpiox_server_answer(server, slot, MPIOX_OK);
}

/* Pin a frame for a client, unless it is in exclusive use. */
static bool pin_now(const mpiox_server *server, uint32_t frame)
{
    _Atomic uint32_t *pins = &server->cache.frames[frame].pins;
    uint32_t seen = atomic_load(pins);
    while (!(seen & MPIOX_FRAME_EXCLUSIVE)) {
        if (atomic_compare_exchange_weak(pins, &seen, seen + 1))
            return true;
    }
    return false;
}

/* The page is in the table. Exclusive use without the lock is a busy thread's, which serves the waiting at its end. */
static void serve_present(mpiox_server *server, mpiox_slot *slot, uint32_t frame)
{
    const bool ready = slot->question.page.reads == 0 || mpiox_server_flags_of(server, frame) & MPIOX_FRAME_FILLED;
    if (ready && pin_now(server, frame)) {
        answer_pinned(server, slot, frame);
        return;
    }
    mpiox_server_requests_append(server, &server->info[frame].waiting, slot);
    if (!ready) {
        server->files[slot->file].read = true;
        if ((server->info[frame].wants & MPIOX_WANT_FILL) == 0)
            server->info[frame].reader = (int32_t)slot->question.page.client;
        mpiox_server_want(server, frame, MPIOX_WANT_FILL);
    }
}

/* False: there is no frame for it; nothing was done. At the end of the delegate no page is given out any more. */
static bool serve(mpiox_server *server, mpiox_slot *slot)
{
    if (server->ending)
        return false;
    const int64_t page = slot->question.page.page;
    const bool writes = slot->question.page.reads == 0;
    const int owner = mpiox_server_is_open(server, slot->file) && page >= 0
                          ? mpiox_server_look_at_owner(server, slot->file, page)
                          : -1;
    if (owner != MPIOX_FRAME_HIT) { /* a request that waits for a moving range keeps no slot: the mover needs one */
        mpiox_server_answer(server, slot, owner < 0 ? MPIOX_E_ARG : MPIOX_FRAME_MOVED); /* as MPIOX_PAGE_MOVED */
        return true;
    }
    uint32_t frame = mpiox_frame_find(&server->cache, slot->file, page);
    if (frame == MPIOX_CACHE_NO_FRAME) {
        if (mpiox_server_is_replica(server, slot->file) && mpiox_server_replicas_are_full(server)) {
            mpiox_server_answer(server, slot, MPIOX_E_FULL);
            return true;
        }
        frame = mpiox_server_find_room(server, true);
        if (frame == MPIOX_CACHE_NO_FRAME)
            return false;
        mpiox_server_put_in(server, frame, slot->file, page, false, writes);
        if (writes) {
            answer_pinned(server, slot, frame);
            return true;
        }
    }
    serve_present(server, slot, frame);
    return true;
}

void mpiox_server_ask_page(mpiox_server *server, mpiox_slot *slot)
{
    const int32_t file = slot->file;
    mpiox_op_ahead ahead = slot->question.page.ahead; /* the slot is the client's again when it is answered */
    if (slot->question.page.reads == 0)
        ahead.count = 0;
    const bool first = server->parked.count == 0;
    const bool there = mpiox_server_is_open(server, file) &&
                       mpiox_frame_find(&server->cache, file, slot->question.page.page) != MPIOX_CACHE_NO_FRAME;
    if ((!first && !there) || !serve(server, slot)) {
        MPIOX_COUNT(server, waits, 1);
        mpiox_server_requests_append(server, &server->parked, slot);
        mpiox_server_press(server);
    }
    mpiox_server_read_ahead(server, file, &ahead);
}

/* A page is cached now: other requests that wait for a frame for it need none any more. */
static void serve_same_page(mpiox_server *server, int32_t file, int64_t page)
{
    mpiox_requests others = {.count = 0};
    mpiox_slot *slot;
    while ((slot = mpiox_server_requests_take(server, &server->parked)) != NULL) {
        if (slot->file != file || slot->question.page.page != page || !serve(server, slot))
            mpiox_server_requests_append(server, &others, slot);
    }
    server->parked = others;
}

void mpiox_server_serve_parked(mpiox_server *server)
{
    mpiox_slot *slot;
    mpiox_server_share_choose(server);
    while ((slot = mpiox_server_requests_first(server, &server->parked)) != NULL) {
        const mpiox_requests before = server->parked;
        const int32_t file = slot->file, client = (int32_t)slot->question.page.client;
        const int64_t page = slot->question.page.page; /* the slot may be the client's again in a moment */
        (void)mpiox_server_requests_take(server, &server->parked);
        if (!serve(server, slot)) {
            server->parked = before;
            mpiox_server_press(server);
            return;
        }
        mpiox_server_share_charge(server, client, file);
        serve_same_page(server, file, page);
        mpiox_server_share_choose(server);
    }
    server->waiting_since = 0;
}

void mpiox_server_serve_waiting(mpiox_server *server, uint32_t frame)
{
    mpiox_requests waiting = server->info[frame].waiting;
    mpiox_slot *slot;
    server->info[frame].waiting.count = 0;
    while ((slot = mpiox_server_requests_take(server, &waiting)) != NULL) {
        if (!serve(server, slot))
            mpiox_server_requests_append(server, &server->parked, slot);
    }
}

void mpiox_server_fail_waiting(mpiox_server *server, uint32_t frame, const mpiox_error *error)
{
    mpiox_requests *queue = &server->info[frame].waiting, others = {.count = 0};
    mpiox_slot *slot;
    while ((slot = mpiox_server_requests_take(server, queue)) != NULL) {
        if (slot->question.page.reads == 0) {
            mpiox_server_requests_append(server, &others, slot);
        } else {
            slot->error = *error;
            mpiox_server_answer(server, slot, MPIOX_E_IO);
        }
    }
    mpiox_server_requests_move(server, queue, &others);
}

/* ---- reading ahead ----------------------------------------------------------------------------------------------- */

/* Find pages that have been used meanwhile. */
static void judge_some(mpiox_server *server)
{
    mpiox_frame_list *list = &server->lists[MPIOX_AHEAD];
    for (int32_t left = list->count < AHEAD_STEPS ? list->count : AHEAD_STEPS; left > 0; left--) {
        const uint32_t frame = list->first;
        if (!mpiox_server_judge(server, frame))
            mpiox_server_reside(server, frame, MPIOX_AHEAD);
    }
}

/* How many of the pages that a client named are to be read. */
static int32_t depth_of(const mpiox_server *server, mpiox_ahead_record *record)
{
    const int32_t most = server->options.prefetch_pages;
    const int32_t window = record->usefulness < ahead_stop ? AHEAD_TRIAL : AHEAD_WINDOW;
    if (record->issued >= window) {
        const double share = record->used < record->issued ? (double)record->used / record->issued : 1;
        record->usefulness = (record->usefulness + share) / 2;
        record->issued = record->used = 0;
    }
    if (record->usefulness >= ahead_full)
        return most;
    if (record->usefulness >= ahead_stop)
        return (most + 1) / 2;
    if (++record->misses < AHEAD_PAUSE)
        return 0;
    record->misses = 0;
    return 1;
}

void mpiox_server_read_ahead(mpiox_server *server, int32_t file, const mpiox_op_ahead *ahead)
{
    const int64_t *pages = ahead->page;
    if (ahead->count <= 0 || server->options.prefetch_pages <= 0 || server->ending ||
        !mpiox_server_is_open(server, file))
        return;
    mpiox_ahead_record *record = &server->files[file].ahead;
    server->files[file].read = true;
    judge_some(server);
    const int64_t depth = depth_of(server, record);
    for (int64_t i = 0; i < ahead->count && i < depth && i < MPIOX_OP_AHEAD; i++) {
        if (pages[i] < 0 || pages[i] > MPIOX_OP_MAX_OFFSET / server->cache.page_bytes ||
            mpiox_server_look_at_owner(server, file, pages[i]) != MPIOX_FRAME_HIT ||
            mpiox_frame_find(&server->cache, file, pages[i]) != MPIOX_CACHE_NO_FRAME)
            continue;
        if (server->parked.count > 0 || server->lists[MPIOX_AHEAD].count >= server->cache.frame_count / 2)
            return;
        const uint32_t frame = mpiox_server_find_room(server, false);
        if (frame == MPIOX_CACHE_NO_FRAME)
            return;
        record->issued++;
        mpiox_server_put_in(server, frame, file, pages[i], true, false);
        mpiox_server_want(server, frame, MPIOX_WANT_AHEAD);
    }
}
