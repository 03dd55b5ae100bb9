/*
 * mpiox_trace_core.h - one call of the program, from before it to its record.
 *
 *   mpiox_tracefile_record call;
 *   if (!mpiox_trace_enabled())            the tracer's own calls, and those before it is ready: no record
 *       return NEXT(...)(...);
 *   mpiox_trace_start(&call, OP_read, MPIOX_TRACEFILE_POSIX, file);
 *   result = NEXT(read)(...);
 *   mpiox_trace_stop(&call);               the clock
 *   call.offset = ...;                     facts of the call
 *   mpiox_trace_commit(&call, result);
 *
 * _start_on also passes what the call is made on: a descriptor or a stream. A call that has been started and is not to
 * be recorded after all ends with mpiox_trace_drop().
 *
 * errno is as the call has left it. A call that others may be made inside of has mpiox_trace_enter() in place of _start
 * and mpiox_trace_leave() in place of _commit.
 */
#ifndef MPIOX_TRACE_CORE_H
#define MPIOX_TRACE_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_trace_lock.h"
#include "mpiox_trace_operations.h"
#include "mpiox_tracefile.h"

#define MPIOX_TRACE_EXPORT __attribute__((visibility("default")))

extern atomic_bool mpiox_trace_running;

/* Calls of this thread whose frames are below `stack` do not return: no record. */
void mpiox_trace_left(uintptr_t stack);

/* The first that a wrapped function asks. Its frame is below those of the calls that it is made inside of: a call of
 * MPI whose frame is not above it has been left, by longjmp() or an exception out of a handler. */
static inline __attribute__((always_inline)) bool mpiox_trace_enabled(void)
{
    const mpiox_trace_thread *self = &mpiox_trace_self;

    if (self->inside != 0 || !atomic_load_explicit(&mpiox_trace_running, memory_order_relaxed))
        return false;
    if (__builtin_expect(self->frames > 0, 0) && self->frame[self->frames - 1] < (uintptr_t)__builtin_dwarf_cfa())
        mpiox_trace_left((uintptr_t)__builtin_dwarf_cfa());
    return true;
}

/* The function of that name behind this library: libmpiio_ext's where it is loaded, the MPI library's, the C
 * library's. NULL: there is none. It is looked up once, into *found. */
void *mpiox_trace_next(_Atomic(void *) *found, const char *name);

void mpiox_trace_start(mpiox_tracefile_record *call, int operation, int layer, int32_t file);
void mpiox_trace_start_on(mpiox_tracefile_record *call, int operation, int layer, int32_t file, int64_t handle);
void mpiox_trace_drop(const mpiox_tracefile_record *call);
void mpiox_trace_stop(mpiox_tracefile_record *call);
void mpiox_trace_commit(mpiox_tracefile_record *call, int64_t result);
/* In place of all that, of a recording: an access of a file by a descriptor, which has returned `result`. */
void mpiox_trace_accessed(int operation, int32_t file, bool write, int64_t offset, int64_t result, int64_t start,
                          int64_t end);
void mpiox_trace_enter(mpiox_tracefile_record *call, int operation, int layer, int32_t file);
void mpiox_trace_enter_on(mpiox_tracefile_record *call, int operation, int layer, int32_t file, int64_t handle);
void mpiox_trace_leave(mpiox_tracefile_record *call, int64_t result);
void mpiox_trace_leave_without(mpiox_tracefile_record *call); /* no record */
static inline void mpiox_trace_extra(mpiox_tracefile_record *call, int key, int64_t value)
{
    if (call->extras < MPIOX_TRACEFILE_EXTRAS)
        call->extra[call->extras++] = (mpiox_tracefile_extra){.key = (uint8_t)key, .value = value};
}
void mpiox_trace_extra_text(mpiox_tracefile_record *call, int key, const char *text);

/* Number of a file by its name, made absolute, below the folder that is open as `folder_fd`. -1: not to be recorded. */
int32_t mpiox_trace_file_number(int folder_fd, const char *name);
int32_t mpiox_trace_text_number(const char *text);
/* Under the lock, for sinks: calls on files of the system. Store the number of those so far, unless it is stored; count
 * from 0 on. */
void mpiox_trace_report_left_out(void);
void mpiox_trace_forget_left_out(void);

/* The file of this process, a trace or a recording; _rank and _forget under the lock. */
void mpiox_trace_rank(int rank, int ranks);  /* it is known from now on */
void mpiox_trace_end(int state, bool again); /* of MPIOX_TRACEFILE_*; `again`: what follows begins another file */
void mpiox_trace_mark(int state);            /* change the state alone */
void mpiox_trace_forget(void);               /* in the child of a fork: it is the parent's */
void mpiox_trace_finalizing(void);           /* MPI_Finalize begins */

#endif
