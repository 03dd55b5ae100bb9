/*
 * mpiox_server_state.c - lists of frames, queues of requests, and the work that waits for the I/O threads.
 *
 * Each file has a tree by page of the frames that wait to be flushed, so that a thread finds the next one in file order
 * in logarithmic time, however many there are (mpiox_treap.h).
 */
#include "mpiox_server_state.h"

#include <assert.h>
#include <signal.h>
#include <unistd.h>

#include "mpiox_storage_lock.h"

enum { IN_TREE = MPIOX_WANT_FLUSH | MPIOX_WANT_DROP | MPIOX_WANT_CUT };
enum { QUEUE_NONE = 0, QUEUE_FILL = 1, QUEUE_AHEAD = 2 };

static int64_t now_ns(void)
{
    return (int64_t)(mpiox_now() * 1e9);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

void mpiox_server_list_append(mpiox_server *server, mpiox_frame_list *list, uint32_t frame)
{
    assert(frame < (uint32_t)server->cache.frame_count);
    server->info[frame].links[list->kind].previous = list->last;
    server->info[frame].links[list->kind].next = MPIOX_CACHE_NO_FRAME;
    if (list->last != MPIOX_CACHE_NO_FRAME)
        server->info[list->last].links[list->kind].next = frame;
    else
        list->first = frame;
    list->last = frame;
    list->count++;
}

static void list_prepend(mpiox_server *server, mpiox_frame_list *list, uint32_t frame)
{
    server->info[frame].links[list->kind].previous = MPIOX_CACHE_NO_FRAME;
    server->info[frame].links[list->kind].next = list->first;
    if (list->first != MPIOX_CACHE_NO_FRAME)
        server->info[list->first].links[list->kind].previous = frame;
    else
        list->last = frame;
    list->first = frame;
    list->count++;
}

void mpiox_server_list_remove(mpiox_server *server, mpiox_frame_list *list, uint32_t frame)
{
    const uint32_t previous = server->info[frame].links[list->kind].previous;
    const uint32_t next = server->info[frame].links[list->kind].next;
    assert(list->count > 0 && (previous != MPIOX_CACHE_NO_FRAME || list->first == frame));
    if (previous != MPIOX_CACHE_NO_FRAME)
        server->info[previous].links[list->kind].next = next;
    else
        list->first = next;
    if (next != MPIOX_CACHE_NO_FRAME)
        server->info[next].links[list->kind].previous = previous;
    else
        list->last = previous;
    list->count--;
}

void mpiox_server_reside(mpiox_server *server, uint32_t frame, enum mpiox_residence residence)
{
    mpiox_server_list_remove(server, &server->lists[server->info[frame].residence], frame);
    server->info[frame].residence = (uint8_t)residence;
    mpiox_server_list_append(server, &server->lists[residence], frame);
}

void mpiox_server_reside_first(mpiox_server *server, uint32_t frame, enum mpiox_residence residence)
{
    mpiox_server_list_remove(server, &server->lists[server->info[frame].residence], frame);
    server->info[frame].residence = (uint8_t)residence;
    list_prepend(server, &server->lists[residence], frame);
}

/* ---- files that are copies of other delegates' pages ------------------------------------------------------------- */

bool mpiox_server_is_replica(const mpiox_server *server, int32_t file)
{
    return file >= 0 &&
           atomic_load_explicit(&server->cache.header->files[file].flags, memory_order_relaxed) & MPIOX_FILE_REPLICA;
}

bool mpiox_server_replicas_are_full(const mpiox_server *server)
{
    int32_t frames = 0;
    for (int32_t file = 0; file < MPIOX_CACHE_MAX_FILES; file++) {
        if (server->files[file].storage != NULL && mpiox_server_is_replica(server, file))
            frames += server->files[file].frames.count;
    }
    return frames >= server->cache.frame_count / 2;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static mpiox_slot *slots_of(const mpiox_server *server)
{
    return (mpiox_slot *)(void *)((char *)server->cache.ring + server->cache.ring->slots_at);
}

void mpiox_server_requests_append(mpiox_server *server, mpiox_requests *queue, mpiox_slot *slot)
{
    const uint32_t number = (uint32_t)(slot - slots_of(server));
    assert(number < (uint32_t)server->options.geometry.slots);
    server->request_next[number] = MPIOX_NO_REQUEST;
    if (queue->count++ == 0)
        queue->first = number;
    else
        server->request_next[queue->last] = number;
    queue->last = number;
}

mpiox_slot *mpiox_server_requests_first(const mpiox_server *server, const mpiox_requests *queue)
{
    return queue->count > 0 ? slots_of(server) + queue->first : NULL;
}

mpiox_slot *mpiox_server_requests_take(mpiox_server *server, mpiox_requests *queue)
{
    mpiox_slot *slot = mpiox_server_requests_first(server, queue);
    if (slot != NULL) {
        queue->first = server->request_next[queue->first];
        queue->count--;
    }
    return slot;
}

void mpiox_server_requests_move(mpiox_server *server, mpiox_requests *queue, mpiox_requests *from)
{
    if (from->count == 0)
        return;
    if (queue->count == 0)
        queue->first = from->first;
    else
        server->request_next[queue->last] = from->first;
    queue->last = from->last;
    queue->count += from->count;
    from->count = 0;
}

/* ---- the tree of a file ------------------------------------------------------------------------------------------ */

static bool is_before(const void *owner, uint32_t frame, const void *page)
{
    return mpiox_server_page_of(owner, frame) < *(const int64_t *)page;
}

static mpiox_treap treap_of(mpiox_server *server)
{
    return (mpiox_treap){server, &server->info[0].node, sizeof server->info[0], is_before, NULL};
}

static void tree_insert(mpiox_server *server, uint32_t *tree, uint32_t frame)
{
    const mpiox_treap treap = treap_of(server);
    const int64_t page = mpiox_server_page_of(server, frame);
    assert(!server->info[frame].in_tree);
    mpiox_treap_insert(&treap, tree, frame, &page);
    server->info[frame].in_tree = true;
}

static void tree_remove(mpiox_server *server, uint32_t *tree, uint32_t frame)
{
    const mpiox_treap treap = treap_of(server);
    const int64_t page = mpiox_server_page_of(server, frame), behind = page + 1;
    mpiox_treap_remove(&treap, tree, &page, &behind);
    server->info[frame].in_tree = false;
}

/* The frame of the lowest page >= page. */
static uint32_t tree_find(const mpiox_server *server, uint32_t tree, int64_t page)
{
    uint32_t found = MPIOX_CACHE_NO_FRAME;
    while (tree != MPIOX_CACHE_NO_FRAME) {
        if (mpiox_server_page_of(server, tree) >= page) {
            found = tree;
            tree = server->info[tree].node.left;
        } else {
            tree = server->info[tree].node.right;
        }
    }
    return found;
}

uint32_t mpiox_server_next_in_file(const mpiox_server *server, int32_t file)
{
    const mpiox_server_file *at = &server->files[file];
    const uint32_t found = tree_find(server, at->tree, at->position);
    return found != MPIOX_CACHE_NO_FRAME ? found : tree_find(server, at->tree, 0);
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

void mpiox_server_wake(mpiox_server *server)
{
    if (server->idle_threads > 0)
        pthread_cond_signal(&server->work);
}

void mpiox_server_show_closed(const mpiox_server *server, int32_t file)
{
    const mpiox_server_file *of = &server->files[file];
    const bool closed = atomic_load(&server->cache.header->files[file].flags) & MPIOX_FILE_DRAINING &&
                        of->drain.failing_since <= 0;
    if (of->guard > 0)
        (void)mpiox_storage_guard(of->guard, closed ? MPIOX_GUARD_CLOSED : MPIOX_GUARD_REOPENED);
}

void mpiox_server_begin_drain(mpiox_server *server, int32_t file)
{
    mpiox_file_record *record = &server->cache.header->files[file];
    mpiox_server_drain *drain = &server->files[file].drain;
    assert(mpiox_server_is_locked(server) && mpiox_server_is_open(server, file));
    drain->number = ++server->closings;
    drain->soon = drain->named = drain->removed = false;
    drain->pause = drain->again = drain->failing_since = 0;
    atomic_store(&record->drain_errno, 0);
    atomic_fetch_or(&record->flags, MPIOX_FILE_DRAINING);
    mpiox_server_show_closed(server, file);
    mpiox_server_wake(server);
}

static void leave_fill_queue(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    if (info->fill_queue != QUEUE_NONE)
        mpiox_server_list_remove(server, info->fill_queue == QUEUE_FILL ? &server->fills : &server->aheads, frame);
    info->fill_queue = QUEUE_NONE;
}

/* ---- with a scheduler -------------------------------------------------------------------------------------------- */

/* A page is a request; its flow is a client's requests of a file. Only what is read ahead is not: it comes last. */
static void order_request(mpiox_server *server, uint32_t frame, bool write)
{
    const mpiox_frame_info *info = &server->info[frame];
    const int32_t file = mpiox_server_file_of(server, frame);
    const mpiox_server_file *at = &server->files[file];
    const int64_t offset = mpiox_server_page_of(server, frame) * server->cache.page_bytes;
    const int64_t unit_bytes = server->cache.header->files[file].unit_pages * server->cache.page_bytes;
    const int32_t client = write ? atomic_load_explicit(&server->cache.frames[frame].client, memory_order_relaxed)
                                 : info->reader;
    const mpiox_schedule_request request = {
        .file = file,
        .offset = offset,
        .length = server->cache.page_bytes,
        .flow = (int64_t)client * MPIOX_CACHE_MAX_FILES + file,
        .weight = at->weight,
        .target = mpiox_server_target_of(&at->targets, offset, unit_bytes, at->servers),
        .write = write,
        .tag = frame};
    (void)mpiox_schedule_add(server->schedule, &request, now_ns(), &server->info[frame].ordered[write]);
}

void mpiox_server_order_again(mpiox_server *server, uint32_t frame)
{
    const mpiox_frame_info *info = &server->info[frame];
    if (info->in_tree && info->ordered[true] == MPIOX_SCHEDULE_NONE)
        order_request(server, frame, true);
    if (info->fill_queue == QUEUE_FILL && info->ordered[false] == MPIOX_SCHEDULE_NONE)
        order_request(server, frame, false);
}

static void leave_order(mpiox_server *server, uint32_t frame)
{
    for (int write = 0; write < 2; write++) {
        uint32_t *ordered = &server->info[frame].ordered[write];
        if (*ordered != MPIOX_SCHEDULE_NONE)
            (void)mpiox_schedule_cancel(server->schedule, *ordered);
        *ordered = MPIOX_SCHEDULE_NONE;
    }
}

static void publish_counters(mpiox_server *server)
{
    mpiox_schedule_counters from;
    mpiox_cache_counters *to = &server->cache.header->counters;
    mpiox_schedule_count(server->schedule, &from);
    atomic_store_explicit(&to->reordered, from.reordered, memory_order_relaxed);
    atomic_store_explicit(&to->merged, from.merged, memory_order_relaxed);
    atomic_store_explicit(&to->overdue, from.overdue, memory_order_relaxed);
    atomic_store_explicit(&to->windows, from.windows, memory_order_relaxed);
    atomic_store_explicit(&to->queued_most, from.depth_max, memory_order_relaxed);
}

/* Clients that wait for a flush barrier, or for the end, must not wait for windows too. A frame in work is in no queue,
 * so that its request is done for the scheduler as soon as it is taken out. */
int32_t mpiox_server_take_batch(mpiox_server *server, uint32_t *frames, bool *write)
{
    const bool hurry = server->ending || server->finish || server->barriers_used > 0;
    uint32_t ids[MPIOX_RUN_FRAMES];
    const int32_t count = mpiox_schedule_next(server->schedule, now_ns(), hurry, ids, &server->order_until);
    for (int32_t i = 0; i < count; i++) {
        const mpiox_schedule_request *request = mpiox_schedule_get(server->schedule, ids[i]);
        *write = request->write;
        frames[i] = (uint32_t)request->tag;
        server->info[frames[i]].ordered[*write] = MPIOX_SCHEDULE_NONE;
        (void)mpiox_schedule_done(server->schedule, ids[i]);
    }
    publish_counters(server);
    return count;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

static void queue_frame(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    const int8_t queue = info->wants & MPIOX_WANT_FILL ? QUEUE_FILL
                                                       : (info->wants & MPIOX_WANT_AHEAD ? QUEUE_AHEAD : QUEUE_NONE);
    if (info->wants & IN_TREE && !info->in_tree)
        tree_insert(server, &server->files[mpiox_server_file_of(server, frame)].tree, frame);
    if (queue != info->fill_queue) {
        leave_fill_queue(server, frame);
        if (queue != QUEUE_NONE)
            mpiox_server_list_append(server, queue == QUEUE_FILL ? &server->fills : &server->aheads, frame);
        info->fill_queue = queue;
    }
    if (server->schedule != NULL)
        mpiox_server_order_again(server, frame);
    mpiox_server_wake(server);
}

void mpiox_server_want(mpiox_server *server, uint32_t frame, uint8_t wants)
{
    mpiox_frame_info *info = &server->info[frame];
    assert(mpiox_server_is_locked(server) && mpiox_server_file_of(server, frame) >= 0);
    if ((info->wants & wants) == wants)
        return;
    if (info->wants == 0 && !info->busy)
        server->wanted++;
    if ((info->wants & IN_TREE) == 0 && wants & IN_TREE)
        server->writing++;
    info->wants |= wants;
    if (!info->busy)
        queue_frame(server, frame);
}

void mpiox_server_satisfy(mpiox_server *server, uint32_t frame, uint8_t wants)
{
    mpiox_frame_info *info = &server->info[frame];
    const bool writing = info->wants & IN_TREE;
    info->wants &= (uint8_t)~wants;
    if (writing && (info->wants & IN_TREE) == 0)
        server->writing--;
}

void mpiox_server_take_up(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    assert(mpiox_server_is_locked(server) && !info->busy);
    if (info->in_tree)
        tree_remove(server, &server->files[mpiox_server_file_of(server, frame)].tree, frame);
    leave_fill_queue(server, frame);
    if (server->schedule != NULL)
        leave_order(server, frame);
    info->busy = true;
    atomic_store_explicit(&server->cache.frames[frame].busy, 1, memory_order_relaxed);
}

void mpiox_server_put_down(mpiox_server *server, uint32_t frame)
{
    mpiox_frame_info *info = &server->info[frame];
    assert(mpiox_server_is_locked(server) && info->busy && server->wanted > 0);
    if (info->suspect > 0 && info->pinned_since == 0) {
        if (--info->suspect > 0 && mpiox_server_file_of(server, frame) >= 0)
            mpiox_server_want(server, frame, MPIOX_WANT_FLUSH);
        else if (info->suspect == 0 && --server->suspects == 0) /* no dead client has one pinned */
            atomic_store(&server->dead, 0);
    }
    info->busy = false;
    atomic_store_explicit(&server->cache.frames[frame].busy, 0, memory_order_relaxed);
    if (info->wants != 0)
        queue_frame(server, frame);
    else
        server->wanted--;
}

void mpiox_server_add_operation(mpiox_server *server, uint32_t operation)
{
    const uint32_t size = (uint32_t)server->options.geometry.slots + MPIOX_FLUSH_BARRIERS;
    assert(mpiox_server_is_locked(server) && server->operations_count < size);
    server->operations[(server->operations_head + server->operations_count++) % size] = operation;
    mpiox_server_wake(server);
}

void mpiox_server_look_at_disk(const mpiox_server *server)
{
    if (mpiox_segment_has_failed(server->cache.disk))
        mpiox_server_tear();
}

/* Other processes map the same memory: none can continue with it. Survivors do what can still be done. */
void mpiox_server_tear(void)
{
    signal(SIGBUS, SIG_DFL);
    kill(getpid(), SIGBUS);
    for (;;)
        pause();
}
