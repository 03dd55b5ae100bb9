/*
 * mpiox_schedule_eligible.h - the quantum of a request, which doubles with each visit of its lane: mlf, aioli. Private
 * to csrc/iod/schedule.
 *
 * A request that is larger than the quantum is served after as many visits as the quantum needs doublings to reach the
 * size of the request: smaller requests pass it, and it cannot starve.
 */
#ifndef MPIOX_SCHEDULE_ELIGIBLE_H
#define MPIOX_SCHEDULE_ELIGIBLE_H

#include "mpiox_schedule_state.h"

/* The quantum that a READY request has reached; 0: its lane has not been visited since its arrival. */
static inline int64_t mpiox_schedule_eligible_quantum(const mpiox_schedule *schedule, const mpiox_schedule_entry *entry)
{
    const uint64_t looks = schedule->lanes[entry->lane].passes - entry->passes;
    int64_t quantum = looks > 0 ? schedule->options.quantum : 0;
    for (uint64_t i = 1; i < looks && quantum < INT64_MAX; i++)
        quantum = quantum <= INT64_MAX / 2 ? 2 * quantum : INT64_MAX;
    return quantum;
}

static inline bool mpiox_schedule_is_eligible(const mpiox_schedule *schedule, const mpiox_schedule_entry *entry)
{
    return entry->what.length <= mpiox_schedule_eligible_quantum(schedule, entry);
}

#endif
