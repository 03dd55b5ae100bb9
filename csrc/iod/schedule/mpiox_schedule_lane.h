/*
 * mpiox_schedule_lane.h - READY requests in order of arrival: all of them, and those of each lane. Private to
 * csrc/iod/schedule.
 */
#ifndef MPIOX_SCHEDULE_LANE_H
#define MPIOX_SCHEDULE_LANE_H

#include "mpiox_schedule_state.h"

/* The lane of a request, made if there is none. */
int32_t mpiox_schedule_lane_of(mpiox_schedule *schedule, const mpiox_schedule_request *request);
/* A request has become READY, or is so no longer. */
void mpiox_schedule_lane_add(mpiox_schedule *schedule, uint32_t entry);
void mpiox_schedule_lane_remove(mpiox_schedule *schedule, uint32_t entry);
/* Of a lane of a stream that is not empty: its READY request with the lowest offset. */
uint32_t mpiox_schedule_lane_lowest(const mpiox_schedule *schedule, const mpiox_schedule_lane *lane);
/* The next lane behind `index` that is not empty, in turn round; one is not. */
int32_t mpiox_schedule_lane_next(const mpiox_schedule *schedule, int32_t index);

#endif
