/*
 * mpiox_trace_sink.h - where calls go: a trace, which has each of them, or a recording, which counts them.
 *
 * Problem.   Wrapped functions and the life of a process are the same for both, the contents of the file are not.
 * Algorithm. The environment chooses a sink once, before the first call. mpiox_trace_core.h makes records, and hands
 *            them to the sink. A wrapper tests `counts` if a recording has something else of a call than a trace.
 */
#ifndef MPIOX_TRACE_SINK_H
#define MPIOX_TRACE_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_tracefile.h"

/* "Locked": the caller has mpiox_trace_lock(). The other functions lock by themselves if they need to. */
typedef struct mpiox_trace_sink {
    bool counts; /* calls are counted; false: each is stored, with its texts, and may be carried out again */
    /* This thread begins a call that no other call is made inside of; call->start is set. */
    void (*begin)(const mpiox_tracefile_record *call);
    void (*enter)(mpiox_tracefile_record *call);     /* it begins a call of MPI; sets call->start */
    void (*done)(int64_t thread, int64_t depth);     /* a thread has ended the call at that depth */
    void (*add)(const mpiox_tracefile_record *call); /* a call has ended, and is complete; implies done() */
    void (*cancel)(int64_t thread);                  /* a call of MPI has ended, and has no record */
    /* The library reports what it does (csrc/core/common/mpiox_event.h); file, details NULL: none; offset, size < 0:
     * none. */
    void (*event)(const char *name, const char *file, int64_t offset, int64_t size, int64_t start_ns,
                  int64_t duration_ns, const char *details);
    /* Within a call of MPI the library has waited for other ranks, or exchanged messages; end 0: it begins to. */
    void (*part)(bool waiting, int64_t start, int64_t end);
    void (*finalizing)(void); /* MPI_Finalize begins */

    bool (*covers)(int64_t start); /* locked: whether a call that begins then is counted among those left out */
    bool (*leave_out)(const mpiox_tracefile_left_out *left_out); /* locked: store their numbers; false: no file yet */
    bool (*ready)(void);                                         /* locked: make the file unless there is one */
    void (*rank)(void);                                          /* locked: mpiox_trace_here has the rank from now on */
    void (*end)(int state, bool again);                          /* locked: `again`: later calls begin another file */
    void (*mark)(int state);                                     /* locked: change the state of the process alone */
    void (*forget)(void); /* locked, in the child of a fork: the file is the parent's */
} mpiox_trace_sink;

extern const mpiox_trace_sink mpiox_trace_calls, mpiox_recording_counters;
extern const mpiox_trace_sink *mpiox_trace_sink_chosen; /* one of the two */

#endif
