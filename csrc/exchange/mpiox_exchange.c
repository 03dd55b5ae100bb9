/*
 * mpiox_exchange.c - an open file's exchange, and the order of the steps of a collective:
 *
 *   post -> summary (barrier) -> direct | plan + rounds -> end (barrier)
 *
 * Guarantees: every rank takes the same branch at every step; a rank that cannot take part says so in its post and still
 * walks along; the outcome's error is the same everywhere.
 */
#include "mpiox_exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "mpiox_exchange_impl.h"

enum {
    DEFAULT_WINDOW_BYTES = 1024 * 1024,
    DEFAULT_WINDOW_MAX = 16 * 1024 * 1024,
    WINDOW_UNIT = 512,
    WINDOW_MAX = 1024 * 1024 * 1024,
    SERVERS_MAX = 1 << 16
};

/* A file that the program only writes is opened for both where permissions allow: a mapping needs it (window I/O). */
static int open_storage(mpiox_exchange *x, const char *path) {
    mpiox_error error = {.code = MPIOX_OK};
    const mpiox_storage_options options = {.kind = (mpiox_storage_kind) x->hints.storage,
                                           .io_uring_depth = x->hints.io_uring_depth,
                                           .direct_read = x->hints.direct_read, .direct_write = x->hints.direct_write};
    _Static_assert((int) MPIOX_BACKEND_AUTO == MPIOX_STORAGE_AUTO && (int) MPIOX_BACKEND_POSIX == MPIOX_STORAGE_POSIX &&
                   (int) MPIOX_BACKEND_IO_URING == MPIOX_STORAGE_IO_URING, "the hint's values are the back ends'");
    if (x->amode & MPI_MODE_RDONLY)
        return mpiox_storage_open(path, O_RDONLY, x->team->rank, &options, &x->storage, &error);
    int code = mpiox_storage_open(path, O_RDWR, x->team->rank, &options, &x->storage, &error);
    if (code != MPIOX_OK && (x->amode & MPI_MODE_WRONLY))
        code = mpiox_storage_open(path, O_WRONLY, x->team->rank, &options, &x->storage, &error);
    return code;
}

/* Size of a collective buffer: the hint, else 1 MiB, else a whole stripe where the file system has stripes. Rounded to
 * 512 bytes; at least that. */
static int64_t window_bytes(const mpiox_exchange *x) {
    int64_t bytes = x->hints.cb_buffer_size;
    if (bytes <= 0) {
        bytes = DEFAULT_WINDOW_BYTES;
        if (!x->layout.coherent && x->layout.stripe_known && x->layout.stripe_size > bytes)
            bytes = x->layout.stripe_size < DEFAULT_WINDOW_MAX ? x->layout.stripe_size : DEFAULT_WINDOW_MAX;
    }
    bytes = bytes < WINDOW_MAX ? bytes / WINDOW_UNIT * WINDOW_UNIT : WINDOW_MAX;
    return bytes > WINDOW_UNIT ? bytes : WINDOW_UNIT;
}

/* A message between nodes holds a window of every aggregator of a node for every rank of the other: it must not exceed
 * what MPI can send at once. */
static void fit_messages(mpiox_exchange *x) {
    while (mpiox_messages_area_bytes(x) > INT32_MAX && x->window_bytes > WINDOW_UNIT)
        x->window_bytes = x->window_bytes / 2 / WINDOW_UNIT * WINDOW_UNIT;
}

/* What cannot be taken over on the file system that holds the file: several nodes that write one file through page caches
 * that nothing keeps coherent (NFS, FUSE, SMB...). ROMIO locks there, and so it shall. Ranks that open the file by
 * themselves, or those of one node, may share it with ranks of other nodes all the same. */
static bool safe_across_nodes(const mpiox_exchange *x) {
    return x->layout.coherent || x->layout.lock != MPIOX_LOCK_NONE ||
           (x->team->n_nodes == 1 && mpiox_team_world_on_one_node(x->team->ranks_per_node));
}

/* After rank 0's layout has been spread: who the aggregators are, and how large their buffers. */
static int set_up(mpiox_exchange *x) {
    if (x->layout.servers > SERVERS_MAX) /* a hint's typing error: a plan may have as many sets as there are servers */
        x->layout.servers = SERVERS_MAX;
    x->buffers = x->hints.buffers >= 2 ? x->hints.buffers : 2;
    x->window_bytes = window_bytes(x);
    int code = mpiox_aggregators_choose(x);
    if (code != MPIOX_OK || x->team->n_nodes == 1)
        return code;
    fit_messages(x);
    return mpiox_messages_create(x);
}

