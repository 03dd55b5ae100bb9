/*
 * mpiox_recording_time.h - the times of calls: bins of equal width, steps, and single accesses.
 *
 * Under mpiox_trace_lock(), once there is a recording.
 */
#ifndef MPIOX_RECORDING_TIME_H
#define MPIOX_RECORDING_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_recording_format.h"

/* The recording has begun, or begun anew. */
void mpiox_recording_time_renew(void);
/* A call of a class on a file (its name's number), the ns of that class between its start and end, and the bytes moved:
 * of a lane of bytes (-1: of none). */
void mpiox_recording_time_add(int class, uint32_t name, int64_t start, int64_t end, int64_t busy, int lane,
                              int64_t bytes);
/* The bin and the step of the next read or write, if it lies within from and until and begins at most `close` after the
 * step; until 0: they have to be found. */
typedef struct mpiox_recording_going {
    int64_t from, until, close;
    int64_t *time, *bytes;
    mpiox_recording_step *step;
} mpiox_recording_going;

extern mpiox_recording_going mpiox_recording_going_on[2]; /* reads, writes */

/* The same as mpiox_recording_time_add() where nothing has to be found; false, and nothing done: something has. */
static inline bool mpiox_recording_time_go_on(int way, uint32_t name, int64_t start, int64_t end, int64_t bytes)
{
    const mpiox_recording_going *to = &mpiox_recording_going_on[way];
    mpiox_recording_step *s = to->step;

    if (end >= to->until || start < to->from || start - s->end > to->close || (s->name != name && s->name != 0))
        return false;
    *to->time += end - start;
    *to->bytes += bytes;
    s->end = end > s->end ? end : s->end;
    s->busy += end - start;
    s->bytes += bytes;
    s->calls++;
    return true;
}

void mpiox_recording_keep(const mpiox_recording_segment *segment);

#endif
