/*
 * mpiox_forwarded_flush_barrier.c - writing all bytes to the file: sync, close, other ways of access.
 *
 * Problem.   A flush barrier must end in the same way on every rank, though any delegate may die meanwhile, and no rank
 *            may have more delegates to call than the others.
 * Algorithm. All ranks send the writes that they have collected, and meet. Then each calls its share of the delegates
 *            (delegate d is called by rank d mod ranks), and the ranks agree on the outcome, and on the fate of the
 *            bytes of dead delegates. A close ends the parts of these delegates of a hidden name, if their bytes are in
 *            the file: the part of a delegate that died before the close ends only here. If a delegate dies later, the
 *            process that writes its bytes ends its part (mpiox_cache_hidden.h, mpiox_server_drain.c).
 * Guarantee. After a flush barrier everything that any rank wrote before it is in the file. If a delegate is dead by
 *            then, its pages have been rescued first. Bytes that could not be rescued or written are an error of the
 *            barrier.
 */
#include <string.h>

#include "mpiox_forwarded_impl.h"

#include "mpiox_event.h"
#include "mpiox_process_notify.h"

typedef struct kind { /* of a flush barrier */
    bool stable, drop, last, behind;
} kind;

/* A failed request fails the flush barrier. No other call reports it. */
static void note(int32_t owner, const mpiox_slot *slot, mpiox_error *error)
{
    if (slot->result == MPIOX_OK || slot->result == MPIOX_E_UNSUPPORTED || error->code != MPIOX_OK)
        return;
    *error = slot->error;
    error->delegate = owner + 1;
}

static void barrier_one(mpiox_forwarded *forwarded, int32_t owner, bool stable, bool drop, mpiox_forwarded_late *late)
{
    mpiox_slot slot = {.op = MPIOX_OP_FLUSH};

    slot.question.flush.end = INT64_MAX;
    slot.question.flush.stable = stable;
    slot.question.flush.then = drop ? MPIOX_FLUSH_DROPS : MPIOX_FLUSH_CACHES;
    if (mpiox_forwarded_request(forwarded, owner, &slot) == MPIOX_E_UNSUPPORTED)
        mpiox_forwarded_mark_failed(forwarded, owner); /* its pages reach the file by rescue */
    else
        note(owner, &slot, &late->request);
    mpiox_forwarded_late_take(forwarded, owner, late);
}

/* close(2) may be the call that reports lost bytes. behind: no bytes were flushed. */
static void close_one(mpiox_forwarded *forwarded, int32_t owner, bool behind, mpiox_error *error)
{
    mpiox_slot slot = {.op = MPIOX_OP_CLOSE};

    slot.question.close.how = behind ? MPIOX_CLOSING_BEHIND : MPIOX_CLOSING_FLUSHES;
    if (mpiox_forwarded_request(forwarded, owner, &slot) != MPIOX_E_UNSUPPORTED)
        note(owner, &slot, error);
    else
        mpiox_forwarded_mark_failed(forwarded, owner);
}

/* The bytes of dead delegates that are lost are the error, or one more. */
static void add_lost(const mpiox_forwarded *forwarded, const unsigned char *fates, mpiox_error *error)
{
    mpiox_error lost;
    char text[1024];

    mpiox_forwarded_trace_report(forwarded, fates, &lost);
    if (lost.code == MPIOX_OK)
        return;
    if (error->code == MPIOX_OK) {
        *error = lost;
        return;
    }
    if (forwarded->file->topology->rank == 0)
        mpiox_process_notify("lost bytes: %s", mpiox_error_text(&lost, forwarded->file->path, text, sizeof text));
    const int64_t own = error->others > 0 ? error->past_last : error->offset + error->length;
    error->past_last = lost.offset + lost.length > own ? lost.offset + lost.length : own;
    error->others++;
}

