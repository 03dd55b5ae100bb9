/* mpiox_service_patience.c - see mpiox_service_patience.h. */
#include "mpiox_service_patience.h"

#include <inttypes.h>
#include <stdio.h>

#include "mpiox_cache_hidden.h"
#include "mpiox_print.h"
#include "mpiox_ring.h"

static mpiox_service_patience own;

static const char runs_on[] = "and runs, but has not answered: its file system may hang or be slow";

/* The delegate that a rank waits for. */
typedef struct awaited {
    int32_t delegate; /* its number in the job */
    int64_t pid;      /* of its process */
    const char *host; /* the node that it runs on; of its owner, while this is printed */
} awaited;

/* place: within the file, or "". */
static void print(const awaited *of, int32_t op, const char *path, const char *place, double seconds, const char *how)
{
    char file[MPIOX_CACHE_PATH_BYTES], room[MPIOX_CACHE_PATH_BYTES];

    snprintf(file, sizeof file, "%.*s", (int)sizeof file - 1, path);
    mpiox_print("mpiio_ext: rank %d has waited %.0f s for I/O delegate %d (process %" PRId64 " on %s): %s%s%s%s: it is "
                "alive %s; `mpiio-ext delegates status` there shows it. The rank continues to wait\n",
                own.rank, seconds, of->delegate, of->pid, of->host, mpiox_ring_op_name(op), path[0] != '\0' ? ": " : "",
                mpiox_cache_shown_name(file, room, sizeof room), place, how);
}

static void report(const mpiox_cache *cache, int32_t op, const char *path, int64_t page, double seconds, bool runs)
{
    const mpiox_cache_header *header = cache->header;
    const awaited delegate = {header->delegate, header->pid, header->host};
    char place[64] = "";

    if (page >= 0)
        snprintf(place, sizeof place, ", offset %" PRId64 ", length %" PRId64, page * cache->page_bytes,
                 cache->page_bytes);
    print(&delegate, op, path, place, seconds,
          runs ? runs_on : "but does not run: it may be stopped (SIGSTOP, a debugger), or its node overloaded");
}

void mpiox_service_patience_set(const mpiox_service_patience *patience)
{
    const mpiox_cache_patience of_caches = {.seconds = patience->seconds, .rank = patience->rank, .report = report};

    own = *patience;
    mpiox_cache_set_patience(&of_caches);
}

/* As mpiox_cache_wait_step(), which reads the delegate's memory. */
static void step_elsewhere(const mpiox_process *delegate, mpiox_cache_wait *wait, int32_t op)
{
    const double now = mpiox_now();

    wait->seconds += wait->last > 0 ? now - wait->last : 0;
    wait->last = now;
    if (own.seconds <= 0 || wait->seconds < own.seconds || wait->reported)
        return;
    wait->reported = true;
    print(&(awaited){delegate->index, delegate->pid, delegate->host}, op, wait->path, "", wait->seconds, runs_on);
}

void mpiox_service_patience_step(mpiox_service_wait *self, const mpiox_process *delegate, int32_t op, int32_t file,
                                 const char *path)
{
    if (delegate != self->delegate)
        mpiox_service_patience_end(self);
    self->delegate = delegate;
    self->wait.path = path;
    if (delegate->local)
        mpiox_cache_wait_step(&delegate->cache, &self->wait, op, file, -1);
    else
        step_elsewhere(delegate, &self->wait, op);
}

void mpiox_service_patience_end(mpiox_service_wait *self)
{
    if (self->delegate != NULL && self->delegate->local)
        mpiox_cache_wait_end(&self->delegate->cache, &self->wait);
    *self = (mpiox_service_wait){.delegate = NULL};
}

void mpiox_service_patience_look(mpiox_process *delegate)
{
    const double seconds = delegate->link != NULL ? mpiox_link_waits_s(delegate->link) : 0;

    if (seconds < own.seconds)
        delegate->reported = false;
    if (own.seconds <= 0 || seconds < own.seconds || delegate->reported || !mpiox_link_is_alive(delegate->link))
        return;
    delegate->reported = true;
    mpiox_print(
        "mpiio_ext: rank %d has waited %.0f s for an answer of an I/O delegate of another node (process %" PRId64
        " on %s): its connection is open; it may be stopped, its node overloaded, or its file system may hang; "
        "`mpiio-ext delegates status` there shows it. The rank continues to wait\n",
        own.rank, seconds, delegate->pid, delegate->host);
}
