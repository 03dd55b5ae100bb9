/*
 * mpiox_schedule_ripe.h - the quantum of a request, which doubles with each look at its lane: mlf, aioli. Private to
 * csrc/schedule.
 *
 * A request that is larger than the quantum is not served at once, but after as many looks as its size takes doublings:
 * smaller ones pass it, and it cannot starve.
 */
#ifndef MPIOX_SCHEDULE_RIPE_H
#define MPIOX_SCHEDULE_RIPE_H

#include "mpiox_schedule_state.h"

/* Of a READY request whose lane is looked at for the passes'th time. */
static inline bool mpiox_schedule_is_ripe(const mpiox_schedule *schedule, const mpiox_entry *entry)
{
    const uint64_t looks = schedule->lanes[entry->lane].passes - entry->passes;
    const int64_t quantum = schedule->options.quantum;
    int64_t length = entry->what.length;
    for (uint64_t i = 1; i < looks && length > quantum; i++)
        length = length / 2 + length % 2;
    return looks > 0 && length <= quantum;
}

#endif
