/*
 * mpiox_server_run.c - creating, running and ending a delegate; the service thread and the I/O threads.
 *
 * Service. The service thread takes tokens out of the ring, checks the clients every 100 ms, and does bookkeeping under
 *          the lock. A request about a whole file (a flush barrier) begins only when every earlier token has been taken
 *          out: the ring has no order, and a page that was named for reading ahead before a flush barrier must not be
 *          cached after it.
 * I/O. I/O threads carry out operations on files first, then fills and flushes in turn, so that neither starves, or in
 * the order of a scheduler, then pages that are read ahead.
 * Failure. If the disk of a cache fails, SIGBUS ends the process when a thread touches a page that cannot be read. The
 *          delegate ends itself if a system call (EFAULT) or a client reports the failure, or if the kernel could not
 *          write pages of the cache. It checks the latter ten times a second, and before it reports that bytes are in a
 *          file.
 * The end. When the last client has left (or after mpiox_server_stop()), the delegate gives out no page any more, and
 *          flushes and drops all pages. That needs exclusive use of every frame, so that bytes which clients still
 *          deposit in pinned frames are written, too. Then the state is ENDED.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_count.h"
#include "mpiox_server_drain.h"
#include "mpiox_server_files.h"
#include "mpiox_server_fill.h"
#include "mpiox_server_flush.h"
#include "mpiox_server_hidden.h"
#include "mpiox_server_order.h"
#include "mpiox_server_pages.h"
#include "mpiox_server_ranges.h"
#include "mpiox_server_replica.h"
#include "mpiox_testing.h"

static const double beat_s = 0.1, leaving_s = 0.005, leave_within_s = 1;
static const double default_patience_s = 60;   /* until the first client comes */
static const double first_patience_s = 250e-3; /* of parked requests, see mpiox_server_evict.c */
static const double parked_s = 0.5e-3;         /* interval between two checks */
static const int64_t default_quantum = INT64_C(4) << 20, most_batch_bytes = INT64_C(16) << 20;

enum { SECOND_NS = 1000000000 };

/* ---- creating ---------------------------------------------------------------------------------------------------- */

static bool allocate(mpiox_server *server)
{
    const size_t frames = (size_t)server->cache.frame_count, slots = (size_t)server->options.geometry.slots;
    server->info = calloc(frames, sizeof *server->info);
    server->ghost_count = (uint32_t)(2 * frames);
    server->ghosts = calloc(server->ghost_count, sizeof *server->ghosts);
    server->request_next = calloc(slots, sizeof *server->request_next);
    server->operations = calloc(slots + MPIOX_FLUSH_BARRIERS, sizeof *server->operations);
    return server->info != NULL && server->ghosts != NULL && server->request_next != NULL && server->operations != NULL;
}

static void make_empty(mpiox_server *server)
{
    const mpiox_frame_list none = {MPIOX_CACHE_NO_FRAME, MPIOX_CACHE_NO_FRAME, 0, MPIOX_LINK_RESIDENCE};
    uint32_t random = 1;
    for (int i = 0; i < MPIOX_RESIDENCES; i++)
        server->lists[i] = none;
    server->fills = server->aheads = none;
    server->fills.kind = server->aheads.kind = MPIOX_LINK_FILL;
    for (uint32_t i = 0; i < server->ghost_count; i++)
        server->ghosts[i].file = -1;
    for (int i = 0; i < MPIOX_CACHE_MAX_FILES; i++)
        server->files[i].tree = MPIOX_CACHE_NO_FRAME;
    for (uint32_t i = (uint32_t)server->cache.frame_count; i-- > 0;) { /* the first frames are taken first */
        random = random * 1664525 + 1013904223;
        server->info[i].node.priority = random;
        server->info[i].ordered[false] = server->info[i].ordered[true] = MPIOX_SCHEDULE_NONE;
        mpiox_server_list_append(server, &server->lists[MPIOX_FREE], i);
    }
}

