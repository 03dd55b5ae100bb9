/*
 * mpiox_collective_call.c - a file's collectives, and the order of the steps of a call:
 *
 *   contribution -> reduction (barrier) -> direct | plan + rounds -> end (barrier)
 *
 * or, if every rank concludes from its own pieces that all go direct (mpiox_choose_ahead()), on one node
 *
 *   contribution -> direct -> reduction (barrier)
 *
 * and between nodes, where a wait at the end lasts as long as a message to a rank that sleeps,
 *
 *   contribution -> reduction (barrier) -> direct
 *
 * On this last way a rank leaves the call while others still access their pieces, as in the MPI library, and only the
 * rank whose access failed returns the error. In the next call in which ranks meet, accesses begin when all ranks have
 * begun that call: by then all accesses of the call before have ended. With mpiox_synchronous=true several nodes take
 * the way of one node, too. If not all ranks go direct, all ranks take the first way from the reduction on. Each call
 * begins with mpiox_individual_access(): after some direct calls, ranks do not meet any more.
 *
 * Guarantees: of ranks that meet, every one takes the same branch at every step; a rank that cannot take part reports
 * this in its contribution and still takes every step; where ranks meet at the end, the outcome's error is the same
 * everywhere.
 */
#include "mpiox_collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective_impl.h"
#include "mpiox_device_access.h"
#include "mpiox_event.h"
#include "mpiox_parts.h"
#include "mpiox_wait.h"

enum { WINDOW_UNIT = 512, WINDOW_MAX = 1024 * 1024 * 1024, SERVERS_MAX = 1 << 16 };

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

/* Size of a collective buffer, as requested or decided: at least 512 bytes, and a multiple. */
static int64_t round_window(int64_t bytes)
{
    bytes = bytes < WINDOW_MAX ? bytes / WINDOW_UNIT * WINDOW_UNIT : WINDOW_MAX;
    return bytes > WINDOW_UNIT ? bytes : WINDOW_UNIT;
}

/* A hint's typing error: a plan may have as many sets as there are servers. */
static void limit_servers(mpiox_file *file)
{
    if (file->layout.servers > SERVERS_MAX)
        file->layout.servers = SERVERS_MAX;
}

/* Choose the aggregators, the size of their buffers, and the transport. */
static int set_up(mpiox_collective *collective)
{
    mpiox_buffers *b = &collective->buffers;
    mpiox_file *file = b->file;
    const mpiox_topology *topology = file->topology;
    const mpiox_transport_ops *ops = mpiox_transport_choose(file);
    limit_servers(file);
    if (strcmp(file->hints.partition, "auto") != 0)
        collective->forced = mpiox_partition_find(file->hints.partition);
    b->per_aggregator = file->hints.buffers >= 2 ? file->hints.buffers : 2;
    b->window_bytes = file->hints.cb_buffer_size > 0 ? round_window(file->hints.cb_buffer_size) : 0;
    const int code = mpiox_aggregators_choose(b);
    b->window_bytes = round_window(b->window_bytes);
    if (code != MPIOX_OK)
        return code;
    const bool closes = mpiox_topology_one_node(topology) ||
                        topology->node_rank == 0; /* may run a barrier's serial part */
    if (closes)
        collective->reductions = malloc(sizeof(mpiox_reduction) * (size_t)topology->n_nodes);
    collective->transport = ops->create(b);
    return (collective->reductions || !closes) && collective->transport ? MPIOX_OK : MPIOX_E_NOMEM;
}

static int attach(mpiox_collective *collective, bool there, mpiox_error *error)
{
    mpiox_buffers *b = &collective->buffers;
    if (b->state)
        return MPIOX_OK;
    return mpiox_buffers_attach(b, collective->transport->ops->shared_bytes(collective->transport), there, error);
}

static bool memory_is_there(const mpiox_collective *collective)
{
    return mpiox_buffers_are_there(&collective->buffers,
                                   collective->transport->ops->shared_bytes(collective->transport));
}

