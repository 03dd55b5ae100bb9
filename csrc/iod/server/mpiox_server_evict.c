/*
 * mpiox_server_evict.c - a frame for a new page.
 *
 * Problem.    Few frames, or one, must do for any number of clients. One pass over a large file must not drive out
 *             pages that are used again and again. Pages to which clients still add bytes should not be written in
 *             fragments.
 * Algorithm.  2Q: a page in the cache for the first time is recent (first in, first out). If it has left and comes back
 *             while the delegate still remembers it as a ghost, it is frequent (clock). Frames leave from the recent
 *             ones while these are more than a quarter, otherwise from the frequent ones. When its turn comes a dirty
 *             frame goes to the I/O threads (leaving); a clean one can still be found until it is reused (reusable).
 *             Frames leave when fewer than a quarter of all are free or reusable.
 *             A page that was written completely is useless in a file that cannot be read, and almost useless in one
 *             that no client has read yet: it is freed, or reused next, at once, and the last one first. So a stream of
 *             writes circulates in a few frames, which stay in the processor's cache.
 * Patience.   Clients that write interleaved pieces drift apart. If the first of them finds no frame, it should wait
 *             while the others continue and complete pages, rather than have incomplete pages written. So a parked
 *             request waits as long as other clients write, for a few milliseconds at most. If a page has become
 *             complete by then, the next request waits for up to twice as long; if not, for half as long, and in the
 *             end not at all. Then the threads write incomplete pages ahead of need, too, until enough of these pages
 *             are needed again.
 * Guarantees. While requests are parked, a frame is on its way or the patience runs.
 * Source.     T. Johnson and D. Shasha, "2Q: a low overhead high performance buffer management replacement algorithm",
 *             VLDB 1994.
 */
#include "mpiox_server_evict.h"

enum {
    STEPS = 64,         /* frames that are inspected for one that can leave, while others are on their way */
    PROGRESS = 5,       /* part of the patience without any progress that ends it */
    REGRETS = 8,        /* signs that patience would help until it is tried again; more after each trial in vain, */
    REGRETS_MOST = 4096 /* up to this */
};
static const double patience_most_s = 250e-3, patience_least_s = 1e-3, idle_s = 1e-3;
static const double writing_s = 1; /* the most that is waited for complete pages that are being written */

enum { CLEAN_ONLY, WRITE_COMPLETE, WRITE_IDLE, WRITE_ANY }; /* which frames may leave */

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
    *ghost_of(server, file, page) = (mpiox_ghost){page, file, server->ghost_number++, server->info[frame].incomplete};
}

/* Half as many pages as there are frames are remembered. NULL: the page is not. */
static const mpiox_ghost *remembered(const mpiox_server *server, int32_t file, int64_t page)
{
    const mpiox_ghost *ghost = ghost_of(server, file, page);
    const uint32_t since = server->ghost_number - ghost->number;
    const bool is = ghost->file == file && ghost->page == page && since <= (uint32_t)server->cache.frame_count / 2 + 1;
    return is ? ghost : NULL;
}

/* ---- patience ---------------------------------------------------------------------------------------------------- */

/* A page that was written incomplete is written again, or a request is parked: patience might have helped. */
static void regret(mpiox_server *server)
{
    if (server->patience > 0 || ++server->regrets < server->regrets_needed)
        return;
    server->regrets = 0;
    server->patience = patience_least_s;
}

static void gain_patience(mpiox_server *server)
{
    server->waiting_since = 0;
    if (server->patience == 0)
        return;
    server->regrets_needed = REGRETS;
    server->patience *= 2;
    if (server->patience > patience_most_s)
        server->patience = patience_most_s;
}

static void lose_patience(mpiox_server *server)
{
    const bool waited = server->waiting_since > 0 && server->patience > 0;
    server->waiting_since = 0;
    if (!waited)
        return;
    server->patience /= 2;
    if (server->patience >= patience_least_s)
        return;
    server->patience = 0;
    server->regrets = 0;
    if (server->regrets_needed < REGRETS_MOST)
        server->regrets_needed *= 2;
}

/* ---- pages that leave -------------------------------------------------------------------------------------------- */

bool mpiox_server_judge(mpiox_server *server, uint32_t frame)
{
    const uint32_t flags = mpiox_server_flags_of(server, frame);
    if (!(flags & MPIOX_FRAME_FILLED) || flags & MPIOX_FRAME_PREFETCHED)
        return false;
    server->files[mpiox_server_file_of(server, frame)].ahead.used++;
    mpiox_server_reside(server, frame, MPIOX_RECENT);
    return true;
}