static bool is_legal(const mpiox_server_options *options)
{
    return options->io_threads >= 1 && options->io_threads < MPIOX_CACHE_MAX_THREADS && options->delegates >= 1 &&
           options->delegate >= 0 && options->delegate < options->delegates && options->prefetch_pages >= 0;
}

/* The delegate's folder of a list: they are taken in turn. False: there is none. */
static bool folder_of(const mpiox_server_options *options, char *folder, size_t bytes)
{
    static const char between[] = ",;";
    char list[sizeof options->cache_dirs];
    const char *names[sizeof list / 2];
    char *rest = list;
    int count = 0;

    memcpy(list, options->cache_dirs, sizeof list);
    for (char *name = strtok_r(rest, between, &rest); name != NULL; name = strtok_r(NULL, between, &rest))
        names[count++] = name;
    if (count > 0)
        snprintf(folder, bytes, "%s", names[options->delegate % count]);
    return count > 0;
}

static int create_in_memory(mpiox_server *server, mpiox_error *error)
{
    const int64_t bytes = server->options.geometry.cap_bytes;
    int code = mpiox_segment_create(MPIOX_SEGMENT_MEMFD, bytes, &server->address, &server->segment, error);

    if (code == MPIOX_E_NOMEM)
        code = mpiox_segment_create(MPIOX_SEGMENT_FILE, bytes, &server->address, &server->segment, error);
    return code;
}

static int plan_segment(mpiox_cache_geometry *geometry, mpiox_error *error)
{
    const int code = mpiox_cache_plan(geometry);

    return code == MPIOX_OK
               ? code
               : mpiox_error_set(error, code, 0, -1, geometry->cap_bytes, "holding a page in mpiox_delegate_cache");
}

/* *refused: why a named folder cannot contain it. */
static int create_segment(mpiox_server *server, mpiox_error *refused, mpiox_error *error)
{
    mpiox_cache_geometry *geometry = &server->options.geometry;
    char folder[sizeof server->options.cache_dirs], name[MPIOX_SEGMENT_NAME] = "";
    int code = plan_segment(geometry, error);

    if (code != MPIOX_OK)
        return code;
    if (folder_of(&server->options, folder, sizeof folder))
        mpiox_segment_create_in(folder, geometry->cap_bytes, server->options.keep ? name : NULL, &server->address,
                                &server->segment, refused);
    if (server->segment.base == NULL && server->options.cache_dirs[0] != '\0' &&
        geometry->cap_bytes > server->options.memory_bytes) {
        geometry->cap_bytes = server->options.memory_bytes;
        code = plan_segment(geometry, error);
    }
    const bool in_memory = server->segment.base == NULL;
    if (code == MPIOX_OK && in_memory)
        code = create_in_memory(server, error);
    if (code != MPIOX_OK)
        return code;
    code = mpiox_cache_format(server->segment.base, geometry, server->options.delegate, server->options.delegates,
                              &server->cache);
    if (code == MPIOX_OK)
        snprintf(server->cache.header->kept, sizeof server->cache.header->kept, "%s", name);
    if (code == MPIOX_OK) {
        server->cache.disk = server->segment.on_disk ? server->segment.fd : -1;
        atomic_store(&server->cache.header->adopting, name[0] != '\0');
        server->cache.header->early = in_memory && server->options.early;
    }
    return code == MPIOX_OK ? code : mpiox_error_set(error, code, 0, -1, geometry->cap_bytes, "formatting a cache");
}

/* The difference from the schedule's times to the time of day, which delegates on different nodes share as far as their
 * clocks agree. It is computed once, so that setting the clock does not move times back. */
static int64_t clock_offset(void)
{
    const int64_t offset = mpiox_wall_ns() - (int64_t)(mpiox_now() * 1e9);
    return offset > 0 ? offset : 0;
}

