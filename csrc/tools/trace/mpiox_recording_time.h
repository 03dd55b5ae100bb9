/*
 * mpiox_recording_time.h - when things were done: bins of equal width, steps, and accesses as they were.
 *
 * Under mpiox_trace_lock(), once there is a recording.
 */
#ifndef MPIOX_RECORDING_TIME_H
#define MPIOX_RECORDING_TIME_H

#include <stdint.h>

#include "mpiox_recording_format.h"

/* The recording has begun, or begun anew. */
void mpiox_recording_time_renew(void);
/* A call of a class on a file (its name's number), the ns of that class between its start and end, and the bytes moved:
 * of a lane of bytes (-1: of none). */
void mpiox_recording_time_add(int class, uint32_t name, int64_t start, int64_t end, int64_t busy, int lane,
                              int64_t bytes);
void mpiox_recording_keep(const mpiox_recording_segment *segment);

#endif
