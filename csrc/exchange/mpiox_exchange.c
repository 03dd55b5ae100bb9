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
    if (x->amode & MPI_MODE_RDONLY)
        return mpiox_storage_open(path, O_RDONLY, x->team->rank, &x->storage, &error);
    int code = mpiox_storage_open(path, O_RDWR, x->team->rank, &x->storage, &error);
    if (code != MPIOX_OK && (x->amode & MPI_MODE_WRONLY))
        code = mpiox_storage_open(path, O_WRONLY, x->team->rank, &x->storage, &error);
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
 * that nothing keeps coherent (NFS, FUSE, SMB...). ROMIO locks there, and so it shall. */
static bool safe_across_nodes(const mpiox_exchange *x) {
    return x->team->n_nodes == 1 || x->layout.coherent || x->layout.lock != MPIOX_LOCK_NONE;
}

/* After rank 0's layout has been spread: who the aggregators are, and how large their buffers. */
static int set_up(mpiox_exchange *x) {
    if (!safe_across_nodes(x))
        return MPIOX_E_UNSUPPORTED;
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

static int prepare(mpiox_exchange *x, const char *path) {
    x->path = strdup(path);
    if (!x->path)
        return MPIOX_E_NOMEM;
    int code = open_storage(x, path);
    if (code != MPIOX_OK)
        return code;
    mpiox_layout_detect(x->storage->fd, x->hints.striping_unit, x->hints.striping_factor, &x->layout);
    if (strcmp(x->hints.partition, "auto") != 0)
        x->forced = mpiox_partition_find(x->hints.partition);
    return MPIOX_OK;
}

static void discard(mpiox_exchange *x) {
    mpiox_storage_close(x->storage);
    mpiox_messages_free(x);
    mpiox_access_free(x->view);
    mpiox_plan_free(x->plan);
    free(x->extents[0]);
    free(x->extents[1]);
    free(x->aggregators);
    free(x->local);
    free(x->path);
    mpiox_team_release(x->team);
    free(x);
}

int mpiox_exchange_open(MPI_Comm comm, const char *path, int amode, const mpiox_hints *hints, mpiox_exchange **out) {
    *out = NULL;
    mpiox_exchange *x = calloc(1, sizeof *x);
    mpiox_team *team = NULL;
    int ranks_per_node = hints->ranks_per_node;
    int code = mpiox_team_acquire(comm, ranks_per_node, &team);
    if (code != MPIOX_OK) { /* on every rank */
        free(x);
        return MPIOX_E_UNSUPPORTED;
    }
    code = x ? MPIOX_OK : MPIOX_E_NOMEM;
    if (x) {
        x->team = team;
        x->amode = amode;
        x->hints = *hints;
        code = prepare(x, path);
    }
    int worst = code;
    PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, team->comm);
    if (worst == MPIOX_OK) {
        PMPI_Bcast(&x->layout, sizeof x->layout, MPI_BYTE, 0, team->comm);
        code = set_up(x);
        PMPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MIN, team->comm);
    }
    if (worst != MPIOX_OK) {
        if (x)
            discard(x);
        else
            mpiox_team_release(team);
        return MPIOX_E_UNSUPPORTED;
    }
    *out = x;
    return MPIOX_OK;
}

/* Every rank gets the error of the lowest rank that has one. */
static int agree_error(mpiox_exchange *x, mpiox_error *error) {
    int mine = error->code != MPIOX_OK ? x->team->rank : x->team->size, lowest = mine;
    error->rank = x->team->rank;
    if (PMPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, x->team->comm) == MPI_SUCCESS && lowest < x->team->size)
        PMPI_Bcast(error, sizeof *error, MPI_BYTE, lowest, x->team->comm);
    return error->code;
}

int mpiox_exchange_sync(mpiox_exchange *x, mpiox_error *error) {
    *error = (mpiox_error) {.code = MPIOX_OK};
    mpiox_storage_sync(x->storage, error);
    return agree_error(x, error);
}

int mpiox_exchange_close(mpiox_exchange *x, mpiox_error *error) {
    *error = (mpiox_error) {.code = MPIOX_OK};
    if (!x)
        return MPIOX_OK;
    if (mpiox_storage_close(x->storage) != MPIOX_OK)
        mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "close");
    x->storage = NULL;
    if (!x->layout.coherent) /* a local file system has nothing to report at close */
        agree_error(x, error);
    discard(x);
    return error->code;
}

