/*
 * mpiox_server_pages.c - which page is in which frame.
 *
 * Problem.    A page that was asked for needs a frame. Few frames, or one, must do for any number of clients; one pass
 *             over a large file must not drive out what is used again and again; and the service thread must not wait.
 * Algorithm.  2Q: a page that comes for the first time is recent (first in, first out). When it has left and comes back
 *             while it is still remembered as a ghost, it is frequent (clock). Frames leave from the recent ones while
 *             these are more than a quarter, otherwise from the frequent ones. A dirty frame whose turn has come is
 *             given to the I/O threads (leaving), a clean one stays findable until it is taken (reusable). That begins
 *             when fewer than a quarter of the frames are free or reusable.
 *             Pages that have been written whole are of no more use in a file that cannot be read, and of little in one
 *             that nobody has read yet: they are free, or the next to be reused, at once, and the last one first. So a
 *             stream of writes goes round in a few frames, which stay in the processor's cache.
 *             A request that gets no frame is parked; parked requests are served in their order by whoever frees one.
 * Guarantees. The answer holds the frame for the client, so that it can be taken away only after the client's access:
 *             each answer is progress, also with one frame. For every parked request a frame is on its way: an I/O
 *             thread takes it in the end by exclusive use, which clients' short holds always allow.
 *             Reading ahead takes only frames that are free or reusable, and no more than half of all; it is slowed
 *             down by how few of the pages were used.
 * Source.     T. Johnson and D. Shasha, "2Q: a low overhead high performance buffer management replacement algorithm",
 *             VLDB 1994.
 */
#include "mpiox_server_pages.h"

#include "mpiox_server_replica.h"

#include <string.h>

enum {
    AGING_STEPS = 64,  /* frames looked at for one that can leave, while others are on their way */
    AHEAD_STEPS = 16,  /* pages read ahead that are looked at with each request */
    AHEAD_WINDOW = 32, /* pages after which their usefulness is looked at */
    AHEAD_TRIAL = 4,   /* the same while reading ahead is stopped */
    AHEAD_PAUSE = 64   /* requests between two trials */
};
static const double ahead_full = 0.5, ahead_stop = 0.125; /* usefulness */

/* ---- ghosts ------------------------------------------------------------------------------------------------------ */

static mpiox_ghost *ghost_of(const mpiox_server *server, int32_t file, int64_t page)
{
    const uint64_t key = ((uint64_t)page << 6 ^ (uint64_t)(uint32_t)file) * UINT64_C(0x9e3779b97f4a7c15);
    return &server->ghosts[(key >> 32) % server->ghost_count];
}

static void remember(mpiox_server *server, uint32_t frame)
{
    const int32_t file = mpiox_server_file_of(server, frame);
    const int64_t page = mpiox_server_page_of(server, frame);
    *ghost_of(server, file, page) = (mpiox_ghost){page, file, server->ghost_number++};
}

/* Half as many pages as there are frames are remembered. */
static bool is_remembered(const mpiox_server *server, int32_t file, int64_t page)
{
    const mpiox_ghost *ghost = ghost_of(server, file, page);
    const uint32_t since = server->ghost_number - ghost->number;
    return ghost->file == file && ghost->page == page && since <= (uint32_t)server->cache.frame_count / 2 + 1;
}

/* ---- pages that leave -------------------------------------------------------------------------------------------- */

static uint32_t flags_of(const mpiox_server *server, uint32_t frame)
{
    return atomic_load_explicit(&server->cache.frames[frame].flags, memory_order_acquire);
}

/* A page that was read ahead: has it been used? Then it is like any other from now on. */
static bool judge(mpiox_server *server, uint32_t frame)
{
    const uint32_t flags = flags_of(server, frame);
    if (!(flags & MPIOX_FRAME_FILLED) || flags & MPIOX_FRAME_PREFETCHED)
        return false;
    server->files[mpiox_server_file_of(server, frame)].ahead.used++;
    mpiox_server_reside(server, frame, MPIOX_RECENT);
    return true;
}

/* Take the page of an exclusive, clean frame out. Its residence stays. */
static void take_out(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    if (flags_of(server, frame) & MPIOX_FRAME_PREFETCHED)
        MPIOX_COUNT(server, prefetch_wasted, 1);
    else if (info->residence == MPIOX_AHEAD)
        server->files[mpiox_server_file_of(server, frame)].ahead.used++;
    mpiox_server_list_remove(server, &server->files[mpiox_server_file_of(server, frame)].frames, frame);
    mpiox_frame_remove(&server->cache, frame);
    info->frequent = false;
    info->tries = 0;
    info->marked = false;
    info->held_since = 0;
}