static void release(mpiox_collective *collective)
{
    if (collective->transport)
        collective->transport->ops->free(collective->transport);
    mpiox_buffers_free(&collective->buffers);
    free(collective->reductions);
    free(collective->order);
    free(collective->owners_nodes);
}

/* Create an object without its memory; the ranks have to agree on its code and on whether the memory exists. */
static mpiox_collective *make(mpiox_file *file, int values[MPIOX_FILE_COMPANION_VALUES])
{
    mpiox_collective *collective = calloc(1, sizeof *collective);
    values[0] = MPIOX_E_NOMEM;
    values[1] = false;
    if (!collective)
        return NULL;
    collective->buffers.file = file;
    values[0] = set_up(collective);
    values[1] = values[0] == MPIOX_OK && memory_is_there(collective);
    return collective;
}

bool mpiox_collective_prepare(mpiox_file *file, mpiox_collective **out, int values[MPIOX_FILE_COMPANION_VALUES])
{
    *out = NULL;
    if (!mpiox_aggregators_are_local(file))
        return false;
    *out = make(file, values);
    return true;
}

int mpiox_collective_create(mpiox_file *file, mpiox_collective *prepared, const int *agreed, mpiox_collective **out,
                            const char **why_not)
{
    mpiox_collective *collective = prepared;
    mpiox_error error = {.code = MPIOX_OK};
    int values[MPIOX_FILE_COMPANION_VALUES], code = MPIOX_OK;
    if (agreed) {
        memcpy(values, agreed, sizeof values);
    } else {
        mpiox_collective_free(prepared);
        collective = make(file, values);
        code = mpiox_topology_min(file->topology, MPIOX_FILE_COMPANION_VALUES, values, NULL, 0);
    }
    code = code == MPIOX_OK ? values[0] : code;
    limit_servers(file);
    if (code == MPIOX_OK && (values[1] || mpiox_topology_background(file->topology)))
        code = attach(collective, values[1], &error); /* the same on every rank */
    *why_not = code == MPIOX_OK ? NULL : mpiox_file_memory_reason(code);
    *out = code == MPIOX_OK ? collective : NULL;
    if (code != MPIOX_OK)
        mpiox_collective_free(collective);
    return code;
}

void mpiox_collective_free(mpiox_collective *collective)
{
    if (collective)
        release(collective);
    free(collective);
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

static int64_t access_own(const mpiox_call *call, const mpiox_request *request, mpiox_error *error)
{
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_STORAGE);
    const int64_t done = mpiox_individual_access_own(call->b->file, request, &call->device, error);
    mpiox_parts_on(before);
    return done;
}

/* Do ranks that all go direct agree before they access, and not after? The same on all ranks. */
static bool agrees_first(const mpiox_file *file)
{
    return !mpiox_topology_one_node(file->topology) && !file->hints.synchronous;
}

/* Access before the ranks agree, if that is harmless; an error is part of this rank's contribution. */
static void go_ahead(mpiox_collective *collective, mpiox_call *call, const mpiox_request *request)
{
    const int rank = call->b->file->topology->rank;
    mpiox_contribution *mine = &call->b->contributions[call->b->file->topology->node_rank];
    mpiox_individual_contribute(collective, request, mine);
    if (!mpiox_choose_ahead(collective, call)) {
        mine->flags |= MPIOX_CONTRIBUTION_MEETS | (mine->length > 0 ? MPIOX_CONTRIBUTION_WAITS : 0);
        call->done = mine->length > 0 ? -1 : 0;
        return;
    }
    call->done = -1;
    if (agrees_first(call->b->file))
        return;
    call->done = access_own(call, request, &mine->error);
    if (mine->error.code != MPIOX_OK)
        mine->error.rank = rank;
}

