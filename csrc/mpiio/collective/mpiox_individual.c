/*
 * mpiox_individual.c - collective calls in which no rank waits for another.
 *
 * Problem.   A call that moves a few bytes of each rank, as counters, headers and records of a time step do, takes
 *            less time than the ranks need to meet. A rank that accesses its piece itself and returns, as MPI allows,
 *            does not know whether another rank needs an exchange in the same call. And programs rely on the order of
 *            successive collectives: they write fill values and then data by other ranks, or read what others have
 *            written, without the sync, barrier, sync that MPI demands.
 * Algorithm. The ranks stop meeting after a row of calls of one kind in which every rank had one piece, accessed the
 *            piece before the ranks met, and went on by the same stride, over all bytes of the call before. Each rank
 *            counts the calls of the file. A rank whose piece is where the stride puts it posts that it goes alone in
 *            the call of this number, accesses the piece, and returns. A rank with another access posts that it meets,
 *            and waits until each rank has posted this number or a higher one. If all meet, the call goes on as an
 *            exchange would, and the ranks meet in each call until the next such row. If a rank has gone alone, the
 *            ranks that meet access their pieces by themselves, too. Such a mixture is rare and may be slow. A rank
 *            that detects a mixture meets from then on; after the first call in which all ranks meet again, the ranks
 *            of this file always meet.
 * Guarantee. A rank that meets waits only for posts. Each rank posts when it begins the call: no rank waits for one
 *            that has left the call. All ranks that meet come to the same result: a rank that has posted a higher
 *            number went alone, or detected a rank that did, since no rank leaves a call in which all meet before the
 *            waiting rank has come. Two calls of different numbers in which ranks go alone share bytes only within one
 *            rank: the order of such calls between ranks does not show. In a mixture the order may show. An error is
 *            that of the rank whose access failed. mpiox_synchronous=true: ranks meet in each call.
 * Limit.     One node: posts are words in its shared memory, so that no rank waits for a message of a rank that has
 *            left the call. Each 2^24th call is a meeting, which bounds how far ranks come apart.
 */
#include <errno.h>
#include <string.h>

#include "mpiox_collective_impl.h"
#include "mpiox_device_access.h"
#include "mpiox_event.h"
#include "mpiox_parts.h"
#include "mpiox_wait.h"

enum { ROW = 4, APART_MOST = 1 << 24 };
static const int64_t far_bytes = MPIOX_INDEPENDENT_MAX_OFFSET / 4; /* sums of such places are places */

/* A rank's post: twice the number of the call, and 1 if it goes alone. */
static uint32_t post_of(const mpiox_individual *own, bool alone)
{
    return 2 * own->calls + alone;
}

static __attribute__((noinline)) bool is_one_run(const mpiox_file *file, const mpiox_request *request, int64_t *first)
{
    int64_t last;
    return mpiox_typemap_is_monotonic(file->view) &&
           mpiox_independent_range(file->view, file->displacement, request->position, request->length, first, &last) &&
           last - *first == request->length;
}

/* Is that one run of bytes in the file? Then *first is where it begins. */
static inline __attribute__((always_inline)) bool is_one_piece(const mpiox_file *file, const mpiox_request *request,
                                                               int64_t *first)
{
    if (request->local_error.code != MPIOX_OK || request->length == 0 || file->view == NULL || file->tile_extent != 0 ||
        file->atomic)
        return false;
    if (!mpiox_typemap_is_contiguous(file->view))
        return is_one_run(file, request, first);
    *first = file->displacement + mpiox_typemap_true_lb(file->view) + request->position;
    return request->position < far_bytes && request->length < far_bytes && file->displacement < far_bytes;
}

/* ---- from meetings to individual calls --------------------------------------------------------------------------- */

void mpiox_individual_contribute(mpiox_collective *collective, const mpiox_request *request,
                                 mpiox_contribution *contribution)
{
    mpiox_individual *own = &collective->individual;
    int64_t first = -1;
    const bool one = is_one_piece(collective->buffers.file, request, &first);
    contribution->flags |= one ? 0 : MPIOX_CONTRIBUTION_MEETS;
    contribution->stride = one && own->room > 0 && own->write == request->write ? first - own->first : INT64_MIN;
    own->first = first;
    own->room = one ? request->length : 0;
    own->write = request->write;
}

/* The step of all ranks from their last calls to this one, if it is the same, and no two of these calls overlap but for
 * a rank's own bytes. Else INT64_MIN. */
