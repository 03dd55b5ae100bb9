/*
 * mpiox_schedule_tree.h - requests by their place: file, direction, offset. Private to csrc/iod/schedule.
 */
#ifndef MPIOX_SCHEDULE_TREE_H
#define MPIOX_SCHEDULE_TREE_H

#include "mpiox_schedule_state.h"

void mpiox_schedule_tree_insert(mpiox_schedule *schedule, uint32_t entry);
void mpiox_schedule_tree_remove(mpiox_schedule *schedule, uint32_t entry);
/* Its state is another one. */
void mpiox_schedule_tree_set(mpiox_schedule *schedule, uint32_t entry, enum mpiox_entry_state state);

/* The READY request of this file and direction with the lowest offset from `offset` on; NONE. */
uint32_t mpiox_schedule_tree_first(const mpiox_schedule *schedule, int64_t file, bool write, int64_t offset);
/* The next READY one behind a request, of its file and direction; NONE. */
uint32_t mpiox_schedule_tree_next(const mpiox_schedule *schedule, uint32_t entry);
/* READY ones of the same file and direction that begin where this one ends, or end where it begins; NONE. */
uint32_t mpiox_schedule_tree_after(const mpiox_schedule *schedule, uint32_t entry);
uint32_t mpiox_schedule_tree_before(const mpiox_schedule *schedule, uint32_t entry);

/* Is there an older request that this one overlaps, and does one of the two write? */
bool mpiox_schedule_tree_is_blocked(const mpiox_schedule *schedule, uint32_t entry);
/* Call `found` with each HELD request that overlaps the range and must wait for such a request: any if it writes,
 * otherwise those that write. `found` may change the state only. */
void mpiox_schedule_tree_held(mpiox_schedule *schedule, const mpiox_schedule_request *range,
                              void (*found)(mpiox_schedule *schedule, uint32_t entry));

#endif
