/* mpiox_recording_tally.h - calls by function, file and outcome, with their time: what records have in common sums. */
#ifndef MPIOX_RECORDING_TALLY_H
#define MPIOX_RECORDING_TALLY_H

#include <stdint.h>

#include "mpiox_tracefile.h"

/* The recording has begun, or begun anew. */
void mpiox_recording_tally_renew(void);
/* Under mpiox_trace_lock(): count a call that has ended; `error` as a tally has it, of MPI as MPIOX_TRACE_CLASS_*;
 * `spare`: bytes that stay free for others. */
void mpiox_recording_tally_add(const mpiox_tracefile_record *call, int32_t error, uint64_t spare);

#endif