/* As far as this rank knows. A rank of the delegate's node writes its bytes first, and knows best. */
static mpiox_fate fate_of(mpiox_forwarded *forwarded, int32_t owner)
{
    mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);

    if (delegate->local)
        (void)mpiox_process_is_serving(delegate);
    if (!mpiox_process_has_died(delegate))
        return MPIOX_FATE_ALIVE;
    mpiox_forwarded_mark_failed(forwarded, owner);
    if (atomic_load(&forwarded->traces[owner].damaged))
        return MPIOX_FATE_DAMAGED;
    return atomic_load(&forwarded->traces[owner].lost) ||
                   (delegate->local && mpiox_cache_error_count(&delegate->cache, forwarded->index[owner]) > 0)
               ? MPIOX_FATE_LOST
               : MPIOX_FATE_IN_FILE;
}

/* The fate of each owner's bytes, the same on all ranks. Collective. */
static int agree_on_fates(mpiox_forwarded *forwarded, unsigned char fates[MPIOX_FILE_RANGES])
{
    for (int32_t i = 0; i < forwarded->owners; i++)
        fates[i] = (unsigned char)fate_of(forwarded, i);
    if (PMPI_Allreduce(MPI_IN_PLACE, fates, forwarded->owners, MPI_UNSIGNED_CHAR, MPI_MAX,
                       forwarded->file->topology->comm) == MPI_SUCCESS)
        return MPIOX_OK;
    memset(fates, MPIOX_FATE_ALIVE, (size_t)forwarded->owners); /* this rank's own view ends no part */
    return MPIOX_E_MPI;
}

/* Each rank has flushed its share of the delegates. fates: of their bytes. */
static void agree_on_losses(mpiox_forwarded *forwarded, const mpiox_forwarded_late *late, unsigned char *fates,
                            mpiox_error *error)
{
    mpiox_error written = {.code = MPIOX_OK};
    int all_live = !mpiox_forwarded_trace_knows_dead(forwarded);

    *error = late->count > 0 ? late->lowest : late->request;
    mpiox_topology_agree(forwarded->file->topology, error, 1, &all_live);
    if (error->code != MPIOX_OK)
        mpiox_forwarded_late_agree(forwarded, late, &written);
    if (written.code != MPIOX_OK)
        *error = written;
    memset(fates, MPIOX_FATE_ALIVE, MPIOX_FILE_RANGES);
    if (!all_live && agree_on_fates(forwarded, fates) == MPIOX_OK)
        add_lost(forwarded, fates, error);
    mpiox_forwarded_trace_clear(forwarded);
}

/* The file is closed. Each rank ends the parts of the dead ones among its share of the delegates, if their bytes are in
 * the file: no other process would. The parts of those that die later are ended by who writes their bytes. */
static void end_parts_of_dead(mpiox_forwarded *forwarded, const unsigned char *fates)
{
    const mpiox_topology *topology = forwarded->file->topology;

    for (int32_t i = topology->rank; i < forwarded->owners; i += topology->size)
        if (fates[i] == MPIOX_FATE_IN_FILE)
            mpiox_forwarded_end_hidden(forwarded, i);
}

/* The bytes are in the file: their copies are useless. */
static void release_copies(mpiox_forwarded *forwarded, bool last)
{
    mpiox_topology *topology = forwarded->file->topology;
    mpiox_error ignored = {.code = MPIOX_OK};

    mpiox_replica_discard(forwarded);
    if (!forwarded->replica)
        return;
    mpiox_topology_all(
        topology, true); /* a closed file's pages are not discarded, nor does a rank write before old copies are gone */
    for (int32_t i = topology->rank; last && i < forwarded->owners; i += topology->size)
        close_one(forwarded->replica, i, false, &ignored);
}

static long long counted(const atomic_int_least64_t *counter)
{
    return (long long)atomic_load_explicit(counter, memory_order_relaxed);
}

/* Counters of this rank since the file was opened. */
static void report_event(const mpiox_forwarded *forwarded, bool stable, int64_t begun, int error)
{
    const mpiox_stats_delegated *stats = &forwarded->stats;

    mpiox_event_end("flush_barrier", forwarded->file->path, -1, -1, begun,
                    "\"delegates\":%d,\"stable\":%d,\"error\":%d,\"writes\":%lld,\"reads\":%lld,"
                    "\"bytes_written\":%lld,\"bytes_read\":%lld,\"misses\":%lld,\"messages\":%lld",
                    forwarded->owners, stable, error, counted(&stats->delegated_writes),
                    counted(&stats->delegated_reads), counted(&stats->delegated_bytes_written),
                    counted(&stats->delegated_bytes_read), counted(&stats->delegated_misses),
                    counted(&stats->delegated_messages));
}