/* Each page may wait to be filled and to be flushed. Delegates are at different servers. */
static int create_schedule(mpiox_server *server, mpiox_error *error)
{
    const mpiox_server_options *options = &server->options;
    const mpiox_schedule_options order = {
        .policy = options->scheduler,
        .capacity = 2 * (int64_t)server->cache.frame_count,
        .quantum = options->quantum > 0 ? options->quantum : default_quantum,
        .window_ns = 1000 * (int64_t)options->window_us,
        .patience_ns = 1000000 * (int64_t)options->order_patience_ms,
        .batch_bytes = most_batch_bytes,
        .batch_requests = MPIOX_RUN_FRAMES,
        .first_target = options->delegate,
        .clock_offset_ns = clock_offset(),
    };
    server->order_until = MPIOX_SCHEDULE_NEVER;
    if (options->scheduler[0] == '\0' || strcmp(options->scheduler, "elevator") == 0)
        return MPIOX_OK;
    int code = mpiox_schedule_create(&order, &server->schedule);
    if (code == MPIOX_OK && strcmp(options->scheduler, "wfq") == 0 &&
        (server->share = calloc(1 + MPIOX_RING_CLIENTS, sizeof *server->share)) == NULL)
        code = MPIOX_E_NOMEM;
    return code == MPIOX_OK ? code : mpiox_error_set(error, code, 0, -1, -1, "creating a delegate's scheduler");
}

int mpiox_server_create(const mpiox_server_options *options, mpiox_server **out, mpiox_segment_address *address,
                        mpiox_error *error)
{
    mpiox_error refused = {.code = MPIOX_OK};

    *out = NULL;
    if (!is_legal(options))
        return mpiox_error_set(error, MPIOX_E_ARG, EINVAL, -1, -1, "options of a delegate");
    mpiox_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "creating a delegate");
    server->options = *options;
    server->patience = first_patience_s;
    server->regrets_needed = 1;
    server->segment.fd = -1;
    pthread_mutex_init(&server->lock, NULL);
    mpiox_wait_make_condition(&server->work);
    int code = create_segment(server, &refused, error);
    if (code == MPIOX_OK && !allocate(server))
        code = mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "creating a delegate");
    if (code == MPIOX_OK)
        code = create_schedule(server, error);
    if (code != MPIOX_OK) {
        mpiox_server_free(server);
        return code;
    }
    make_empty(server);
    if (error != NULL)
        *error = refused;
    *address = server->address;
    *out = server;
    return MPIOX_OK;
}

const mpiox_cache *mpiox_server_cache(const mpiox_server *server)
{
    return &server->cache;
}

void mpiox_server_set_peers(mpiox_server *server, const mpiox_server_peers *peers)
{
    server->peers = *peers;
}

void mpiox_server_set_reports(mpiox_server *server, const mpiox_server_reports *reports)
{
    server->reports = *reports;
}

void mpiox_server_seal(mpiox_server *server)
{
    mpiox_segment_hide(&server->segment, &server->address);
}

void mpiox_server_free(mpiox_server *server)
{
    if (server == NULL)
        return;
    if (server->cache.header != NULL && server->cache.header->kept[0] != '\0' && !server->keeps)
        unlink(server->cache.header->kept);
    mpiox_segment_seal(&server->segment, &server->address);
    mpiox_segment_free(&server->segment);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->work);
    mpiox_schedule_free(server->schedule);
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++)
        mpiox_server_targets_free(&server->files[i].targets);
    free(server->share);
    free(server->info);
    free(server->ghosts);
    free(server->request_next);
    free(server->operations);
    free(server);
}

/* ---- I/O threads ------------------------------------------------------------------------------------------------- */

/* With the lock: one piece of work. False: there is none. */
static bool work(mpiox_server *server, mpiox_io *io)
{
    if (server->operations_count > 0) {
        mpiox_server_operate(server);
        return true;
    }
    if (server->schedule != NULL)
        return mpiox_server_order_some(server, io) || mpiox_server_fill_some(server, io, true) ||
               mpiox_server_drain_some(server, io);
    server->fill_turn = !server->fill_turn;
    if (server->fill_turn && mpiox_server_fill_some(server, io, false))
        return true;
    return mpiox_server_flush_some(server, io) || mpiox_server_fill_some(server, io, false) ||
           mpiox_server_fill_some(server, io, true) || mpiox_server_drain_some(server, io);
}

