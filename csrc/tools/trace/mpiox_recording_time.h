/*
 * mpiox_recording_time.h - when things were done: bins of equal width, steps, and accesses as they were.
 *
 * Under mpiox_trace_lock(), once there is a recording.
 */
#ifndef MPIOX_RECORDING_TIME_H
#define MPIOX_RECORDING_TIME_H

#include <stdint.h>

#include "mpiox_recording_format.h"

/* Spread an amount over the bins of a lane. */
void mpiox_recording_spread(int lane, int64_t start, int64_t end, int64_t amount);
/* A call of a class on a file (number of its name). */
void mpiox_recording_step_on(int class, uint32_t name, int64_t start, int64_t end, int64_t bytes);
void mpiox_recording_keep(const mpiox_recording_segment *segment);

#endif