void mpiox_exchange_set_view(mpiox_exchange *x, mpiox_access *view, int64_t displacement) {
    if (view && (mpiox_access_size(view) == 0 || !mpiox_access_is_monotonic(view))) {
        mpiox_access_free(view);
        view = NULL;
    }
    mpiox_access_free(x->view);
    x->view = view;
    x->displacement = displacement;
    x->new_view = true;
    x->stats.views_set++;
}

/* ---- a collective ------------------------------------------------------------------------------------------------ */

/* Out of memory for a few kilobytes after all ranks have agreed to go: the others wait for this rank's arrivals, which it
 * cannot compute without a plan. Ending the job with a message is the only end that is not a hang. (A geometry that no
 * planner takes was refused before: by file_range() of mpiox_agree.c, the registry of hints, and set_up().) */
static void give_up(const mpiox_call *call, int code) {
    char text[512];
    mpiox_error error = {.code = MPIOX_OK};
    mpiox_error_set(&error, code, code == MPIOX_E_NOMEM ? ENOMEM : EINVAL, call->summary.start, call->summary.end - call->summary.start, "planning file domains");
    error.rank = call->x->team->rank;
    fprintf(stderr, "mpiio_ext: %s\n", mpiox_error_text(&error, call->x->path, text, sizeof text));
    PMPI_Abort(call->x->team->comm, 1);
}

static void run_two_phase(mpiox_call *call) {
    mpiox_exchange *x = call->x;
    const double begun = mpiox_now();
    const int code = mpiox_choose_plan(call);
    call->progress = calloc((size_t) x->n_local + 1, sizeof *call->progress);
    if (code != MPIOX_OK || !call->progress)
        give_up(call, code != MPIOX_OK ? code : MPIOX_E_NOMEM);
    x->stats.plan_s += mpiox_now() - begun;
    call->participants = x->team->node_size;
    if (x->messages) {
        call->participants += call->write ? 1 : 0;
        mpiox_messages_begin(call);
    }
    if (call->write)
        mpiox_rounds_write(call);
    else
        mpiox_rounds_read(call);
    x->stats.rounds += call->rounds;
    free(call->progress);
}

/* Data bytes of this rank below the lowest end of file that anybody saw. */
static int64_t bytes_before(const mpiox_exchange *x, const mpiox_request *request, int64_t eof) {
    if (eof == INT64_MAX)
        return request->length;
    const int64_t data = mpiox_access_position(x->view, eof - x->displacement) - request->position;
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
    mpiox_call call = {.x = x, .request = request, .write = request->write};
    const double begun = mpiox_now();
    *outcome = (mpiox_outcome) {.bytes = 0, .error = {.code = MPIOX_OK}};
    mpiox_error memory_error = {.code = MPIOX_OK};
    if (x->native_only || mpiox_memory_attach(x, &memory_error) != MPIOX_OK) { /* on every rank */
        x->native_only = true;
        snprintf(x->stats.reason, sizeof x->stats.reason, "native: no shared memory");
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
        outcome->bytes = done >= 0 ? done : bytes_before(x, request, atomic_load(&x->board->eof));
    else {
        x->stats.errors++;
        x->views_spread = false; /* it may have been the views that did not get through */
    }
    count_call(&call, outcome->bytes, begun);
    return outcome->error.code;
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

const mpiox_layout *mpiox_exchange_layout(const mpiox_exchange *x) { return &x->layout; }

int mpiox_exchange_aggregators(const mpiox_exchange *x) { return x->n_aggregators; }

int64_t mpiox_exchange_window_bytes(const mpiox_exchange *x) { return x->window_bytes; }

const mpiox_stats *mpiox_exchange_stats(mpiox_exchange *x) {
    const mpiox_storage_counters *counters = &x->storage->counters;
    x->stats.write_requests = counters->write_requests;
    x->stats.write_request_bytes = counters->write_bytes;
    x->stats.read_requests = counters->read_requests;
    x->stats.read_request_bytes = counters->read_bytes;
    for (int i = 0; i < MPIOX_STATS_SIZE_BUCKETS; i++)
        x->stats.request_size_log2[i] = counters->request_size_log2[i];
    return &x->stats;
}

void mpiox_exchange_finalize(void) { mpiox_team_finalize(); }