void mpiox_server_take_out(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    mpiox_server_file *file = &server->files[mpiox_server_file_of(server, frame)];
    if (mpiox_server_flags_of(server, frame) & MPIOX_FRAME_PREFETCHED)
        MPIOX_COUNT(server, prefetch_wasted, 1);
    else if (info->residence == MPIOX_AHEAD)
        file->ahead.used++;
    mpiox_server_list_remove(server, &file->frames, frame);
    /* All deposited bytes are in the file: its own size counts again, also if a process without delegates has made it
     * shorter. No client deposits meanwhile: that needs a frame. */
    if (file->frames.count == 0)
        atomic_store(&server->cache.header->files[mpiox_server_file_of(server, frame)].end, 0);
    mpiox_frame_remove(&server->cache, frame);
    info->frequent = false;
    info->tries = 0;
    info->marked = false;
    info->pinned_since = 0;
    mpiox_server_satisfy(server, frame, UINT8_MAX);
    mpiox_server_reside(server, frame, MPIOX_FREE);
}

/* Has no client written to the page for a while? Frames are inspected again and again while requests are parked. */
static bool is_idle(mpiox_server *server, uint32_t frame, double now)
{
    mpiox_frame_info *info = &server->info[frame];
    const uint32_t writes = atomic_load_explicit(&server->cache.frames[frame].writes, memory_order_relaxed);
    if (writes != info->seen_writes) {
        info->seen_writes = writes;
        info->seen_at = now;
    }
    return now - info->seen_at >= idle_s;
}

static bool may_leave(mpiox_server *server, uint32_t frame, int which, double now)
{
    const int64_t dirty = mpiox_server_dirty_of(server, frame);
    if (dirty == 0 || which == WRITE_ANY)
        return true;
    if (which == CLEAN_ONLY)
        return false;
    return dirty == server->cache.page_bytes || (which == WRITE_IDLE && is_idle(server, frame, now));
}

/* Inspect a frame of a residence: it leaves, or gets another turn, or stays. True: it leaves though it is dirty and
 * incomplete. */
static bool age_one(mpiox_server *server, uint32_t frame, enum mpiox_residence from, int which, double now)
{
    mpiox_frame_info *info = &server->info[frame];
    if (info->busy || info->wants != 0 || mpiox_server_is_replica(server, mpiox_server_file_of(server, frame)) ||
        (from == MPIOX_AHEAD && mpiox_server_judge(server, frame)))
        return false;
    if (from == MPIOX_FREQUENT &&
        atomic_fetch_and(&server->cache.frames[frame].flags, ~(uint32_t)MPIOX_FRAME_REFERENCED) &
            MPIOX_FRAME_REFERENCED) {
        mpiox_server_reside(server, frame, from);
        return false;
    }
    const int64_t dirty = mpiox_server_dirty_of(server, frame);
    if (!may_leave(server, frame, which, now))
        return false;
    info->frequent = from == MPIOX_FREQUENT;
    info->incomplete = dirty > 0 && dirty < server->cache.page_bytes;
    mpiox_server_reside(server, frame, dirty > 0 ? MPIOX_LEAVING : MPIOX_REUSABLE);
    if (dirty > 0)
        mpiox_server_want(server, frame, MPIOX_WANT_FLUSH);
    return info->incomplete;
}

/* Let frames leave until so many are reusable or on their way. Returns how many are incomplete. */
static int age(mpiox_server *server, int32_t target, int which)
{
    static const enum mpiox_residence orders[2][3] = {{MPIOX_RECENT, MPIOX_FREQUENT, MPIOX_AHEAD},
                                                      {MPIOX_FREQUENT, MPIOX_RECENT, MPIOX_AHEAD}};
    const mpiox_frame_list *lists = server->lists;
    const bool recent = lists[MPIOX_RECENT].count > server->cache.frame_count / 4;
    const double now = mpiox_now();
    int incomplete = 0;
    /* Frames that I/O threads work on come back by themselves. */
    int64_t steps = server->wanted > 0 ? STEPS : 2 * (int64_t)server->cache.frame_count;
    for (int i = 0; i < 3; i++) {
        uint32_t next, frame = lists[orders[recent ? 0 : 1][i]].first;
        for (; frame != MPIOX_CACHE_NO_FRAME && steps-- > 0; frame = next) {
            if (lists[MPIOX_REUSABLE].count + lists[MPIOX_LEAVING].count >= target)
                return incomplete;
            next = server->info[frame].links[MPIOX_LINK_RESIDENCE].next;
            incomplete += age_one(server, frame, orders[recent ? 0 : 1][i], which, now);
        }
    }
    return incomplete;
}

/* ---- frames for pages that come ---------------------------------------------------------------------------------- */

/* Make a reusable frame free. False: it is not to be had now. */
static bool reuse(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    if (info->busy || info->wants != 0 || !mpiox_frame_try_exclusive(&server->cache, frame)) {
        mpiox_server_reside(server, frame, MPIOX_REUSABLE);
        return false;
    }
    if (mpiox_server_dirty_of(server, frame) > 0) { /* written again */
        mpiox_frame_end_exclusive(&server->cache, frame);
        mpiox_server_reside(server, frame, info->frequent ? MPIOX_FREQUENT : MPIOX_RECENT);
        if (info->incomplete)
            regret(server);
        return false;
    }
    if (!info->frequent)
        remember(server, frame);
    MPIOX_COUNT(server, evictions, 1);
    mpiox_server_take_out(server, frame);
    return true;
}