/* This rank's own path to the file. The layout in force will be rank 0's, but every rank judges the file system by what
 * it sees itself: a file server's own disk is NFS to the others. */
static int prepare(mpiox_exchange *x, const char *path) {
    x->path = path ? strdup(path) : NULL;
    if (!x->path)
        return MPIOX_E_NOMEM;
    int code = open_storage(x, path);
    if (code != MPIOX_OK)
        return code;
    x->real_path = x->team->n_nodes > 1 ? realpath(path, NULL) : NULL; /* the program may change its folder */
    mpiox_layout_detect(x->storage->fd, x->hints.striping_unit, x->hints.striping_factor, &x->layout);
    if (!safe_across_nodes(x))
        return MPIOX_E_UNSUPPORTED;
    if (strcmp(x->hints.partition, "auto") != 0)
        x->forced = mpiox_partition_find(x->hints.partition);
    return MPIOX_OK;
}

static void discard(mpiox_exchange *x) {
    mpiox_storage_close(x->storage);
    mpiox_shared_pointer_free(x);
    mpiox_messages_free(x);
    mpiox_typemap_free(x->view);
    mpiox_plan_free(x->plan);
    free(x->extents[0]);
    free(x->extents[1]);
    free(x->aggregators);
    free(x->local);
    free(x->path);
    free(x->real_path);
    mpiox_team_release(x->team);
    pthread_mutex_destroy(&x->threads_lock);
    free(x);
}

mpiox_exchange_offer mpiox_exchange_offer_team(MPI_Comm comm, const mpiox_hints *hints) {
    mpiox_exchange_offer offer = {.ranks_per_node = hints->ranks_per_node};
    offer.team = mpiox_team_offer(comm, hints->ranks_per_node, &offer.fresh);
    if (getrandom(&offer.nonce, sizeof offer.nonce, GRND_NONBLOCK) != (ssize_t) sizeof offer.nonce)
        offer.nonce = offer.team ^ (uint64_t) (1e9 * mpiox_now());
    return offer;
}

int mpiox_exchange_tell(MPI_Comm comm, void *data, int64_t bytes) {
    mpiox_lobby *lobby = bytes <= MPIOX_LOBBY_TOLD_BYTES ? mpiox_team_lobby(comm) : NULL;
    if (!lobby)
        return PMPI_Bcast(data, (int) bytes, MPI_BYTE, 0, comm);
    mpiox_lobby_tell(lobby, data, bytes);
    return MPI_SUCCESS;
}