/* What aggregators read or write may have been written by another node a moment ago; see mpiox_file_coherence.c. */
static void make_coherent(mpiox_call *call)
{
    mpiox_error error;
    if (mpiox_file_make_coherent(call->b->file, &error) != MPIOX_OK && !mpiox_buffers_failed(call->b))
        mpiox_buffers_fail(call->b, &error);
}

static void run_two_phase(mpiox_collective *collective, mpiox_call *call)
{
    mpiox_buffers *b = call->b;
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_PLANNING);
    call->participants = b->file->topology->node_size;
    call->held = -1;
    collective->transport->ops->begin(collective->transport, call);
    int code = mpiox_choose_plan(collective, call);
    if (code == MPIOX_OK)
        code = mpiox_owners_choose(collective);
    if (code == MPIOX_OK)
        code = mpiox_rounds_used(call);
    if (code == MPIOX_OK)
        mpiox_windows_turn(call);
    if (code == MPIOX_OK)
        code = collective->transport->ops->start(collective->transport, call);
    call->progress = calloc((size_t)b->n_local + 1, sizeof *call->progress);
    /* Out of memory for a few kilobytes after all ranks have agreed to go: the others wait for this rank's
     * arrivals, which it cannot compute without a plan. (A geometry that no planner takes was refused before: by
     * the contribution, the registry of hints, and set_up().) */
    if (code != MPIOX_OK || !call->progress)
        mpiox_file_give_up(b->file, code == MPIOX_OK || code == MPIOX_E_NOMEM ? MPIOX_E_NOMEM : MPIOX_E_ARG,
                           call->reduction.start, call->reduction.end - call->reduction.start, "planning file domains");
    mpiox_parts_on(before);
    mpiox_rounds_run(collective->transport, call);
    b->file->stats.rounds += call->exchange_round;
    if (call->staging != NULL)
        mpiox_independent_count_device(&b->file->independent, call->write, 0, call->staging->spent_s);
    mpiox_staging_give(call->staging);
    free(call->progress);
    free(call->used);
}

/* Into which parts the time of a call falls. */
static void count_parts(mpiox_stats *stats, const mpiox_parts *before)
{
    const double *then = before->seconds, *now = mpiox_parts_so_far()->seconds;
    const double messages_s = now[MPIOX_PART_MESSAGES] - then[MPIOX_PART_MESSAGES];
    stats->plan_s += now[MPIOX_PART_PLANNING] - then[MPIOX_PART_PLANNING];
    stats->exchange_s += now[MPIOX_PART_COPYING] - then[MPIOX_PART_COPYING] + messages_s;
    stats->messages_s += messages_s;
    stats->io_s += now[MPIOX_PART_STORAGE] - then[MPIOX_PART_STORAGE];
    stats->wait_s += now[MPIOX_PART_WAITING] - then[MPIOX_PART_WAITING];
}

/* Data bytes of this rank below the lowest end of file that anybody saw. */
static int64_t bytes_before(const mpiox_file *file, const mpiox_request *request, int64_t eof)
{
    if (eof == INT64_MAX || request->length == 0)
        return request->length;
    const int64_t data = mpiox_typemap_position(file->view, eof - file->displacement) - request->position;
    return data < 0 ? 0 : data < request->length ? data : request->length;
}

static void count_call(mpiox_call *call, int64_t bytes, bool direct, double begun, const mpiox_parts *before)
{
    mpiox_stats *stats = &call->b->file->stats;
    count_parts(stats, before);
    stats->direct_calls += direct;
    *(call->write ? &stats->direct_bytes_written : &stats->direct_bytes_read) += direct ? bytes : 0;
    if (call->write) {
        stats->collective_writes++;
        stats->bytes_written += bytes;
    } else {
        stats->collective_reads++;
        stats->bytes_read += bytes;
    }
    stats->total_s += mpiox_now() - begun;
}