void mpiox_server_drop_page(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    take_out(server, frame);
    info->wants = 0;
    mpiox_server_reside(server, frame, MPIOX_FREE);
    mpiox_server_requests_move(server, &server->parked, &info->waiting);
}

/* The list whose first frame is to leave next; -1: none has any. */
static int leaving_list(const mpiox_server *server)
{
    const int32_t recent = server->lists[MPIOX_RECENT].count, frequent = server->lists[MPIOX_FREQUENT].count;
    if (recent > 0 && (frequent == 0 || recent > server->cache.frame_count / 4))
        return MPIOX_RECENT;
    if (frequent > 0)
        return MPIOX_FREQUENT;
    return server->lists[MPIOX_AHEAD].count > 0 ? MPIOX_AHEAD : -1;
}

/* Look at the first frame of a residence: it leaves, or gets another turn. False: it is dirty, and shall not be written
 * for this. */
static bool age_one(mpiox_server *server, enum mpiox_residence from, bool may_write)
{
    const uint32_t frame = server->lists[from].first;
    mpiox_frame_info *info = &server->info[frame];
    if (info->busy || info->wants != 0) {
        mpiox_server_reside(server, frame, from);
        return true;
    }
    if (from == MPIOX_AHEAD && judge(server, frame))
        return true;
    if (from == MPIOX_FREQUENT &&
        atomic_fetch_and(&server->cache.frames[frame].flags, ~(uint32_t)MPIOX_FRAME_REFERENCED) &
            MPIOX_FRAME_REFERENCED) {
        mpiox_server_reside(server, frame, from);
        return true;
    }
    const bool dirty = mpiox_server_dirty_of(server, frame) > 0;
    if (dirty && mpiox_server_is_replica(server, mpiox_server_file_of(server, frame))) {
        mpiox_server_reside(server, frame, from);
        return true;
    }
    if (dirty && !may_write)
        return false;
    info->frequent = from == MPIOX_FREQUENT;
    if (dirty) {
        mpiox_server_reside(server, frame, MPIOX_LEAVING);
        mpiox_server_want(server, frame, MPIOX_WANT_FLUSH);
    } else {
        mpiox_server_reside(server, frame, MPIOX_REUSABLE);
    }
    return true;
}

/* Let frames leave until so many are reusable or on their way. */
static void age(mpiox_server *server, int32_t target, bool may_write)
{
    const mpiox_frame_list *lists = server->lists;
    int64_t steps = AGING_STEPS; /* frames that I/O threads work on come back by themselves */
    if (server->wanted == 0)
        steps = 2 * (int64_t)server->cache.frame_count;
    while (lists[MPIOX_REUSABLE].count + lists[MPIOX_LEAVING].count < target && steps-- > 0) {
        const int from = leaving_list(server);
        if (from < 0 || !age_one(server, (enum mpiox_residence)from, may_write))
            return;
    }
}

/* ---- frames for pages that come ---------------------------------------------------------------------------------- */

/* The frame that became reusable first and can be had. It is exclusive, and has no page any more. */
static uint32_t reuse(mpiox_server *server)
{
    mpiox_frame_list *list = &server->lists[MPIOX_REUSABLE];
    for (int32_t left = list->count; left > 0; left--) {
        const uint32_t frame = list->first;
        mpiox_frame_info *info = &server->info[frame];
        if (info->busy || info->wants != 0 || !mpiox_frame_try_exclusive(&server->cache, frame)) {
            mpiox_server_reside(server, frame, MPIOX_REUSABLE);
            continue;
        }
        if (mpiox_server_dirty_of(server, frame) > 0) { /* written again */
            mpiox_frame_end_exclusive(&server->cache, frame);
            mpiox_server_reside(server, frame, info->frequent ? MPIOX_FREQUENT : MPIOX_RECENT);
            continue;
        }
        if (!info->frequent)
            remember(server, frame);
        MPIOX_COUNT(server, evictions, 1);
        take_out(server, frame);
        return frame;
    }
    return MPIOX_CACHE_NO_FRAME;
}

static uint32_t free_frame(mpiox_server *server)
{
    const uint32_t frame = server->lists[MPIOX_FREE].last; /* the one that was freed last */
    return frame != MPIOX_CACHE_NO_FRAME ? frame : reuse(server);
}