static int64_t common_stride(const mpiox_buffers *b, const mpiox_reduction *s)
{
    const int64_t stride = b->contributions[0].stride, least = s->end - s->start;
    for (int i = 0; i < b->file->topology->node_size; i++)
        if (b->contributions[i].stride != stride || (b->contributions[i].flags & MPIOX_CONTRIBUTION_MEETS))
            return INT64_MIN;
    return stride == 0 || stride >= least || stride <= -least ? stride : INT64_MIN;
}

/* How long the row is with this call. The same on every rank. */
static int next_row(const mpiox_collective *collective, const mpiox_reduction *s)
{
    const mpiox_individual *own = &collective->individual;
    const mpiox_file *file = collective->buffers.file;
    if (!mpiox_topology_one_node(file->topology) || file->hints.synchronous || file->atomic ||
        strcmp(file->hints.delegates, "0") != 0 || atomic_load(&collective->buffers.state->mixed) != 0 ||
        s->error.code != MPIOX_OK || collective->buffers.state->stride == INT64_MIN)
        return 0;
    return own->views == file->stats.views_set && own->stride == collective->buffers.state->stride ? own->row + 1 : 1;
}

void mpiox_individual_prepare(const mpiox_collective *collective, const mpiox_reduction *s)
{
    const mpiox_buffers *b = &collective->buffers;
    if (collective->individual.calls == 1) /* the memory may be that of another file */
        atomic_store(&b->state->mixed, 0);
    b->state->stride = common_stride(b, s);
    for (int i = 0; i < b->file->topology->node_size && next_row(collective, s) >= ROW; i++)
        atomic_store(&b->contributions[i].post.value, post_of(&collective->individual, false));
}

void mpiox_individual_note(mpiox_collective *collective, const mpiox_reduction *s)
{
    mpiox_individual *own = &collective->individual;
    own->row = next_row(collective, s);
    own->views = collective->buffers.file->stats.views_set;
    own->stride = collective->buffers.state->stride;
    own->on = own->row >= ROW;
}

/* ---- this rank's access ------------------------------------------------------------------------------------------ */

static int access_part(void *file, const mpiox_request *part, int64_t *done, mpiox_error *error)
{
    return mpiox_independent_access(file, part, done, error);
}

/* From or to the memory of a GPU. */
static __attribute__((noinline)) int64_t access_device(mpiox_file *file, const mpiox_request *request,
                                                       const mpiox_device *device, mpiox_independent_file *through,
                                                       mpiox_error *error)
{
    const mpiox_device_steps steps = {mpiox_file_device_window(file, request), access_part, through};
    int64_t done = 0;
    mpiox_device_access(request, device, &steps, &file->independent, &done, error);
    return done;
}

int64_t mpiox_individual_access_own(mpiox_file *file, const mpiox_request *request, const mpiox_device *device,
                                    mpiox_error *error)
{
    mpiox_independent_file through = mpiox_file_independent(file);
    int64_t done = 0;
    error->code = MPIOX_OK;
    if (device->kind != NULL)
        done = access_device(file, request, device, &through, error);
    else if (request->length > 0)
        mpiox_independent_access(&through, request, &done, error);
    return done;
}

/* ---- individual calls -------------------------------------------------------------------------------------------- */

/* Waits until every rank has posted this call. Does every rank meet? The same on all that ask. */
static bool all_meet(mpiox_collective *collective)
{
    mpiox_buffers *b = &collective->buffers;
    mpiox_topology *topology = b->file->topology;
    const uint32_t meets = post_of(&collective->individual, false);
    const mpiox_idle idle = {mpiox_topology_progress, topology};
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_WAITING);
    const mpiox_wait_limit *limit = mpiox_wait_set_limit(&topology->limit);
    const double begun = mpiox_now();
    bool all = true;
    mpiox_wait_for("all ranks to arrive", -1);
    for (int i = 0; i < topology->node_size; i++) {
        mpiox_futex *post = &b->contributions[i].post;
        uint32_t now = mpiox_futex_get(post);
        while ((int32_t)(now - meets) < 0)
            now = mpiox_wait_while(post, now, &idle);
        all &= now == meets;
    }
    mpiox_wait_for(NULL, -1);
    mpiox_wait_set_limit(limit);
    mpiox_parts_on(before);
    b->file->stats.wait_s += mpiox_now() - begun;
    b->file->stats.total_s += mpiox_now() - begun;
    return all;
}

/* The time of the access is in the counters of independent ones. If other threads access the file meanwhile, theirs is
 * in it, too: two clocks more would take a tenth of the call. */
