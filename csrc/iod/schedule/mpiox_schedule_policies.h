/*
 * mpiox_schedule_policies.h - the policies, in the order of their numbers. Private to csrc/iod/schedule.
 *
 * A new policy is a file with a mpiox_schedule_policy, and a line here.
 */
#ifndef MPIOX_SCHEDULE_POLICIES_H
#define MPIOX_SCHEDULE_POLICIES_H

#include "mpiox_schedule_state.h"

#define MPIOX_SCHEDULE_POLICIES(X) X(fifo) X(sjf) X(to_agg) X(aioli) X(mlf) X(hbrr) X(twins) X(wfq)

#define X(name) extern const mpiox_schedule_policy mpiox_schedule_##name;
MPIOX_SCHEDULE_POLICIES(X)
#undef X

/* A `pick` of a policy with one lane in the order of arrival. */
static inline uint32_t mpiox_schedule_pick_first(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until)
{
    (void)now, (void)hurry, (void)until;
    return schedule->ready.first;
}

#endif