/* The range is of all ranks, the bytes are of this one. */
static void report_event(const mpiox_call *call, bool direct, int64_t begun, const mpiox_outcome *outcome)
{
    const mpiox_file *file = call->b->file;

    mpiox_event_end(call->write ? "collective_write" : "collective_read", file->path, call->reduction.start,
                    call->reduction.end - call->reduction.start, begun,
                    "\"way\":\"%s\",\"method\":\"%s\",\"rounds\":%lld,\"bytes\":%lld,\"error\":%d",
                    direct ? "direct" : "two_phase", direct ? "" : file->stats.partition,
                    direct ? 0LL : (long long)call->exchange_round, (long long)outcome->bytes, outcome->error.code);
}

/* For the first exchange that fills a good part of the buffers of all nodes. The other ranks wait meanwhile. */
static void make_huge(const mpiox_collective *collective, const mpiox_call *call)
{
    enum { PART = 4 };
    const mpiox_buffers *b = call->b;
    const mpiox_reduction *s = &call->reduction;
    const int64_t of_each = b->per_aggregator * b->window_bytes;
    if (b->state->huge || s->bytes < b->n_aggregators * of_each / PART || s->error.code != MPIOX_OK ||
        (s->flags & MPIOX_CONTRIBUTION_UNUSABLE) || mpiox_choose_direct(collective, call))
        return;
    b->state->huge = true;
    (void)mpiox_segment_make_huge(b->buffers, b->n_local * of_each);
}

/* All steps up to the agreement on the way. True: continue; false: the call is over, and *code is its result. */
static bool agree_to_begin(mpiox_collective *collective, mpiox_call *call, const mpiox_request *request,
                           mpiox_outcome *outcome, int *code)
{
    mpiox_file *file = call->b->file;
    mpiox_error memory_error = {.code = MPIOX_OK};
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_PLANNING);
    const int memory = collective->native_only ? MPIOX_E_UNSUPPORTED : attach(collective, false, &memory_error);
    *code = MPIOX_E_UNSUPPORTED;
    if (memory != MPIOX_OK) { /* on every rank */
        if (!collective->native_only)
            snprintf(file->stats.reason, sizeof file->stats.reason, "%s", mpiox_file_memory_reason(memory));
        collective->native_only = true;
        mpiox_parts_on(before);
        return false;
    }
    mpiox_contribution_write(call);
    go_ahead(collective, call, request);
    mpiox_reduction_agree(collective, call, make_huge);
    mpiox_individual_note(collective, &call->reduction);
    for (int write = 0; write < 2 && collective->individual.on; write++)
        collective->individual.least[write] = mpiox_choose_alone(collective, write);
    file->new_view = false;
    /* Whatever the result of this call: the next one will not report it. */
    if (call->reduction.flags & MPIOX_CONTRIBUTION_NEW_VIEW)
        collective->transport->ops->forget(collective->transport);
    mpiox_parts_on(before);
    if (call->reduction.error.code != MPIOX_OK) {
        outcome->error = call->reduction.error;
        file->stats.errors++;
        *code = outcome->error.code;
        return false;
    }
    if (call->reduction.flags & MPIOX_CONTRIBUTION_UNUSABLE)
        return false;
    *code = MPIOX_OK;
    return call->reduction.bytes > 0;
}

/* The reduction decides how ranks that have not gone ahead access the file. Direct: an error ends a rank's part. */
static void access_rest(mpiox_collective *collective, mpiox_call *call, const mpiox_request *request, bool direct)
{
    mpiox_error error = {.code = MPIOX_OK};
    if (!direct) {
        make_coherent(call);
        run_two_phase(collective, call);
        if (call->write)
            make_coherent(call);
    } else if (call->done < 0) {
        call->done = access_own(call, request, &error);
        if (error.code != MPIOX_OK)
            mpiox_buffers_fail(call->b, &error);
    }
}