static void count(mpiox_file *file, bool write, bool alone, int64_t bytes, int64_t before_ns)
{
    mpiox_stats *stats = &file->stats;
    const double seconds = 1e-9 * (double)(atomic_load_explicit(&file->independent.nanoseconds, memory_order_relaxed) -
                                           before_ns);
    stats->direct_calls++;
    stats->individual_calls += alone;
    stats->pieces++;
    if (stats->ways[write].reason[0] == '\0')
        mpiox_stats_set_method(stats, write, NULL, false, "direct: one piece a rank, without a meeting");
    *(write ? &stats->collective_writes : &stats->collective_reads) += 1;
    *(write ? &stats->bytes_written : &stats->bytes_read) += bytes;
    *(write ? &stats->direct_bytes_written : &stats->direct_bytes_read) += bytes;
    stats->io_s += seconds;
    stats->total_s += seconds;
}

/* No rank checks the memory beforehand: the access fails if the memory is a GPU's. */
static __attribute__((noinline)) void access_again(mpiox_file *file, const mpiox_request *request,
                                                   mpiox_outcome *outcome)
{
    mpiox_device device;
    if (outcome->error.code == MPIOX_E_IO && outcome->error.sys_errno == EFAULT && outcome->bytes == 0 &&
        mpiox_device_has(request, mpiox_now(), &device))
        outcome->bytes = mpiox_individual_access_own(file, request, &device, &outcome->error);
}

/* This rank's part of the call, as if alone; `alone`: it has waited for no other. */
static void access_alone(mpiox_file *file, const mpiox_request *request, bool alone, mpiox_outcome *outcome)
{
    const mpiox_independent_file through = mpiox_file_independent(file);
    const int64_t event = mpiox_event_begin();
    const int64_t before_ns = atomic_load_explicit(&file->independent.nanoseconds, memory_order_relaxed);
    mpiox_error_clear(&outcome->error);
    outcome->bytes = 0;
    if (request->local_error.code != MPIOX_OK)
        outcome->error = request->local_error;
    else if (file->empty_view && request->length > 0)
        mpiox_error_set(&outcome->error, MPIOX_E_ARG, 0, -1, request->length, "access through a view without data");
    else if (request->length > 0)
        mpiox_independent_access(&through, request, &outcome->bytes, &outcome->error);
    if (outcome->error.code != MPIOX_OK)
        access_again(file, request, outcome);
    if (outcome->error.code != MPIOX_OK) {
        outcome->error.rank = file->topology->rank;
        file->stats.errors++;
    }
    count(file, request->write, alone, outcome->bytes, before_ns);
    if (event != 0)
        mpiox_event_end(request->write ? "collective_write" : "collective_read", file->path, -1, -1, event,
                        "\"way\":\"individual\",\"method\":\"\",\"rounds\":0,\"bytes\":%lld,\"error\":%d",
                        (long long)outcome->bytes, outcome->error.code);
}

/* One piece where the stride puts it, and no longer than the last one that met: other calls do not touch it. */
static bool goes_alone(const mpiox_collective *collective, const mpiox_request *request)
{
    const mpiox_individual *own = &collective->individual;
    int64_t first;
    return !own->asks && own->calls % APART_MOST != 0 && request->write == own->write && request->length <= own->room &&
           request->length >= own->least[request->write] && is_one_piece(collective->buffers.file, request, &first) &&
           first == own->first + own->stride;
}

bool mpiox_individual_access(mpiox_collective *collective, const mpiox_request *request, mpiox_outcome *outcome)
{
    mpiox_individual *own = &collective->individual;
    mpiox_buffers *b = &collective->buffers;
    own->calls++;
    if (!own->on)
        return false;
    if (own->views != b->file->stats.views_set) { /* on every rank: a new view begins a new row */
        own->on = own->asks = false;
        return false;
    }
    own->asks |= atomic_load_explicit(&b->state->mixed, memory_order_relaxed) != 0;
    mpiox_futex *post = &b->contributions[b->file->topology->node_rank].post;
    const bool alone = goes_alone(collective, request);
    mpiox_futex_set(post, post_of(own, alone));
    if (!alone && all_meet(collective)) {
        own->on = own->asks = false;
        own->row = 0;
        return false;
    }
    if (!alone) {
        own->asks = true;
        atomic_store(&b->state->mixed, 1);
    }
    own->first += own->stride;
    access_alone(b->file, request, alone, outcome);
    return true;
}
