/*
 * mpiox_schedule_mlf.c - multilevel feedback.
 *
 * Problem.   Small requests should not wait behind large ones, large ones should not starve, files should take turns.
 * Algorithm. Files take turns, reads and writes apart. With each turn the quantum of every request of the file doubles.
 *            The first request in file order whose quantum is at least its size is served, merged with those that
 *            continue it up to that quantum. So no request larger than the quantum is served, in one piece or in many,
 *            before the first one of it has waited for the turns that its size takes.
 * Source.    MLF of aIOLi, which applies that of CPU scheduling to files: A. Lebre, G. Huard, Y. Denneulin and P. Sowa,
 *            "I/O Scheduling Service for Multi-Application Clusters", IEEE Cluster 2006; in AGIOS: F. Boito et al.,
 *            2016. AGIOS serves a file's reads first and its writes when no read is ready; here they take turns. AGIOS
 *            also predicts requests and waits for them; this policy does not: a request that arrives after its file's
 *            turn is served in a later one.
 */
#include "mpiox_schedule_lane.h"
#include "mpiox_schedule_policies.h"
#include "mpiox_schedule_eligible.h"
#include "mpiox_schedule_tree.h"

static uint32_t look(mpiox_schedule *schedule, mpiox_schedule_lane *lane)
{
    uint32_t entry = mpiox_schedule_lane_lowest(schedule, lane);
    lane->passes++;
    while (entry != MPIOX_SCHEDULE_NONE && !mpiox_schedule_is_eligible(schedule, &schedule->entries[entry]))
        entry = mpiox_schedule_tree_next(schedule, entry);
    return entry;
}

/* Ends: quanta double, sizes do not. */
static uint32_t pick(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until)
{
    uint32_t found;
    (void)now, (void)hurry, (void)until;
    do {
        schedule->turn = mpiox_schedule_lane_next(schedule, schedule->turn);
        found = look(schedule, &schedule->lanes[schedule->turn]);
    } while (found == MPIOX_SCHEDULE_NONE);
    schedule->allowance = mpiox_schedule_eligible_quantum(schedule, &schedule->entries[found]);
    return found;
}

const mpiox_schedule_policy mpiox_schedule_mlf = {
    .name = "mlf",
    .source = "Lebre et al., I/O Scheduling Service for Multi-Application Clusters, IEEE Cluster 2006; MLF of AGIOS",
    .lanes = MPIOX_LANES_STREAM,
    .join = MPIOX_JOIN_ANY,
    .pick = pick,
};