/* The lowest of every value, and rank 0's layout. */
static int agree_on_layout(mpiox_team *team, int values[MPIOX_LOBBY_VOTES], mpiox_layout *layout) {
    _Static_assert(sizeof *layout <= MPIOX_LOBBY_NOTE_BYTES, "the layout is a note");
    if (team->lobby.page) {
        mpiox_lobby_vote(&team->lobby, values, layout, sizeof *layout);
        return MPIOX_OK;
    }
    if (team->size == 1)
        return MPIOX_OK;
    if (PMPI_Bcast(layout, sizeof *layout, MPI_BYTE, 0, team->comm) != MPI_SUCCESS ||
        PMPI_Allreduce(MPI_IN_PLACE, values, MPIOX_LOBBY_VOTES, MPI_INT, MPI_MIN, team->comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    return MPIOX_OK;
}

/* Rank 0's layout, known to be good everywhere, is what the rest is set up for. x: not NULL on any rank. */
static int follow_layout(mpiox_exchange *x, const mpiox_layout *layout) {
    x->layout = *layout;
    const int code = mpiox_typemap_block(1, &x->view); /* MPI's initial view: bytes */
    return mpiox_agree_lowest(x, code == MPIOX_OK ? set_up(x) : code);
}

/* The file's storage and layout, on all ranks or on none; x may be NULL (no memory): the rank still walks along. */
static int open_everywhere(mpiox_exchange *x, mpiox_team *team, const char *path, bool opened, bool *all_opened) {
    mpiox_layout layout = {.stripe_size = 0};
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    int values[MPIOX_LOBBY_VOTES] = {!x ? MPIOX_E_NOMEM : opened ? prepare(x, path) : MPIOX_E_IO, opened,
                                     level == MPI_THREAD_MULTIPLE};
    if (values[0] == MPIOX_OK && team->rank == 0)
        layout = x->layout;
    int code = agree_on_layout(team, values, &layout);
    *all_opened = code == MPIOX_OK && values[1] != 0;
    if (code != MPIOX_OK || values[0] != MPIOX_OK)
        return code != MPIOX_OK ? code : values[0];
    x->threads = values[2] != 0;
    return follow_layout(x, &layout);
}

/* The shared file pointer of a file that is opened to be appended to stands at its end. */
static int start_at_end(mpiox_exchange *x, mpiox_error *error) {
    struct stat status;
    if (!(x->amode & MPI_MODE_APPEND) || !mpiox_exchange_background(x))
        return MPIOX_OK;
    if (x->team->rank == 0 && fstat(x->storage->fd, &status) == 0)
        mpiox_exchange_shared_set(x, status.st_size, error);
    return mpiox_agree_all(x, error->code == MPIOX_OK) ? MPIOX_OK : MPIOX_E_UNSUPPORTED;
}

/* Why the ranks have no shared memory, from the code that all of them have. */
static const char *memory_reason(int code) {
    switch (code) {
    case MPIOX_E_FULL: return "native: shared memory is full";
    case MPIOX_E_UNSUPPORTED: return "native: ranks of a node cannot share memory";
    default: return "native: no shared memory";
    }
}

int mpiox_exchange_open(MPI_Comm comm, const mpiox_exchange_offer *offer, const char *path, int amode,
                        const mpiox_hints *hints, bool opened, bool *all_opened, mpiox_exchange **out,
                        const char **why_not) {
    *out = NULL;
    *why_not = NULL;
    *all_opened = false;
    mpiox_exchange *x = calloc(1, sizeof *x);
    mpiox_team *team = NULL;
    if (mpiox_team_join(comm, offer->team, offer->fresh != 0, offer->ranks_per_node, &team) != MPIOX_OK) {
        free(x); /* on every rank */
        return PMPI_Allreduce(&opened, all_opened, 1, MPI_C_BOOL, MPI_LAND, comm) == MPI_SUCCESS ? MPIOX_E_UNSUPPORTED
                                                                                             : MPIOX_E_MPI;
    }
    if (x) {
        pthread_mutex_init(&x->threads_lock, NULL);
        x->team = team;
        x->amode = amode;
        x->hints = *hints;
        x->nonce = offer->nonce;
        x->foreground = offer->foreground != 0;
        x->new_view = true; /* what is known of the last file's views on this team is not to be believed */
        mpiox_shared_pointer_clear_next(x);
    }
    int code = open_everywhere(x, team, path, opened, all_opened); /* as on every rank */
    mpiox_error error = {.code = MPIOX_OK};
    team->turn++;
    if (code == MPIOX_E_UNSUPPORTED)
        *why_not = "native: several nodes may share the file, and its file system does not keep their caches coherent";
    if (code == MPIOX_OK) {
        /* A nonblocking collective must find the memory ready, because it cannot set it up in the background. */
        code = mpiox_exchange_background(x) ? mpiox_memory_attach(x, &error) : MPIOX_OK;
        if (code != MPIOX_OK)
            *why_not = memory_reason(code);
        else
            code = start_at_end(x, &error);
    }
    if (code != MPIOX_OK) {
        if (x)
            discard(x);
        else
            mpiox_team_release(team);
        return MPIOX_E_UNSUPPORTED;
    }
    *out = x;
    return MPIOX_OK;
}

int mpiox_exchange_agree_error(mpiox_exchange *x, mpiox_error *error) {
    error->rank = x->team->rank;
    const int own = error->code;
    const int lowest = mpiox_agree_lowest(x, own != MPIOX_OK ? x->team->rank : x->team->size);
    if (lowest == x->team->size)
        return MPIOX_OK;
    if (lowest < 0 || PMPI_Bcast(error, sizeof *error, MPI_BYTE, lowest, x->team->comm) != MPI_SUCCESS)
        mpiox_error_set(error, own != MPIOX_OK ? own : MPIOX_E_MPI, 0, -1, -1, "agreeing on an error");
    return error->code;
}

int mpiox_exchange_sync(mpiox_exchange *x, mpiox_error *error) {
    *error = (mpiox_error) {.code = MPIOX_OK};
    mpiox_storage_sync(x->storage, error);
    return mpiox_exchange_agree_error(x, error);
}

int mpiox_exchange_preallocate(mpiox_exchange *x, int64_t bytes, mpiox_error *error) {
    int64_t bounds[2] = {bytes, -bytes};
    *error = (mpiox_error) {.code = MPIOX_OK};
    if (PMPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_INT64_T, MPI_MAX, x->team->comm) != MPI_SUCCESS)
        mpiox_error_set(error, MPIOX_E_MPI, 0, -1, bytes, "agreeing on the size to preallocate");
    else if (bounds[0] != -bounds[1] || bytes < 0)
        mpiox_error_set(error, MPIOX_E_ARG, EINVAL, -1, bytes, "preallocate (sizes negative or different)");
    else if (x->team->rank == 0)
        mpiox_storage_reserve(x->storage, bytes, error);
    return mpiox_exchange_agree_error(x, error);
}

int mpiox_exchange_close(mpiox_exchange *x, mpiox_error *error) {
    *error = (mpiox_error) {.code = MPIOX_OK};
    if (!x)
        return MPIOX_OK;
    if (mpiox_storage_close(x->storage) != MPIOX_OK)
        mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "close");
    x->storage = NULL;
    /* A local file system has nothing to report at close; with several nodes nobody may still use the shared pointer. */
    if (!x->layout.coherent || x->team->n_nodes > 1)
        mpiox_exchange_agree_error(x, error);
    discard(x);
    return error->code;
}