static uint32_t find_room(mpiox_server *server)
{
    const int32_t few = server->cache.frame_count / 4;
    uint32_t frame = free_frame(server);
    if (frame == MPIOX_CACHE_NO_FRAME) {
        age(server, server->parked.count + 1 + few, true);
        frame = reuse(server);
    }
    return frame;
}

/* A page comes into a frame without one; it is held for a client if `hold`. */
static void put_in(mpiox_server *server, uint32_t frame, int32_t file, int64_t page, enum mpiox_residence residence,
                   bool hold)
{
    const int32_t few = server->cache.frame_count / 4;
    mpiox_frame_insert(&server->cache, frame, file, page, hold);
    mpiox_server_list_append(server, &server->files[file].frames, frame);
    mpiox_server_reside(server, frame, residence);
    if (server->lists[MPIOX_FREE].count < few)
        age(server, few - server->lists[MPIOX_FREE].count, residence != MPIOX_AHEAD);
}

/* For each parked request a frame must be on its way: let I/O threads have those that clients hold again and again. */
static void press(mpiox_server *server)
{
    mpiox_frame_list *lists = server->lists;
    if (server->ending)
        return;
    age(server, server->parked.count, true);
    while (lists[MPIOX_LEAVING].count < server->parked.count && lists[MPIOX_REUSABLE].count > 0) {
        const uint32_t frame = lists[MPIOX_REUSABLE].first;
        mpiox_server_reside(server, frame, MPIOX_LEAVING);
        mpiox_server_want(server, frame, MPIOX_WANT_DROP);
    }
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

static void answer(mpiox_server *server, mpiox_slot *slot, int result)
{
    MPIOX_COUNT(server, requests, 1);
    mpiox_ring_answer(slot, result);
}

static void answer_held(mpiox_server *server, mpiox_slot *slot, uint32_t frame)
{
    slot->frame = frame;
    answer(server, slot, MPIOX_OK);
}

/* Hold a frame for a client, unless it is in exclusive use. */
static bool hold_now(const mpiox_server *server, uint32_t frame)
{
    _Atomic uint32_t *holds = &server->cache.frames[frame].holds;
    uint32_t seen = atomic_load(holds);
    while (!(seen & MPIOX_FRAME_EXCLUSIVE)) {
        if (atomic_compare_exchange_weak(holds, &seen, seen + 1))
            return true;
    }
    return false;
}

/* The page is in the table. Exclusive use without the lock is a busy thread's, which serves the waiting at its end. */
static void serve_present(mpiox_server *server, mpiox_slot *slot, uint32_t frame)
{
    const bool ready = slot->arg[0] == 0 || flags_of(server, frame) & MPIOX_FRAME_FILLED;
    if (ready && hold_now(server, frame)) {
        answer_held(server, slot, frame);
        return;
    }
    mpiox_server_requests_append(server, &server->info[frame].waiting, slot);
    if (!ready) {
        server->files[slot->file].read = true;
        mpiox_server_want(server, frame, MPIOX_WANT_FILL);
    }
}

static bool is_open(const mpiox_server *server, int32_t file)
{
    return file >= 0 && file < MPIOX_CACHE_MAX_FILES && server->files[file].storage != NULL;
}

/* False: there is no frame for it; nothing was done. At the end of the delegate no page is given out any more. */
static bool serve(mpiox_server *server, mpiox_slot *slot)
{
    if (server->ending)
        return false;
    const int owner = is_open(server, slot->file) && slot->page >= 0
                          ? mpiox_server_look_at_owner(server, slot->file, slot->page)
                          : -1;
    if (owner < 0 || owner == MPIOX_FRAME_MOVED) { /* MPIOX_PAGE_MOVED is the same number */
        answer(server, slot, owner < 0 ? MPIOX_E_ARG : owner);
        return true;
    }
    if (owner == MPIOX_FRAME_MISS) {
        mpiox_server_requests_append(server, &server->moving, slot);
        return true;
    }
    uint32_t frame = mpiox_frame_find(&server->cache, slot->file, slot->page);
    if (frame == MPIOX_CACHE_NO_FRAME) {
        if (mpiox_server_is_replica(server, slot->file) && mpiox_server_replicas_are_full(server)) {
            answer(server, slot, MPIOX_E_FULL);
            return true;
        }
        const bool again = is_remembered(server, slot->file, slot->page);
        frame = find_room(server);
        if (frame == MPIOX_CACHE_NO_FRAME)
            return false;
        put_in(server, frame, slot->file, slot->page, again ? MPIOX_FREQUENT : MPIOX_RECENT, slot->arg[0] == 0);
        if (slot->arg[0] == 0) {
            answer_held(server, slot, frame);
            return true;
        }
    }
    serve_present(server, slot, frame);
    return true;
}

void mpiox_server_ask_page(mpiox_server *server, mpiox_slot *slot)
{
    const int32_t file = slot->file;
    const int64_t count = slot->arg[0] == 0 ? 0 : slot->arg[1];
    int64_t ahead[MPIOX_OP_AHEAD]; /* the slot is the client's again when it is answered */
    memcpy(ahead, slot->ahead, sizeof ahead);
    const bool first = server->parked.count == 0;
    const bool there = is_open(server, file) &&
                       mpiox_frame_find(&server->cache, file, slot->page) != MPIOX_CACHE_NO_FRAME;
    if ((!first && !there) || !serve(server, slot)) {
        MPIOX_COUNT(server, waits, 1);
        mpiox_server_requests_append(server, &server->parked, slot);
        press(server);
    }
    mpiox_server_read_ahead(server, file, ahead, count);
}

/* A page has come: whoever else waits for a frame for it needs none any more. */
static void serve_same_page(mpiox_server *server, int32_t file, int64_t page)
{
    mpiox_requests others = {.count = 0};
    mpiox_slot *slot;
    while ((slot = mpiox_server_requests_take(server, &server->parked)) != NULL) {
        if (slot->file != file || slot->page != page || !serve(server, slot))
            mpiox_server_requests_append(server, &others, slot);
    }
    server->parked = others;
}

void mpiox_server_serve_parked(mpiox_server *server)
{
    mpiox_slot *slot;
    while ((slot = mpiox_server_requests_first(server, &server->parked)) != NULL) {
        const mpiox_requests before = server->parked;
        const int32_t file = slot->file;
        const int64_t page = slot->page; /* the slot may be the client's again in a moment */
        (void)mpiox_server_requests_take(server, &server->parked);
        if (!serve(server, slot)) {
            server->parked = before;
            press(server);
            return;
        }
        serve_same_page(server, file, page);
    }
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
        if (slot->arg[0] == 0) {
            mpiox_server_requests_append(server, &others, slot);
        } else {
            slot->error = *error;
            answer(server, slot, MPIOX_E_IO);
        }
    }
    mpiox_server_requests_move(server, queue, &others);
}