/* Until there is some, or a scheduler that waits serves again. */
static void wait_for_work(mpiox_server *server)
{
    const bool ordered = server->schedule != NULL && server->order_until != MPIOX_SCHEDULE_NEVER;
    const double due = mpiox_server_drain_due(server), order = (double)server->order_until / SECOND_NS;
    server->idle_threads++;
    mpiox_wait_condition(&server->work, &server->lock, ordered && order < due ? order : due);
    server->idle_threads--;
}

static void *io_thread(void *context)
{
    mpiox_io *io = context;
    mpiox_server *server = io->server;
    const int life = mpiox_cache_live(&server->cache);
    pthread_mutex_lock(&server->lock);
    while (true) {
        if (work(server, io))
            continue;
        if (server->finish)
            break;
        wait_for_work(server);
    }
    pthread_mutex_unlock(&server->lock);
    mpiox_cache_end_life(&server->cache, life);
    return NULL;
}

static void end_threads(mpiox_server *server, mpiox_io *threads, int count)
{
    pthread_mutex_lock(&server->lock);
    server->finish = true;
    pthread_cond_broadcast(&server->work);
    pthread_mutex_unlock(&server->lock);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].thread, NULL);
    for (int i = 0; threads != NULL && i < server->options.io_threads; i++)
        free(threads[i].scratch);
    free(threads);
}

/* Start the I/O threads, with all signals blocked: they are the program's. Fewer than requested are enough. Returns how
 * many run. */
