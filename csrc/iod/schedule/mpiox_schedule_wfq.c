/*
 * mpiox_schedule_wfq.c - weighted fair queueing.
 *
 * Problem.    Flows should get shares of the file system by their weights, whatever their requests, and the share that
 *             one flow does not use should go to the others.
 * Algorithm.  Self-clocked fair queueing: a request gets the virtual time at which it would be finished. That is length
 *             / weight behind the time of its flow's last request, or behind that of the last chosen request, if the
 *             flow had no waiting one. The flow whose oldest request has the least time is next. Its request is merged
 *             with others of its flow up to the quantum. These others do not advance the clock: otherwise flows with
 *             waiting requests would lose.
 * Guarantees. For two flows that always have waiting requests, the bytes served, each divided by the flow's weight,
 *             differ in any interval by no more than the sum of one largest batch of each, divided likewise. So a
 *             request waits at most for the requests before it in its own flow and, for each other flow, as many bytes
 *             as the weights assign and one batch: no patience is needed, and under a deep queue it would override the
 *             weights.
 * Source.     A. Demers, S. Keshav and S. Shenker, "Analysis and Simulation of a Fair Queueing Algorithm", SIGCOMM
 *             1989; S. Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications", INFOCOM 1994. (The
 *             WFQ of AGIOS visits queues in turn.)
 */
#include "mpiox_schedule_policies.h"

static void added(mpiox_schedule *schedule, mpiox_schedule_entry *entry)
{
    mpiox_schedule_lane *lane = &schedule->lanes[entry->lane];
    const double start = lane->finish > schedule->virtual_time ? lane->finish : schedule->virtual_time;
    entry->finish = start + (double)entry->what.length / entry->what.weight;
    lane->finish = entry->finish;
}

static uint32_t pick(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until)
{
    uint32_t best = MPIOX_SCHEDULE_NONE;
    (void)now, (void)hurry, (void)until;
    for (int32_t i = 0; i < schedule->lane_count; i++) {
        const mpiox_schedule_lane *lane = &schedule->lanes[i];
        if (lane->ready.count == 0)
            continue;
        const uint32_t head = lane->ready.first;
        if (best == MPIOX_SCHEDULE_NONE || schedule->entries[head].finish < schedule->entries[best].finish ||
            (schedule->entries[head].finish == schedule->entries[best].finish &&
             schedule->entries[head].number < schedule->entries[best].number))
            best = head;
    }
    if (schedule->entries[best].finish > schedule->virtual_time)
        schedule->virtual_time = schedule->entries[best].finish;
    schedule->allowance = schedule->options.quantum;
    return best;
}

const mpiox_schedule_policy mpiox_schedule_wfq = {
    .name = "wfq",
    .source = "Demers et al., Analysis and Simulation of a Fair Queueing Algorithm, SIGCOMM 1989; Golestani, A "
              "Self-Clocked Fair Queueing Scheme for Broadband Applications, INFOCOM 1994",
    .lanes = MPIOX_LANES_FLOW,
    .join = MPIOX_JOIN_LANE,
    .fair = true,
    .added = added,
    .pick = pick,
};
