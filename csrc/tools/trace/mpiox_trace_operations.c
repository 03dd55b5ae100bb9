/* mpiox_trace_operations.c - see mpiox_trace_operations.h. */
#include "mpiox_trace_operations.h"

const char *const mpiox_trace_operation_names[MPIOX_TRACE_EVENTS] = {
#define NAME_OF(name) [OP_##name] = #name,
    MPIOX_TRACE_POSIX(NAME_OF) MPIOX_TRACE_STDIO(NAME_OF) MPIOX_TRACE_MPI(NAME_OF)};
