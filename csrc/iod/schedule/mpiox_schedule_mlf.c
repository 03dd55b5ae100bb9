/*
 * mpiox_schedule_mlf.c - multilevel feedback.
 *
 * Problem.    Small requests shall not wait behind large ones, large ones shall not starve, files shall take turns.
 * Algorithm.  Files take turns, reads and writes apart. With each turn the quantum of every request of the file
 *             doubles; the first one in file order whose quantum is its size or more is served, merged with those that
 *             continue it up to that quantum. So nothing larger than the quantum is served, in one piece or in many,
 *             before the first request of it has waited for the turns that its size takes.
 * Source.     MLF of aIOLi, which is that of CPU scheduling over files: A. Lebre, G. Huard, Y. Denneulin and P. Sowa,
 *             "I/O Scheduling Service for Multi-Application Clusters", IEEE Cluster 2006; in AGIOS: F. Boito et al.,
 *             2016. AGIOS sees to a file's reads first and takes its writes when no read is ready; here they take
 *             turns. AGIOS also waits for requests that it predicts and misses; that is not done here, nor is anything
 *             predicted: what has not come when the file has its turn is served in a later one.
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
