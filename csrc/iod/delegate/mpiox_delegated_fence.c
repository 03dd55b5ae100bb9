/*
 * mpiox_delegated_fence.c - bringing everything to the file: sync, close, other ways of access.
 *
 * Problem.   A fence must end in the same way on every rank, though any delegate may die meanwhile, and must not cost a
 *            rank that has many delegates to talk to more than the others.
 * Algorithm. All ranks send what they still hold, meet, and then each talks to its share of the delegates (delegate d
 *            to rank d mod ranks); they agree on the outcome.
 * Guarantee. After a fence everything that any rank wrote before it is in the file. A delegate that is dead by then has
 *            been rescued first; what could not be rescued, or written at all, is an error of the fence.
 */
#include "mpiox_delegated_impl.h"

#include "mpiox_event.h"

/* A request failed: so does the fence. Nobody else is told. */
static void note(int32_t owner, const mpiox_slot *slot, mpiox_error *error)
{
    if (slot->result == MPIOX_OK || slot->result == MPIOX_E_UNSUPPORTED || error->code != MPIOX_OK)
        return;
    *error = slot->error;
    error->delegate = owner + 1;
}

static void fence_one(mpiox_delegated *delegated, int32_t owner, bool stable, bool drop, mpiox_delegated_late *late)
{
    mpiox_slot slot = {.op = MPIOX_OP_FLUSH};

    slot.arg[1] = INT64_MAX;
    slot.arg[2] = stable;
    slot.arg[3] = drop;
    if (mpiox_delegated_request(delegated, owner, &slot) == MPIOX_E_UNSUPPORTED)
        mpiox_delegated_lose(delegated, owner); /* its pages reach the file by rescue */
    else
        note(owner, &slot, &late->request);
    mpiox_delegated_late_take(delegated, owner, late);
}

/* close(2) may be where a file system says that it could not keep what it was given. */
static void close_one(mpiox_delegated *delegated, int32_t owner, mpiox_error *error)
{
    mpiox_slot slot = {.op = MPIOX_OP_CLOSE};

    if (mpiox_delegated_request(delegated, owner, &slot) != MPIOX_E_UNSUPPORTED)
        note(owner, &slot, error);
}

/* Each rank has flushed its share of the delegates. What is lost with a host is the error if there is no other. */
static void agree_on_losses(mpiox_delegated *delegated, const mpiox_delegated_late *late, mpiox_error *error)
{
    mpiox_error written = {.code = MPIOX_OK};

    *error = late->count > 0 ? late->lowest : late->request;
    if (error->code == MPIOX_OK && mpiox_delegated_trace_is_lost(delegated))
        error->code = MPIOX_E_UNSUPPORTED;
    mpiox_topology_agree_error(delegated->file->topology, error);
    if (error->code == MPIOX_E_UNSUPPORTED)
        mpiox_delegated_trace_report(delegated, error);
    else if (error->code != MPIOX_OK)
        mpiox_delegated_late_agree(delegated, late, &written);
    if (written.code != MPIOX_OK)
        *error = written;
    mpiox_delegated_trace_clear(delegated);
}

/* The copies of what is in the file now are of no use any more. */
static void release_copies(mpiox_delegated *delegated, bool last)
{
    mpiox_topology *topology = delegated->file->topology;
    mpiox_error ignored = {.code = MPIOX_OK};

    mpiox_replica_discard(delegated);
    if (!delegated->replica)
        return;
    mpiox_topology_all(topology, true); /* nobody discards what is closed, or writes before old copies are gone */
    for (int32_t i = topology->rank; last && i < delegated->owners; i += topology->size)
        close_one(delegated->replica, i, &ignored);
}

static long long counted(const atomic_int_least64_t *counter)
{
    return (long long)atomic_load_explicit(counter, memory_order_relaxed);
}

/* What this rank has done through the delegates since the file was opened. */
static void tell_tracer(const mpiox_delegated *delegated, bool stable, int64_t begun, int error)
{
    const mpiox_stats_delegated *stats = &delegated->stats;

    mpiox_event_end("fence", delegated->file->path, -1, -1, begun,
                    "\"delegates\":%d,\"stable\":%d,\"error\":%d,\"writes\":%lld,\"reads\":%lld,"
                    "\"bytes_written\":%lld,\"bytes_read\":%lld,\"misses\":%lld,\"messages\":%lld",
                    delegated->owners, stable, error, counted(&stats->delegated_writes),
                    counted(&stats->delegated_reads), counted(&stats->delegated_bytes_written),
                    counted(&stats->delegated_bytes_read), counted(&stats->delegated_misses),
                    counted(&stats->delegated_messages));
}

