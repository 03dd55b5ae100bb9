/*
 * mpiox_trace_operations.h - the operations by number, and their names, which are generated.
 *
 * A trace file has the names of those that it uses, so numbers may change from release to release.
 */
#ifndef MPIOX_TRACE_OPERATIONS_H
#define MPIOX_TRACE_OPERATIONS_H

#include "mpiox_trace_operation_names.h"
#include "mpiox_tracefile.h"

enum {
    MPIOX_TRACE_BEFORE_POSIX = MPIOX_TRACEFILE_FIRST - 1,
#define MPIOX_TRACE_NUMBER(name) OP_##name,
    MPIOX_TRACE_POSIX(MPIOX_TRACE_NUMBER) MPIOX_TRACE_BEFORE_STDIO,
    MPIOX_TRACE_BEFORE_STDIO_ = MPIOX_TRACE_BEFORE_STDIO - 1,
    MPIOX_TRACE_STDIO(MPIOX_TRACE_NUMBER) MPIOX_TRACE_BEFORE_MPI,
    MPIOX_TRACE_BEFORE_MPI_ = MPIOX_TRACE_BEFORE_MPI - 1,
    MPIOX_TRACE_MPI(MPIOX_TRACE_NUMBER) MPIOX_TRACE_BEFORE_EVENTS, /* from here on, as they come: the extension's */
    MPIOX_TRACE_EVENTS = MPIOX_TRACE_BEFORE_EVENTS
};

extern const char *const mpiox_trace_operation_names[MPIOX_TRACE_EVENTS];

_Static_assert(MPIOX_TRACE_EVENTS <= MPIOX_TRACEFILE_OPERATIONS - 16, "too many operations for one byte");

#endif