/* One delegate keeps its bytes of the file, and writes them later. If delegates that should keep copies are dead, it
 * writes now. */
static void leave_behind(mpiox_forwarded *forwarded, int32_t owner, mpiox_forwarded_late *late)
{
    if (!mpiox_process_is_serving(mpiox_forwarded_owner(forwarded, owner))) {
        mpiox_forwarded_mark_failed(forwarded, owner);
        (void)mpiox_replica_restore(forwarded, owner); /* of ranks that had not detected its death, too */
    }
    if (forwarded->replica && !mpiox_replica_keep(forwarded, owner))
        barrier_one(forwarded, owner, false, false, late);
    else
        mpiox_forwarded_late_take(forwarded, owner, late);
}

/* Only ranks of its node can take a dead delegate's errors. */
static void take_errors_of_dead(mpiox_forwarded *forwarded, int32_t owner, mpiox_forwarded_late *late)
{
    mpiox_process *delegate = mpiox_forwarded_owner(forwarded, owner);

    if (!delegate->local || mpiox_process_is_serving(delegate) || !mpiox_process_has_died(delegate))
        return;
    mpiox_forwarded_mark_failed(forwarded, owner);
    mpiox_forwarded_late_take(forwarded, owner, late);
}

/* What a rank does about one delegate, which it calls if the delegate is of its share. */
static void barrier_part(mpiox_forwarded *forwarded, int32_t owner, const kind *kind, mpiox_forwarded_late *late)
{
    const mpiox_topology *topology = forwarded->file->topology;
    const bool calls = owner % topology->size == topology->rank;
    const int64_t before = late->count;

    if (!calls)
        take_errors_of_dead(forwarded, owner, late);
    else if (kind->behind)
        leave_behind(forwarded, owner, late);
    else
        barrier_one(forwarded, owner, kind->stable, kind->drop, late);
    if (late->count > before && mpiox_process_has_died(mpiox_forwarded_owner(forwarded, owner)))
        atomic_store(&forwarded->traces[owner].damaged, true);
    if (calls && kind->last)
        close_one(forwarded, owner, kind->behind, &late->request);
}

static pthread_mutex_t unreported_lock = PTHREAD_MUTEX_INITIALIZER;

static mpiox_error take_unreported(mpiox_forwarded *forwarded)
{
    pthread_mutex_lock(&unreported_lock);
    const mpiox_error taken = forwarded->unreported;
    forwarded->unreported = (mpiox_error){.code = MPIOX_OK};
    pthread_mutex_unlock(&unreported_lock);
    return taken;
}

/* Each rank talks to its share of the delegates. */
static int barrier(mpiox_forwarded *forwarded, bool stable, bool drop, bool last, mpiox_error *error)
{
    mpiox_topology *topology = forwarded->file->topology;
    mpiox_forwarded_late late = {.path = forwarded->file->path, .request = take_unreported(forwarded)};
    unsigned char fates[MPIOX_FILE_RANGES];
    mpiox_error losses;
    const double begun = mpiox_now();
    const int64_t event = mpiox_event_begin();

    *error = (mpiox_error){.code = MPIOX_OK};
    mpiox_forwarded_drain(forwarded, error);
    mpiox_topology_agree_error(topology, error); /* every rank's bytes are with the delegates */
    if (last)
        drop = !mpiox_topology_all(topology, !atomic_load(&forwarded->bypassed));
    const bool behind = last && !drop && forwarded->behind_close;
    for (int32_t i = 0; i < forwarded->owners; i++)
        barrier_part(forwarded, i, &(kind){stable, drop, last, behind}, &late);
    mpiox_forwarded_late_end(&late);
    agree_on_losses(forwarded, &late, fates, &losses);
    if (!behind)
        release_copies(forwarded, last);
    if (last)
        end_parts_of_dead(forwarded, fates);
    if (error->code == MPIOX_OK)
        *error = losses;
    if (error->code != MPIOX_OK)
        atomic_store(&forwarded->file->damaged, true);
    atomic_store(&forwarded->used, false);
    if (drop)
        atomic_store(&forwarded->bypassed, false);
    mpiox_forwarded_count_up(&forwarded->stats.delegated_flush_barriers, 1);
    mpiox_forwarded_count_up(&forwarded->stats.flush_barrier_nanoseconds, (int64_t)(1e9 * (mpiox_now() - begun)));
    if (event != 0)
        report_event(forwarded, stable, event, error->code);
    return error->code;
}

