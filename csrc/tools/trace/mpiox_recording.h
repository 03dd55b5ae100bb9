/*
 * mpiox_recording.h - calls as counters: what a recording has in place of the calls themselves.
 */
#ifndef MPIOX_RECORDING_H
#define MPIOX_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_tracefile.h"

extern bool mpiox_recording_wanted; /* in place of a trace; set before the first call, and then for ever */

/* Under mpiox_trace_lock(): count a call that has ended. */
void mpiox_recording_add(const mpiox_tracefile_record *call);
/* Under mpiox_trace_lock(): count a read or write by POSIX that has moved `size` bytes, where it is like the one before
 * it of that file, direction and size. False: it is not, and nothing was counted. */
bool mpiox_recording_read_again(int64_t file, int64_t offset, int64_t size, int64_t start, int64_t end);
bool mpiox_recording_write_again(int64_t file, int64_t offset, int64_t size, int64_t start, int64_t end);
/* Under mpiox_trace_lock(): within the call of MPI-IO that this thread is in, the library has waited for other ranks,
 * or exchanged messages. */
void mpiox_recording_add_part(bool waiting, int64_t start, int64_t end);
/* Under mpiox_trace_lock(): whether a view of a file is to be told, and what it is. */
bool mpiox_recording_wants_view(int64_t file);
void mpiox_recording_add_view(int64_t file, const char *text);
/* Under mpiox_trace_lock(): MPI_Finalize begins; nothing is counted from now on. */
void mpiox_recording_stop(int64_t now);

#endif