/* Each rank talks to its share of the delegates. */
static int fence(mpiox_delegated *delegated, bool stable, bool drop, bool last, mpiox_error *error)
{
    mpiox_topology *topology = delegated->file->topology;
    mpiox_delegated_late late = {.path = delegated->file->path};
    mpiox_error losses;
    const double begun = mpiox_now();
    const int64_t event = mpiox_event_begin();

    *error = (mpiox_error){.code = MPIOX_OK};
    mpiox_delegated_drain(delegated, error);
    mpiox_topology_agree_error(topology, error); /* every rank's bytes are with the delegates */
    if (last)
        drop = !mpiox_topology_all(topology, !atomic_load(&delegated->passed_by));
    for (int32_t i = topology->rank; i < delegated->owners; i += topology->size) {
        fence_one(delegated, i, stable, drop, &late);
        if (last)
            close_one(delegated, i, &late.request);
    }
    mpiox_delegated_late_end(&late);
    agree_on_losses(delegated, &late, &losses);
    release_copies(delegated, last);
    if (error->code == MPIOX_OK)
        *error = losses;
    atomic_store(&delegated->used, false);
    if (drop)
        atomic_store(&delegated->passed_by, false);
    mpiox_delegated_count_up(&delegated->stats.delegated_fences, 1);
    mpiox_delegated_count_up(&delegated->stats.fence_nanoseconds, (int64_t)(1e9 * (mpiox_now() - begun)));
    if (event != 0)
        tell_tracer(delegated, stable, event, error->code);
    return error->code;
}

int mpiox_delegated_fence(mpiox_delegated *delegated, bool stable, bool drop, mpiox_error *error)
{
    return fence(delegated, stable, drop, false, error);
}

int mpiox_delegated_fence_alone(mpiox_delegated *delegated, mpiox_error *error)
{
    mpiox_delegated_late late = {.path = delegated->file->path};
    mpiox_error one = {.code = MPIOX_OK};

    *error = (mpiox_error){.code = MPIOX_OK};
    mpiox_delegated_drain(delegated, error);
    for (int32_t i = 0; i < delegated->owners; i++)
        fence_one(delegated, i, false, true, &late);
    mpiox_delegated_late_end(&late);
    for (int32_t i = 0; delegated->replica && i < delegated->owners; i++) { /* else they could come back */
        if (mpiox_replica_trim(delegated, i, &one) != MPIOX_OK && late.request.code == MPIOX_OK)
            late.request = one;
    }
    if (error->code == MPIOX_OK)
        *error = mpiox_delegated_late_alone(delegated, &late);
    error->rank = delegated->file->topology->rank;
    return error->code;
}

void mpiox_delegated_pass_by(mpiox_delegated *delegated)
{
    atomic_store(&delegated->passed_by, true);
}

void mpiox_delegated_note_collective(const mpiox_delegated *delegated)
{
    for (int32_t i = 0; i < delegated->owners; i++) {
        const mpiox_delegate *delegate = mpiox_delegated_owner(delegated, i);

        if (delegate->local) { /* one is enough */
            atomic_fetch_add(&delegate->cache.header->files[delegated->index[i]].collectives, 1);
            return;
        }
    }
}

int mpiox_delegated_refresh(mpiox_delegated *delegated, mpiox_error *error)
{
    int code = MPIOX_OK;

    *error = (mpiox_error){.code = MPIOX_OK};
    pthread_mutex_lock(&delegated->refreshing); /* no thread goes on before it is done */
    if (atomic_load(&delegated->passed_by)) {
        code = mpiox_delegated_fence_alone(delegated, error);
        atomic_store(&delegated->passed_by, code != MPIOX_OK);
    }
    pthread_mutex_unlock(&delegated->refreshing);
    return code;
}

int mpiox_delegated_close(mpiox_delegated *delegated, mpiox_error *error)
{
    *error = (mpiox_error){.code = MPIOX_OK};
    if (!delegated)
        return MPIOX_OK;
    fence(delegated, false, false, true, error);
    mpiox_delegated_delist(delegated);
    return error->code;
}
