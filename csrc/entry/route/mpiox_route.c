/* mpiox_route.c - see mpiox_route.h. */
#include "mpiox_route.h"

#include <errno.h>
#include <stdio.h>

#include "mpiox_device_access.h"
#include "mpiox_forwarded_impl.h"
#include "mpiox_wait.h"

static bool through_delegates(const mpiox_route *route)
{
    return route->forwarded && !route->file->atomic;
}

/* A write has not gone through the delegates: pages that they have may be old. */
static void bypass(const mpiox_route *route, const mpiox_request *request)
{
    if (route->forwarded && request->write)
        mpiox_forwarded_bypass(route->forwarded);
}

/* Note a failed write: a container whose parts lack bytes does not become `whole`. */
static int noted(const mpiox_route *route, const mpiox_request *request, int code)
{
    if (request->write && code == MPIOX_E_IO)
        atomic_store(&route->file->damaged, true);
    return code;
}

/* ---- one rank's access ------------------------------------------------------------------------------------------- */

/* Access memory of the host. */
static inline __attribute__((always_inline)) int access_host(const mpiox_route *route, const mpiox_request *request,
                                                             mpiox_outcome *outcome)
{
    if (through_delegates(route))
        return mpiox_forwarded_access(route->forwarded, request, outcome);
    const int code = mpiox_file_access(route->file, request, outcome);
    bypass(route, request);
    return code;
}

static int access_part(void *route, const mpiox_request *part, int64_t *done, mpiox_error *error)
{
    mpiox_outcome outcome;
    const int code = access_host(route, part, &outcome);
    *done = outcome.bytes;
    *error = outcome.error;
    return code;
}

/* If an access has failed because its memory is a GPU's, access it once more. */
static __attribute__((noinline)) int access_again(const mpiox_route *route, const mpiox_request *request,
                                                  mpiox_outcome *outcome)
{
    mpiox_device device;
    mpiox_route as_is = *route;
    if (outcome->error.code != MPIOX_E_IO || outcome->error.sys_errno != EFAULT || outcome->bytes > 0 ||
        !mpiox_device_has(request, mpiox_now(), &device))
        return outcome->error.code;
    const mpiox_device_steps steps = {mpiox_file_device_window(route->file, request), access_part, &as_is};
    const int code = mpiox_device_access(request, &device, &steps, &route->file->independent, &outcome->bytes,
                                         &outcome->error);
    outcome->error.rank = route->file->topology->rank;
    return code;
}

/* An access does not query beforehand whether its memory is a GPU's: the query would take as long as one request to
 * the file system. */
static int access_any(const mpiox_route *route, const mpiox_request *request, mpiox_outcome *outcome)
{
    const int code = access_host(route, request, outcome);
    return code == MPIOX_OK ? code : access_again(route, request, outcome);
}

