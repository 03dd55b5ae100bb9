/*
 * mpiox_schedule_twins.c - TWINS: time windows, one server at a time.
 *
 * Problem.    When all delegates access all servers at any time, each server meets all of them at once.
 * Algorithm.  Time is cut into windows. In a window only requests to one server are served, in order of arrival, merged
 *             where they touch; servers take turns. When none waits for the window's server, nothing is served until
 *             the window ends. Delegates begin at different servers. The servers are those to which a request has come
 *             so far, so that a delegate that meets only one never waits. With `hurry` a window without requests is
 *             passed over.
 * Source.     J. Bez, F. Boito, L. Schnorr, P. Navaux and J.-F. Mehaut, "TWINS: Server Access Coordination in the I/O
 *             Forwarding Layer", Euromicro PDP 2017.
 */
#include "mpiox_schedule_lane.h"
#include "mpiox_schedule_policies.h"

static uint32_t pick(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until)
{
    const int64_t window = schedule->options.window_ns;
    if (schedule->began < 0 || now < schedule->began)
        schedule->began = now;
    const int64_t passed = window > 0 ? (now - schedule->began) / window : 0;
    const int32_t turn = (int32_t)((schedule->options.first_server + passed) % schedule->lane_count);
    if (schedule->lanes[turn].ready.count > 0)
        return schedule->lanes[turn].ready.first;
    if (!hurry && window > 0) {
        *until = schedule->began + (passed + 1) * window;
        return MPIOX_SCHEDULE_NONE;
    }
    return schedule->lanes[mpiox_schedule_lane_next(schedule, turn)].ready.first;
}

const mpiox_schedule_policy mpiox_schedule_twins = {
    .name = "twins",
    .source = "Bez et al., TWINS: Server Access Coordination in the I/O Forwarding Layer, Euromicro PDP 2017",
    .lanes = MPIOX_LANES_SERVER,
    .join = MPIOX_JOIN_LANE,
    .pick = pick,
};