/* ---- a collective ------------------------------------------------------------------------------------------------ */

/* Out of memory for a few kilobytes after all ranks have agreed to go: the others wait for this rank's arrivals, which it
 * cannot compute without a plan. Ending the job with a message is the only end that is not a hang. (A geometry that no
 * planner takes was refused before: by file_range() of mpiox_agree.c, the registry of hints, and set_up().) */
static void give_up(const mpiox_call *call, int code) {
    mpiox_agree_give_up(call->x, code == MPIOX_E_NOMEM ? code : MPIOX_E_ARG, call->summary.start,
                        call->summary.end - call->summary.start, "planning file domains");
}

static void run_two_phase(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    const double begun = mpiox_now();
    if (x->messages) {
        mpiox_messages_begin(call);
        call->summary.disjoint |= x->views_disjoint;
    }
    const int code = mpiox_choose_plan(call);
    call->progress = calloc((size_t) x->n_local + 1, sizeof *call->progress);
    if (code != MPIOX_OK || !call->progress)
        give_up(call, code != MPIOX_OK ? code : MPIOX_E_NOMEM);
    x->stats.plan_s += mpiox_now() - begun;
    call->participants = x->team->node_size;
    if (x->messages && call->write)
        call->participants++; /* the leader arrives for the other nodes too */
    if (call->write)
        mpiox_rounds_write(call);
    else
        mpiox_rounds_read(call);
    x->stats.rounds += call->rounds;
    free(call->progress);
}

/* Data bytes of this rank below the lowest end of file that anybody saw. */
static int64_t bytes_before(const mpiox_exchange *x, const mpiox_request *request, int64_t eof) {
    if (eof == INT64_MAX || request->length == 0)
        return request->length;
    const int64_t data = mpiox_typemap_position(x->view, eof - x->displacement) - request->position;
    return data < 0 ? 0 : data < request->length ? data : request->length;
}

static void count_call(mpiox_call *call, int64_t bytes, double begun) {
    mpiox_stats *stats = &call->x->stats;
    if (call->write) {
        stats->collective_writes++;
        stats->bytes_written += bytes;
    } else {
        stats->collective_reads++;
        stats->bytes_read += bytes;
    }
    stats->total_s += mpiox_now() - begun;
}

int mpiox_exchange_access(mpiox_exchange *x, const mpiox_request *request, mpiox_outcome *outcome) {
    const mpiox_request shifted = mpiox_view_shift(x, request);
    mpiox_call call = {.x = x, .request = &shifted, .original = request, .write = request->write};
    const double begun = mpiox_now();
    *outcome = (mpiox_outcome) {.bytes = 0, .error = {.code = MPIOX_OK}};
    mpiox_error memory_error = {.code = MPIOX_OK};
    const int memory = x->native_only ? MPIOX_E_UNSUPPORTED : mpiox_memory_attach(x, &memory_error);
    if (memory != MPIOX_OK) { /* on every rank */
        if (!x->native_only)
            snprintf(x->stats.reason, sizeof x->stats.reason, "%s", memory_reason(memory));
        x->native_only = true;
        return MPIOX_E_UNSUPPORTED;
    }
    mpiox_agree_post(&call);
    mpiox_agree_summary(&call);
    x->new_view = false;
    if (call.summary.flags & MPIOX_POST_NEW_VIEW)
        x->views_spread = false;
    x->stats.plan_s += mpiox_now() - begun;
    if (call.summary.error.code != MPIOX_OK) {
        outcome->error = call.summary.error;
        x->stats.errors++;
        return outcome->error.code;
    }
    if (call.summary.flags & MPIOX_POST_UNUSABLE)
        return MPIOX_E_UNSUPPORTED;
    if (call.summary.bytes == 0) {
        count_call(&call, 0, begun);
        return MPIOX_OK;
    }
    int64_t done = -1;
    x->stats.pieces += request->length > 0 ? x->posts[x->team->node_rank].pieces : 0;
    if (mpiox_choose_direct(&call)) {
        x->stats.direct_calls++;
        mpiox_direct_run(&call, &done);
    } else {
        run_two_phase(&call);
    }
    const double ended = mpiox_now();
    mpiox_agree_end(&call, outcome);
    x->stats.wait_s += mpiox_now() - ended;
    if (outcome->error.code == MPIOX_OK)
        outcome->bytes = done >= 0 ? done : bytes_before(x, &shifted, atomic_load(&x->board->eof));
    else {
        x->stats.errors++;
        x->views_spread = false; /* it may have been the views that did not get through */
    }
    count_call(&call, outcome->bytes, begun);
    return outcome->error.code;
}

