/*
 * mpiox_schedule_twins.c - TWINS: time windows, one target at a time.
 *
 * Problem.    When all delegates access all targets at any time, each target meets all of them at once.
 * Algorithm.  Time is cut into windows, at the same moments for all delegates whose clocks agree. In window w delegate
 *             d serves only requests to target number (d + w) mod s of the s targets that it has met, numbered by
 *             rising ID; in order of arrival, merged if they touch. If no request waits for that target, none is served
 *             until the window ends. A target that is met for the first time gets its turns from the next window on, so
 *             that no turn changes within a window. With `hurry` a window without requests is skipped. With windows of
 *             no length requests are served in order of arrival.
 * Guarantees. Delegates that have met the same targets, no more delegates than targets, are at different targets at any
 *             time, except for batches that last longer than their window, overdue requests and `hurry`. A delegate
 *             that meets only one target never waits. A target that was met keeps its turns.
 * Source.     J. Bez, F. Boito, L. Schnorr, P. Navaux and J.-F. Mehaut, "TWINS: Server Access Coordination in the I/O
 *             Forwarding Layer", Euromicro PDP 2017. There the targets are given. Here a delegate finds them, since it
 *             may own pages on some targets of a file only, and would wait for the others in vain.
 */
#include <stddef.h>

#include "mpiox_schedule_lane.h"
#include "mpiox_schedule_policies.h"

/* From now on all targets that were met have turns. */
static void take_servers(mpiox_schedule *schedule)
{
    int32_t *order = schedule->target_order;
    for (int32_t lane = 0; lane < schedule->lane_count; lane++) {
        int32_t at = lane;
        for (; at > 0 && schedule->lanes[order[at - 1]].key > schedule->lanes[lane].key; at--)
            order[at] = order[at - 1];
        order[at] = lane;
    }
    schedule->known = schedule->lane_count;
    schedule->lanes_changed = false;
}

static int64_t divide_down(int64_t value, int64_t by)
{
    return value / by - (value % by < 0 ? 1 : 0);
}

/* The requests of the target whose turn it is, or with `hurry` of the next one that has any; NULL: there are none. */
static const mpiox_entry_chain *find_turn(const mpiox_schedule *schedule, bool hurry)
{
    const int64_t position = schedule->options.first_target + schedule->window;
    const int32_t turn = (int32_t)(position - divide_down(position, schedule->known) * schedule->known);
    for (int32_t i = 0; i < (hurry ? schedule->known : 1); i++) {
        const int32_t lane = schedule->target_order[(turn + i) % schedule->known];
        if (schedule->lanes[lane].ready.count > 0)
            return &schedule->lanes[lane].ready;
    }
    return hurry ? &schedule->ready : NULL; /* only targets that have no turns yet */
}

static uint32_t pick(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until)
{
    const int64_t length = schedule->options.window_ns, offset = schedule->options.clock_offset_ns;
    if (length == 0)
        return schedule->ready.first;
    const int64_t window = divide_down(now + offset, length);
    if (schedule->known == 0 || (window != schedule->window && schedule->lanes_changed))
        take_servers(schedule);
    schedule->window = window;
    const mpiox_entry_chain *found = find_turn(schedule, hurry);
    if (found != NULL)
        return found->first;
    *until = (window + 1) * length - offset;
    return MPIOX_SCHEDULE_NONE;
}

const mpiox_schedule_policy mpiox_schedule_twins = {
    .name = "twins",
    .source = "Bez et al., TWINS: Server Access Coordination in the I/O Forwarding Layer, Euromicro PDP 2017",
    .lanes = MPIOX_LANES_TARGET,
    .join = MPIOX_JOIN_LANE,
    .pick = pick,
};
