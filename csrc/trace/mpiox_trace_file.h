/*
 * mpiox_trace_file.h - writing the trace file of this process. All functions: under mpiox_trace_lock(), but for
 * those that say otherwise.
 */
#ifndef MPIOX_TRACE_FILE_H
#define MPIOX_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_tracefile.h"

/* Where the files go; before everything else. Absolute; "" or too long: nothing is ever written. */
void mpiox_trace_file_folder(const char *folder);
/* A file to write to, made when there is none yet. False: there cannot be one; that has been said on stderr. */
bool mpiox_trace_file_ready(void);
/* Number of files that this process has begun: a text or operation is defined once in each. */
int mpiox_trace_file_generation(void);
/* Append. False: the file is full for good. */
bool mpiox_trace_file_record(const mpiox_tracefile_record *record);
bool mpiox_trace_file_begin(int operation, int64_t thread, int64_t depth, int64_t start);
bool mpiox_trace_file_cancel(int64_t thread);
bool mpiox_trace_file_text(int64_t number, const char *text);
bool mpiox_trace_file_operation(int operation, int layer, const char *name);
/* What a thread is doing, for the case that the process is killed meanwhile; without the lock. _noting: false while
 * there is no file. _note: once its operation and the name of its file are defined. */
bool mpiox_trace_file_noting(void);
void mpiox_trace_file_note(const mpiox_tracefile_record *call);
void mpiox_trace_file_note_handle(const mpiox_tracefile_record *call);
void mpiox_trace_file_done(int64_t thread, int64_t depth);
void mpiox_trace_file_rank(int rank, int ranks); /* known from now on: the file's name says it */
void mpiox_trace_file_lose(void);                /* count a call that is not recorded */
/* Say how it ended, cut the file to what it holds. `again`: what follows begins another file. */
void mpiox_trace_file_end(int state, bool again);
void mpiox_trace_file_mark(int state); /* change the state alone: MPIOX_TRACEFILE_EXECUTED, _RUNNING */
void mpiox_trace_file_forget(void);    /* in the child of a fork: the file is the parent's */

#endif
