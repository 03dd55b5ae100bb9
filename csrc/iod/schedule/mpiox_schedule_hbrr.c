/*
 * mpiox_schedule_hbrr.c - handle-based round robin.
 *
 * Problem.   Mixed requests of many files should reach the file system sorted and merged file by file, and no file
 *            should starve the others.
 * Algorithm. Files take turns, reads and writes apart. In a turn requests of the file are served in file order, merged
 *            if they touch, until the quantum is used up or none is left. The first request of a turn is served even if
 *            it is larger than the quantum. The file whose request arrived first has the first turn.
 * Source.    HBRR of IOFSL: K. Ohta, D. Kimpe, J. Cope, K. Iskra, R. Ross and Y. Ishikawa, "Optimization Techniques at
 *            the I/O Forwarding Layer", IEEE Cluster 2010. The quantum there is a number of requests, here of bytes.
 */
#include "mpiox_schedule_lane.h"
#include "mpiox_schedule_policies.h"

static uint32_t pick(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until)
{
    const int64_t quantum = schedule->options.quantum;
    mpiox_schedule_lane *lane = &schedule->lanes[schedule->turn];
    (void)now, (void)hurry, (void)until;
    if (lane->used == 0 || lane->used >= quantum || lane->ready.count == 0) {
        lane->used = 0;
        schedule->turn = mpiox_schedule_lane_next(schedule, schedule->turn);
        lane = &schedule->lanes[schedule->turn];
        lane->used = 0;
    }
    schedule->allowance = quantum - lane->used;
    return mpiox_schedule_lane_lowest(schedule, lane);
}

static void served(mpiox_schedule *schedule, mpiox_schedule_lane *lane, int64_t end, int64_t bytes)
{
    (void)schedule, (void)end;
    lane->used += bytes;
}

const mpiox_schedule_policy mpiox_schedule_hbrr = {
    .name = "hbrr",
    .source = "HBRR of IOFSL: Ohta et al., Optimization Techniques at the I/O Forwarding Layer, IEEE Cluster 2010",
    .lanes = MPIOX_LANES_STREAM,
    .join = MPIOX_JOIN_ANY,
    .pick = pick,
    .served = served,
};