int mpiox_route_access(const mpiox_route *route, const mpiox_request *request, mpiox_outcome *outcome)
{
    const int code = access_any(route, request, outcome);
    return code == MPIOX_OK ? code : noted(route, request, code);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* Count this rank's part of a collective that has gone through the delegates. */
static void account(const mpiox_route *route, const mpiox_request *request, const mpiox_outcome *outcome,
                    const char *why)
{
    mpiox_stats *stats = &route->file->stats;

    mpiox_forwarded_count_up(&route->forwarded->stats.delegated_calls, 1);
    if (request->write) {
        stats->collective_writes++;
        stats->bytes_written += outcome->bytes;
        stats->direct_bytes_written += outcome->bytes;
    } else {
        stats->collective_reads++;
        stats->bytes_read += outcome->bytes;
        stats->direct_bytes_read += outcome->bytes;
    }
    stats->errors += outcome->error.code != MPIOX_OK;
    mpiox_stats_set_method(stats, request->write, NULL, false, why);
}

static bool is_cached(const mpiox_route *route)
{
    return through_delegates(route) && route->file->hints.collective == MPIOX_COLLECTIVE_CACHED;
}

/* May each rank begin before the others have arrived? The same on all ranks. */
static bool begins_alone(const mpiox_route *route)
{
    return is_cached(route) && route->all_ours && route->file->hints.collective_only;
}

static bool ends_alone(const mpiox_route *route)
{
    return is_cached(route) && mpiox_topology_one_node(route->file->topology);
}

void mpiox_route_wait(const mpiox_route *route)
{
    if (ends_alone(route))
        mpiox_topology_wait_steps(route->file->topology);
}

/* Every rank accesses its own part through the delegates. The bytes must have arrived at the delegates before another
 * rank begins the next collective: the write is not collected. */
static int collective_through_delegates(const mpiox_route *route, const mpiox_request *request, mpiox_outcome *outcome)
{
    mpiox_topology *topology = route->file->topology;

    if (request->local_error.code == MPIOX_OK)
        access_any(route, request, outcome);
    else
        *outcome = (mpiox_outcome){.bytes = 0, .error = request->local_error};
    if (request->write)
        mpiox_forwarded_drain(route->forwarded, &outcome->error);
    if (is_cached(route) && outcome->error.code == MPIOX_E_UNSUPPORTED) /* all ranks would have to get that code */
        outcome->error.code = MPIOX_E_NOMEM;
    if (ends_alone(route)) {
        if (outcome->error.code != MPIOX_OK)
            mpiox_forwarded_note_error(route->forwarded, &outcome->error);
        mpiox_topology_end_step(topology);
    } else {
        mpiox_topology_agree_error(topology, &outcome->error);
    }
    account(route, request, outcome,
            is_cached(route) ? "through delegates: mpiox_collective=cached"
                             : "through delegates: accesses of this file are cached there");
    return outcome->error.code;
}

/* Two agreements at most, so that every rank takes the same way. */
static int choose(const mpiox_route *route, const mpiox_request *request, mpiox_outcome *outcome)
{
    const bool able = request->local_error.code == MPIOX_OK && mpiox_file_view_usable(route->file);
    const mpiox_collective_way way = route->file->hints.collective;
    int values[] = {way != MPIOX_COLLECTIVE_CACHED && !mpiox_forwarded_is_used(route->forwarded), able};
    mpiox_error error = {.code = MPIOX_OK};

    *outcome = (mpiox_outcome){.bytes = 0, .error = {.code = MPIOX_OK}};
    if (route->forwarded->collects && way != MPIOX_COLLECTIVE_TWO_PHASE) /* collected writes come before it */
        mpiox_forwarded_drain(route->forwarded, &error);
    if (error.code != MPIOX_OK) /* of bytes of an earlier call */
        mpiox_forwarded_note_error(route->forwarded, &error);
    if (mpiox_topology_min(route->file->topology, 2, values, NULL, 0) != MPIOX_OK) {
        mpiox_error_set(&outcome->error, MPIOX_E_MPI, 0, -1, -1, "agreeing on the way of a collective");
        return outcome->error.code;
    }
    if (!values[0] && values[1] && way != MPIOX_COLLECTIVE_TWO_PHASE)
        return collective_through_delegates(route, request, outcome);
    if (!values[0] && mpiox_forwarded_flush_barrier(route->forwarded, false, true, &error) != MPIOX_OK) {
        outcome->error = error;
        return error.code;
    }
    const int code = mpiox_collective_access(route->collective, request, outcome);
    mpiox_forwarded_note_collective(route->forwarded);
    bypass(route, request);
    return code;
}

static int run_collective(const mpiox_route *route, const mpiox_request *request, bool background,
                          mpiox_outcome *outcome)
{
    const mpiox_topology *topology = route->file->topology;

    if (!through_delegates(route)) {
        const int code = background ? mpiox_collective_access_background(route->collective, request, outcome)
                                    : mpiox_collective_access(route->collective, request, outcome);
        bypass(route, request);
        return code;
    }
    if (begins_alone(route)) {
        mpiox_topology_forbid_mpi(background && !topology->threads);
        mpiox_route_wait(route);
        const int code = collective_through_delegates(route, request, outcome);
        mpiox_topology_forbid_mpi(false);
        return code;
    }
    if (!background)
        return choose(route, request, outcome);
    mpiox_topology_forbid_mpi(!topology->threads); /* the program's threads make MPI progress */
    const int code = choose(route, request, outcome);
    mpiox_topology_forbid_mpi(false);
    if (code == MPIOX_E_UNSUPPORTED && outcome->error.code == MPIOX_OK) {
        mpiox_error_set(&outcome->error, code, 0, -1, -1,
                        "nonblocking collective with a view or memory type nested too deeply");
        outcome->error.rank = topology->rank;
    }
    return code;
}

int mpiox_route_collective(const mpiox_route *route, const mpiox_request *request, bool background,
                           mpiox_outcome *outcome)
{
    return noted(route, request, run_collective(route, request, background, outcome));
}