/* Which way all ranks take, remembered for the next call. */
static bool is_direct(mpiox_collective *collective, const mpiox_call *call)
{
    const bool again = collective->all_ahead[call->write], ahead = !(call->reduction.flags & MPIOX_CONTRIBUTION_WAITS),
               direct = (again && ahead) || mpiox_choose_direct(collective, call);
    collective->all_ahead[call->write] = ahead;
    collective->exchanged[call->write] = !direct;
    return direct;
}

static int carry_out(mpiox_collective *collective, const mpiox_request *request, mpiox_outcome *outcome)
{
    mpiox_buffers *b = &collective->buffers;
    mpiox_file *file = b->file;
    mpiox_request shifted = mpiox_file_view_shift(file, request);
    mpiox_call call = {.b = b, .request = &shifted, .write = request->write};
    const mpiox_parts before = *mpiox_parts_so_far();
    const double begun = mpiox_now();
    const int64_t event = mpiox_event_begin();
    int code;
    *outcome = (mpiox_outcome){.bytes = 0, .error = {.code = MPIOX_OK}};
    mpiox_device_has(&shifted, begun, &call.device);
    if (!agree_to_begin(collective, &call, request, outcome, &code)) {
        if (code == MPIOX_OK) /* no rank accesses anything */
            count_call(&call, 0, false, begun, &before);
        return code;
    }
    file->stats.pieces += request->length > 0 ? b->contributions[file->topology->node_rank].pieces : 0;
    const bool direct = is_direct(collective, &call);
    if (!collective->all_ahead[call.write]) {
        access_rest(collective, &call, request, direct);
        mpiox_reduction_end(collective, outcome);
        if (outcome->error.code != MPIOX_OK) /* on every rank */
            collective->transport->ops->forget(collective->transport);
    } else if (call.done < 0) {
        call.done = access_own(&call, request, &outcome->error);
        outcome->error.rank = file->topology->rank;
    }
    if (outcome->error.code == MPIOX_OK)
        outcome->bytes = direct ? call.done : bytes_before(file, &shifted, atomic_load(&b->state->eof));
    else
        file->stats.errors++;
    count_call(&call, outcome->bytes, direct, begun, &before);
    if (event != 0)
        report_event(&call, direct, event, outcome);
    return outcome->error.code;
}

int mpiox_collective_access(mpiox_collective *collective, const mpiox_request *request, mpiox_outcome *outcome)
{
    if (mpiox_individual_access(collective, request, outcome))
        return outcome->error.code;
    const mpiox_wait_limit *before = mpiox_wait_set_limit(&collective->buffers.file->topology->limit);
    const int code = carry_out(collective, request, outcome);
    mpiox_wait_set_limit(before);
    return code;
}

int mpiox_collective_access_background(mpiox_collective *collective, const mpiox_request *request,
                                       mpiox_outcome *outcome)
{
    const mpiox_topology *topology = collective->buffers.file->topology;
    mpiox_topology_forbid_mpi(!topology->threads); /* the program's threads make MPI progress */
    const int code = mpiox_collective_access(collective, request, outcome);
    mpiox_topology_forbid_mpi(false);
    if (code == MPIOX_E_UNSUPPORTED && outcome->error.code == MPIOX_OK) { /* too late to hand the call to PMPI */
        mpiox_error_set(&outcome->error, code, 0, -1, -1,
                        "nonblocking collective with a view or memory type nested too deeply");
        outcome->error.rank = topology->rank;
    }
    return code;
}

bool mpiox_collective_has_memory(const mpiox_collective *collective)
{
    return !collective->native_only;
}

int mpiox_collective_aggregators(const mpiox_collective *collective)
{
    return collective->buffers.n_aggregators;
}

int mpiox_collective_aggregator(const mpiox_collective *collective, int i)
{
    return collective->buffers.aggregators[i];
}

int64_t mpiox_collective_buffer_bytes(const mpiox_collective *collective)
{
    return collective->buffers.window_bytes;
}