/* The frame that was freed last, or else the first reusable one without exclusive user. */
static uint32_t free_frame(mpiox_server *server)
{
    const mpiox_frame_list *reusable = &server->lists[MPIOX_REUSABLE];
    for (int32_t left = reusable->count; server->lists[MPIOX_FREE].count == 0 && left > 0; left--)
        (void)reuse(server, reusable->first);
    return server->lists[MPIOX_FREE].last;
}

/* The kinds of pages that may be written so that frames are in reserve. */
static int ahead_of_need(const mpiox_server *server)
{
    return server->patience > 0 ? WRITE_COMPLETE : WRITE_ANY;
}

uint32_t mpiox_server_find_room(mpiox_server *server, bool press)
{
    uint32_t frame = free_frame(server);
    if (frame == MPIOX_CACHE_NO_FRAME && press) {
        (void)age(server, server->parked.count + 1 + server->cache.frame_count / 4, ahead_of_need(server));
        frame = free_frame(server);
    }
    if (frame != MPIOX_CACHE_NO_FRAME && server->waiting_since > 0) /* a client has completed a page */
        gain_patience(server);
    return frame;
}

void mpiox_server_put_in(mpiox_server *server, uint32_t frame, int32_t file, int64_t page, bool ahead, bool pin)
{
    mpiox_frame_info *info = &server->info[frame];
    const int32_t few = server->cache.frame_count / 4 - server->lists[MPIOX_FREE].count + 1;
    const mpiox_ghost *ghost = remembered(server, file, page);
    const enum mpiox_residence residence = ahead ? MPIOX_AHEAD : (ghost != NULL ? MPIOX_FREQUENT : MPIOX_RECENT);
    mpiox_frame_insert(&server->cache, frame, file, page, pin);
    mpiox_server_list_append(server, &server->files[file].frames, frame);
    mpiox_server_reside(server, frame, residence);
    info->seen_writes = atomic_load_explicit(&server->cache.frames[frame].writes, memory_order_relaxed);
    info->seen_at = 0;
    info->incomplete = false;
    if (info->suspect > 0 && !mpiox_server_is_replica(server, file)) /* a client that has pinned it while it was free */
        mpiox_server_want(server, frame, MPIOX_WANT_FLUSH);
    if (ghost != NULL && ghost->incomplete && pin)
        regret(server);
    if (few > 0)
        (void)age(server, few, ahead ? CLEAN_ONLY : ahead_of_need(server));
}

void mpiox_server_offer(mpiox_server *server, uint32_t frame)
{
    const mpiox_frame_info *info = &server->info[frame];
    const bool whole = mpiox_server_flags_of(server, frame) & MPIOX_FRAME_FILLED;
    if (whole && !server->files[mpiox_server_file_of(server, frame)].read && info->residence != MPIOX_FREQUENT)
        mpiox_server_reside_first(server, frame, MPIOX_REUSABLE);
    else if (info->residence == MPIOX_LEAVING || (server->parked.count > 0 && info->residence == MPIOX_RECENT))
        mpiox_server_reside(server, frame, MPIOX_REUSABLE);
}

/* ---- parked requests --------------------------------------------------------------------------------------------- */

static int64_t count_writes(const mpiox_server *server)
{
    int64_t writes = 0;
    for (int i = 0; i < MPIOX_CACHE_SHARDS; i++)
        writes += atomic_load_explicit(&server->cache.header->shards[i].writes, memory_order_relaxed);
    return writes;
}

/* Nothing is on its way: is it worth waiting for what I/O threads and clients do? */
static bool is_worth_waiting(mpiox_server *server, double now)
{
    const int64_t writes = count_writes(server);
    if (server->waiting_since == 0) {
        regret(server);
        server->waiting_since = now;
        server->progress_at = now;
    }
    if (server->progress != writes || server->writing > 0) {
        server->progress = writes;
        server->progress_at = now;
    }
    if (server->writing > 0 && now - server->waiting_since < writing_s)
        return true;
    const int32_t clients = atomic_load(&server->clients);
    if (clients > 0 && server->parked.count >= clients) /* no client is left to make progress, or nearly none */
        return false;
    return now - server->progress_at < server->patience / PROGRESS && now - server->waiting_since < server->patience;
}

void mpiox_server_press(mpiox_server *server)
{
    const mpiox_frame_list *lists = server->lists;
    const int32_t parked = server->parked.count;
    if (server->ending || parked == 0)
        return;
    (void)age(server, parked, WRITE_COMPLETE);
    while (lists[MPIOX_LEAVING].count < parked && lists[MPIOX_REUSABLE].count > 0) { /* pinned again and again */
        const uint32_t frame = lists[MPIOX_REUSABLE].first;
        mpiox_server_reside(server, frame, MPIOX_LEAVING);
        mpiox_server_want(server, frame, MPIOX_WANT_DROP);
    }
    if (lists[MPIOX_LEAVING].count > 0 || is_worth_waiting(server, mpiox_now()))
        return;
    if (age(server, parked, WRITE_IDLE) == 0)
        (void)age(server, parked, WRITE_ANY);
    lose_patience(server);
}