int mpiox_exchange_independent(mpiox_exchange *x, const mpiox_request *request, mpiox_outcome *outcome) {
    const mpiox_independent_file file = mpiox_exchange_file(x);
    *outcome = (mpiox_outcome) {.bytes = 0, .error = {.code = MPIOX_OK}};
    if (request->length == 0)
        return MPIOX_OK;
    if (x->empty_view)
        mpiox_error_set(&outcome->error, MPIOX_E_ARG, 0, -1, request->length, "access through a view without data");
    else
        mpiox_independent_access(&file, request, &outcome->bytes, &outcome->error);
    outcome->error.rank = x->team->rank;
    return outcome->error.code;
}

bool mpiox_exchange_background(const mpiox_exchange *x) {
    return !x->foreground && (x->team->n_nodes == 1 || x->threads);
}

int mpiox_exchange_access_background(mpiox_exchange *x, const mpiox_request *request, mpiox_outcome *outcome) {
    x->in_background = true;
    const int code = mpiox_exchange_access(x, request, outcome);
    x->in_background = false;
    if (code == MPIOX_E_UNSUPPORTED && outcome->error.code == MPIOX_OK) { /* too late to hand the call to PMPI */
        mpiox_error_set(&outcome->error, code, 0, -1, -1, "nonblocking collective with a view or memory type nested too deeply");
        outcome->error.rank = x->team->rank;
    }
    return code;
}

bool mpiox_exchange_all(mpiox_exchange *x, bool mine) { return mpiox_agree_all(x, mine); }

MPI_Comm mpiox_exchange_comm(const mpiox_exchange *x) { return x->team->comm; }

void mpiox_exchange_set_atomicity(mpiox_exchange *x, bool atomic) { x->atomic = atomic; }

/* ---- queries ----------------------------------------------------------------------------------------------------- */

const mpiox_layout *mpiox_exchange_layout(const mpiox_exchange *x) { return &x->layout; }

int mpiox_exchange_aggregators(const mpiox_exchange *x) { return x->n_aggregators; }

int64_t mpiox_exchange_window_bytes(const mpiox_exchange *x) { return x->window_bytes; }

static void add_independent(mpiox_exchange *x) {
    mpiox_independent_counters *counters = &x->independent;
    mpiox_stats *stats = &x->stats;
    stats->independent_writes = atomic_load(&counters->writes);
    stats->independent_reads = atomic_load(&counters->reads);
    stats->independent_bytes_written = atomic_load(&counters->bytes_written);
    stats->independent_bytes_read = atomic_load(&counters->bytes_read);
    stats->chunks_whole = atomic_load(&counters->whole);
    stats->chunks_sieved = atomic_load(&counters->sieved);
    stats->chunks_mapped = atomic_load(&counters->mapped);
    stats->chunks_listed = atomic_load(&counters->listed);
    stats->locks = atomic_load(&counters->locks);
    stats->independent_s = 1e-9 * (double) atomic_load(&counters->nanoseconds);
}

const mpiox_stats *mpiox_exchange_stats(mpiox_exchange *x) {
    const mpiox_storage_counters *counters = &x->storage->counters;
    add_independent(x);
    x->stats.write_requests = counters->write_requests;
    x->stats.write_request_bytes = counters->write_bytes;
    x->stats.read_requests = counters->read_requests;
    x->stats.read_request_bytes = counters->read_bytes;
    for (int i = 0; i < MPIOX_STATS_SIZE_BUCKETS; i++)
        x->stats.request_size_log2[i] = counters->request_size_log2[i];
    return &x->stats;
}

void mpiox_exchange_finalize(void) { mpiox_team_finalize(); }
