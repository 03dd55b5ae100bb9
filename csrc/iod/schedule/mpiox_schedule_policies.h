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

#endif