void mpiox_server_offer(mpiox_server *server, uint32_t frame)
{
    const mpiox_frame_info *info = &server->info[frame];
    const bool whole = flags_of(server, frame) & MPIOX_FRAME_FILLED;
    if (whole && !server->files[mpiox_server_file_of(server, frame)].read && info->residence != MPIOX_FREQUENT)
        mpiox_server_reside_first(server, frame, MPIOX_REUSABLE);
    else if (info->residence == MPIOX_LEAVING || (server->parked.count > 0 && info->residence == MPIOX_RECENT))
        mpiox_server_reside(server, frame, MPIOX_REUSABLE);
}

/* ---- reading ahead ----------------------------------------------------------------------------------------------- */

/* Find pages that have been used meanwhile. */
static void judge_some(mpiox_server *server)
{
    mpiox_frame_list *list = &server->lists[MPIOX_AHEAD];
    for (int32_t left = list->count < AHEAD_STEPS ? list->count : AHEAD_STEPS; left > 0; left--) {
        const uint32_t frame = list->first;
        if (!judge(server, frame))
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

void mpiox_server_read_ahead(mpiox_server *server, int32_t file, const int64_t *pages, int64_t count)
{
    if (count <= 0 || server->options.prefetch_pages <= 0 || server->ending || !is_open(server, file))
        return;
    mpiox_ahead_record *record = &server->files[file].ahead;
    judge_some(server);
    const int64_t depth = depth_of(server, record);
    for (int64_t i = 0; i < count && i < depth && i < MPIOX_OP_AHEAD; i++) {
        if (pages[i] < 0 || mpiox_server_look_at_owner(server, file, pages[i]) != MPIOX_FRAME_HIT ||
            mpiox_frame_find(&server->cache, file, pages[i]) != MPIOX_CACHE_NO_FRAME)
            continue;
        if (server->parked.count > 0 || server->lists[MPIOX_AHEAD].count >= server->cache.frame_count / 2)
            return;
        const uint32_t frame = free_frame(server);
        if (frame == MPIOX_CACHE_NO_FRAME)
            return;
        record->issued++;
        put_in(server, frame, file, pages[i], MPIOX_AHEAD, false);
        mpiox_server_want(server, frame, MPIOX_WANT_AHEAD);
    }
}