/* The next accesses may change the file past its delegates. Delegates of other nodes are not notified. */
static void note_past(const mpiox_forwarded *forwarded)
{
    for (int32_t i = 0; i < forwarded->owners; i++) {
        const mpiox_process *delegate = mpiox_forwarded_owner(forwarded, i);

        if (delegate->local)
            atomic_fetch_or(&delegate->cache.header->files[forwarded->index[i]].flags, MPIOX_FILE_PAST);
    }
}

int mpiox_forwarded_flush_barrier(mpiox_forwarded *forwarded, bool stable, bool drop, mpiox_error *error)
{
    if (drop)
        note_past(forwarded);
    return barrier(forwarded, stable, drop, false, error);
}

int mpiox_forwarded_flush_barrier_alone(mpiox_forwarded *forwarded, mpiox_error *error)
{
    mpiox_forwarded_late late = {.path = forwarded->file->path};
    mpiox_error one = {.code = MPIOX_OK};

    *error = (mpiox_error){.code = MPIOX_OK};
    note_past(forwarded);
    mpiox_forwarded_drain(forwarded, error);
    for (int32_t i = 0; i < forwarded->owners; i++)
        barrier_one(forwarded, i, false, true, &late);
    mpiox_forwarded_late_end(&late);
    for (int32_t i = 0; forwarded->replica && i < forwarded->owners; i++) { /* else they could come back */
        if (mpiox_replica_trim(forwarded, i, &one) != MPIOX_OK && late.request.code == MPIOX_OK)
            late.request = one;
    }
    if (error->code == MPIOX_OK)
        *error = mpiox_forwarded_late_alone(forwarded, &late);
    error->rank = forwarded->file->topology->rank;
    if (error->code != MPIOX_OK) {
        atomic_store(&forwarded->file->damaged, true);
        mpiox_forwarded_note_error(forwarded, error); /* the bytes may be of a rank that does not know it */
    }
    return error->code;
}

void mpiox_forwarded_note_error(mpiox_forwarded *forwarded, const mpiox_error *error)
{
    pthread_mutex_lock(&unreported_lock);
    if (forwarded->unreported.code == MPIOX_OK)
        forwarded->unreported = *error;
    pthread_mutex_unlock(&unreported_lock);
}

void mpiox_forwarded_bypass(mpiox_forwarded *forwarded)
{
    atomic_store(&forwarded->bypassed, true);
}

void mpiox_forwarded_note_collective(const mpiox_forwarded *forwarded)
{
    for (int32_t i = 0; i < forwarded->owners; i++) {
        const mpiox_process *delegate = mpiox_forwarded_owner(forwarded, i);

        if (delegate->local) { /* one is enough */
            atomic_fetch_add(&delegate->cache.header->files[forwarded->index[i]].collectives, 1);
            return;
        }
    }
}

int mpiox_forwarded_refresh(mpiox_forwarded *forwarded, mpiox_error *error)
{
    int code = MPIOX_OK;

    *error = (mpiox_error){.code = MPIOX_OK};
    pthread_mutex_lock(&forwarded->refreshing); /* every thread waits until it is done */
    if (atomic_load(&forwarded->bypassed)) {
        code = mpiox_forwarded_flush_barrier_alone(forwarded, error);
        atomic_store(&forwarded->bypassed, code != MPIOX_OK);
    }
    pthread_mutex_unlock(&forwarded->refreshing);
    return code;
}

int mpiox_forwarded_close(mpiox_forwarded *forwarded, mpiox_error *error)
{
    *error = (mpiox_error){.code = MPIOX_OK};
    if (!forwarded)
        return MPIOX_OK;
    barrier(forwarded, false, false, true, error);
    mpiox_forwarded_delist(forwarded);
    return error->code;
}
