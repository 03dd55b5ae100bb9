/*
 * mpiox_schedule_sjf.c - shortest job first.
 *
 * Problem.   A job with few bytes waits behind one with many.
 * Algorithm. A job is all waiting requests of a file in one direction. The next request is the first, in file order, of
 *            the job with the fewest bytes; of equal jobs, of the one whose oldest request has waited longest. The job
 *            is chosen anew after each batch, so that a job that grows loses its place. Large jobs starve but for the
 *            patience.
 * Source.    SJF of AGIOS: F. Boito, R. Kassick, P. Navaux and Y. Denneulin, "Automatic I/O scheduling algorithm
 *            selection for parallel file systems", Concurrency and Computation: Practice and Experience 28 (8), 2016.
 */
#include <stddef.h>

#include "mpiox_schedule_lane.h"
#include "mpiox_schedule_policies.h"

static uint64_t oldest(const mpiox_schedule *schedule, const mpiox_schedule_lane *lane)
{
    return schedule->entries[lane->ready.first].number;
}

static uint32_t pick(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until)
{
    const mpiox_schedule_lane *best = NULL;
    (void)now, (void)hurry, (void)until;
    for (int32_t i = 0; i < schedule->lane_count; i++) {
        const mpiox_schedule_lane *lane = &schedule->lanes[i];
        if (lane->ready.count == 0)
            continue;
        if (best == NULL || lane->bytes < best->bytes ||
            (lane->bytes == best->bytes && oldest(schedule, lane) < oldest(schedule, best)))
            best = lane;
    }
    return mpiox_schedule_lane_lowest(schedule, best);
}

const mpiox_schedule_policy mpiox_schedule_sjf = {
    .name = "sjf",
    .source = "SJF of AGIOS: Boito et al., Automatic I/O scheduling algorithm selection for parallel file systems, "
              "CCPE 28 (8), 2016",
    .lanes = MPIOX_LANES_STREAM,
    .join = MPIOX_JOIN_ANY,
    .pick = pick,
};