static int start_threads(mpiox_server *server, mpiox_io **out)
{
    mpiox_io *threads = calloc((size_t)server->options.io_threads, sizeof *threads);
    sigset_t all, before;
    int count = 0;
    *out = threads;
    mpiox_count_threads();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; threads != NULL && count < server->options.io_threads; count++) {
        mpiox_io *io = &threads[count];
        io->server = server;
        io->scratch = malloc(MPIOX_SCRATCH);
        if (io->scratch == NULL || pthread_create(&io->thread, NULL, io_thread, io) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return count;
}

/* ---- the service thread ------------------------------------------------------------------------------------------ */

typedef struct service {
    mpiox_server *server;
    mpiox_requests flush_barriers; /* requests that begin when all tokens that are there now have been taken out */
    uint32_t tokens;               /* taken out since the first flush barrier arrived */
    double next_beat, began;
    double leaving; /* until then a leaving client may still be there: check more often */
} service;

/* A page is dirty as a whole, if the token is not an old one. */
static void take_frame(mpiox_server *server, uint32_t frame)
{
    const int32_t file = mpiox_server_file_of(server, frame);
    if (file < 0 || mpiox_server_dirty_of(server, frame) != server->cache.page_bytes)
        return;
    if (!mpiox_server_drain_defers(server, file))
        mpiox_server_want(server, frame, MPIOX_WANT_FLUSH);
}

static void take_slot(service *self, mpiox_slot *slot)
{
    mpiox_server *server = self->server;
    const mpiox_slot *first = (mpiox_slot *)(void *)((char *)server->cache.ring + server->cache.ring->slots_at);
    MPIOX_POINT_OF("request", mpiox_ring_op_name(slot->op));
    switch (slot->op) {
    case MPIOX_OP_OPEN:
        mpiox_server_add_operation(server, (uint32_t)(slot - first));
        return;
    case MPIOX_OP_PAGE:
        mpiox_server_ask_page(server, slot);
        return;
    case MPIOX_OP_CLOSE:
    case MPIOX_OP_FLUSH:
    case MPIOX_OP_DISCARD:
    case MPIOX_OP_MIGRATE:
    case MPIOX_OP_COMMIT:
        if (self->flush_barriers.count == 0)
            self->tokens = 0;
        mpiox_server_requests_append(server, &self->flush_barriers, slot);
        return;
    case MPIOX_OP_AHEAD_ONLY:
        mpiox_server_read_ahead(server, slot->file, &slot->question.ahead_only);
        mpiox_server_answer(server, slot, MPIOX_OK);
        return;
    case MPIOX_OP_REPLICA_MARK:
        mpiox_server_answer(server, slot, mpiox_server_mark_replica(server, slot->file));
        return;
    case MPIOX_OP_REPLICA_TRIM:
        mpiox_server_answer(server, slot, mpiox_server_trim_replica(server, slot->file));
        return;
    case MPIOX_OP_OWNER:
        mpiox_server_answer(server, slot, mpiox_server_answer_owner(server, slot));
        return;
    case MPIOX_OP_HOLD:
        mpiox_server_hold(server, slot);
        return;
    case MPIOX_OP_PEER:
        mpiox_server_answer(server, slot,
                            server->peers.name != NULL ? server->peers.name(server->peers.context, slot)
                                                       : MPIOX_E_UNSUPPORTED);
        return;
    case MPIOX_OP_DETACH:
        self->leaving = mpiox_now() + leave_within_s;
        atomic_store(&server->joined, true);
        mpiox_server_answer(server, slot, MPIOX_OK);
        return;
    default:
        mpiox_server_answer(server, slot, slot->op == MPIOX_OP_PING ? MPIOX_OK : MPIOX_E_ARG);
    }
}

static void begin_barriers(service *self)
{
    mpiox_slot *slot;
    while ((slot = mpiox_server_requests_take(self->server, &self->flush_barriers)) != NULL) {
        if (mpiox_server_closes_behind(self->server, slot))
            mpiox_server_close_behind(self->server, slot);
        else
            mpiox_server_ask_flush_barrier(self->server, slot);
    }
}

/* Take tokens out of the ring: as many as there can be at once, or more until the flush barriers have begun. */
static void take_tokens(service *self)
{
    mpiox_server *server = self->server;
    mpiox_slot *slot;
    uint32_t frame;
    for (uint32_t i = 0; i < server->cache.ring->tokens || self->flush_barriers.count > 0; i++) {
        const bool found = mpiox_ring_next(&server->cache, &slot, &frame);
        if (!found && self->flush_barriers.count == 0)
            return;
        pthread_mutex_lock(&server->lock);
        if (found && slot != NULL)
            take_slot(self, slot);
        else if (found)
            take_frame(server, frame);
        if (!found || ++self->tokens > server->cache.ring->tokens)
            begin_barriers(self);
        pthread_mutex_unlock(&server->lock);
        if (!found)
            return;
    }
}

/* Check the clients. When one has died, write its deposited bytes to the file at once. */
static void look_after_clients(service *self)
{
    mpiox_server *server = self->server;
    int died = 0;
    const int alive = mpiox_ring_clients(&server->cache, &died);
    atomic_store(&server->clients, alive);
    if (alive > 0 || died > 0)
        atomic_store(&server->joined, true);
    if (alive == 0 && atomic_load(&server->joined)) {
        pthread_mutex_lock(&server->lock);
        mpiox_server_end_holds(server);
        pthread_mutex_unlock(&server->lock);
    }
    if (died > 0) {
        pthread_mutex_lock(&server->lock);
        atomic_fetch_add(&server->dead, died);
        mpiox_server_flush_after_death(server);
        pthread_mutex_unlock(&server->lock);
    }
}

static bool drains(mpiox_server *server)
{
    pthread_mutex_lock(&server->lock);
    const bool is = mpiox_server_is_draining(server);
    pthread_mutex_unlock(&server->lock);
    return is;
}

static bool is_over(const service *self)
{
    const mpiox_server *server = self->server;
    const double patience = server->options.patience_s > 0 ? server->options.patience_s : default_patience_s;
    if (atomic_load(&server->stop))
        return true;
    if (atomic_load(&server->joined))
        return atomic_load(&server->clients) == 0 && !drains(self->server);
    return mpiox_now() - self->began >= patience;
}

/* One round: tokens, clients, then sleep until there are more. */
static void serve_once(service *self)
{
    mpiox_server *server = self->server;
    const uint32_t seen = mpiox_futex_get(&server->cache.ring->bell);
    take_tokens(self);
    const double now = mpiox_now();
    const bool leaving = now < self->leaving;
    const bool beats = now >= self->next_beat;
    if (beats || leaving) {
        atomic_fetch_add(&server->cache.header->beat, beats);
        if (beats) {
            atomic_store(&server->cache.header->alive_ns, mpiox_wall_ns());
            self->next_beat = now + beat_s;
        }
        look_after_clients(self);
        if (atomic_load(&server->cache.header->torn) != MPIOX_TORN_NOT)
            mpiox_server_tear();
        mpiox_server_look_at_disk(server);
    }
    pthread_mutex_lock(&server->lock);
    if (beats)
        mpiox_server_follow_folders(server);
    const bool parked = server->parked.count > 0;
    if (parked)
        mpiox_server_serve_parked(server);
    pthread_mutex_unlock(&server->lock);
    if (!atomic_load(&server->stop))
        mpiox_ring_wait(&server->cache, seen, parked ? parked_s : (leaving ? leaving_s : self->next_beat - now));
}

/* Bring everything to the files, and go on serving all but pages until that is done. */
static void flush_at_end(service *self)
{
    mpiox_server *server = self->server;
    mpiox_futex done = {0};
    bool begun = false;
    while (mpiox_futex_get(&done) == 0) {
        pthread_mutex_lock(&server->lock);
        server->ending = true;
        mpiox_server_leave_behind(server);
        mpiox_server_forget_copies(server);
        if (!begun)
            begun = mpiox_server_empty(server, &done);
        pthread_mutex_unlock(&server->lock);
        const uint32_t seen = mpiox_futex_get(&server->cache.ring->bell);
        take_tokens(self);
        look_after_clients(self);
        mpiox_ring_wait(&server->cache, seen, leaving_s);
    }
    atomic_fetch_add(&server->cache.header->beat, 1);
    mpiox_futex_set(&server->cache.header->state, MPIOX_CACHE_ENDED);
    pthread_mutex_lock(&server->lock);
    mpiox_slot *slot;
    while ((slot = mpiox_server_requests_take(server, &server->parked)) != NULL)
        mpiox_server_answer(server, slot, MPIOX_E_UNSUPPORTED);
    pthread_mutex_unlock(&server->lock);
}

int mpiox_server_run(mpiox_server *server, const mpiox_server_lost **lost, int *lost_count, int *lost_rest)
{
    service self = {.server = server, .began = mpiox_now()};
    mpiox_io *threads;
    *lost = server->lost;
    *lost_count = *lost_rest = 0;
    const int life = mpiox_cache_live(&server->cache); /* the first: clients check this one */
    const int count = life == 0 ? start_threads(server, &threads) : 0;
    if (life != 0 || count == 0) {
        mpiox_futex_set(&server->cache.header->state, MPIOX_CACHE_ENDED);
        if (life == 0)
            end_threads(server, threads, 0);
        mpiox_cache_end_life(&server->cache, life);
        return MPIOX_E_NOMEM;
    }
    mpiox_futex_set(&server->cache.header->state, MPIOX_CACHE_SERVING);
    while (!is_over(&self))
        serve_once(&self);
    MPIOX_POINT("last");
    flush_at_end(&self);
    MPIOX_POINT("flushed");
    end_threads(server, threads, count);
    server->keeps = server->cache.header->kept[0] != '\0' && mpiox_server_has_left(server);
    mpiox_server_drain_last(server);
    mpiox_server_close_files(server, atomic_load(&server->clients) == 0);
    mpiox_cache_end_life(&server->cache, life);
    *lost_count = server->lost_count;
    *lost_rest = server->lost_rest;
    return server->lost_count > 0 ? MPIOX_E_IO : MPIOX_OK;
}

void mpiox_server_stop(mpiox_server *server)
{
    atomic_store(&server->stop, true);
    mpiox_futex_add(&server->cache.ring->bell);
}

void mpiox_server_adopted(mpiox_server *server)
{
    atomic_store(&server->cache.header->adopting, 0);
}

void mpiox_server_hurry(mpiox_server *server)
{
    atomic_store(&server->hurry, true);
}
