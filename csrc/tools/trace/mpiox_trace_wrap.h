/*
 * mpiox_trace_wrap.h - defining a function in front of the C library's.
 *
 *   WRAP(ssize_t, read, (int fd, void *buffer, size_t bytes)) { ... NEXT(read)(fd, buffer, bytes) ... }
 *   ALIAS(read64, read);     the same function by another name
 *
 * BEHIND and FRONT are its two halves.
 */
#ifndef MPIOX_TRACE_WRAP_H
#define MPIOX_TRACE_WRAP_H

#include "mpiox_trace_core.h"
#include "mpiox_trace_descriptors.h"

#define BEHIND(type, name, parameters)                                                                                 \
    typedef type type_of_##name parameters;                                                                            \
    static inline type_of_##name *next_##name(void)                                                                    \
    {                                                                                                                  \
        static _Atomic(void *) found;                                                                                  \
        void *function = atomic_load_explicit(&found, memory_order_acquire);                                           \
        return (type_of_##name *)(function != NULL ? function : mpiox_trace_next(&found, #name));                      \
    }
#define WRAP(type, name, parameters)                                                                                   \
    BEHIND(type, name, parameters)                                                                                     \
    MPIOX_TRACE_EXPORT type name parameters
#define FRONT(type, name, parameters) MPIOX_TRACE_EXPORT type name parameters
#define NEXT(name) next_##name()

/* A call with at most one number (key, or -1 for none), recorded if `starts` is true and has started it. */
#define RECORDED(type, name, parameters, arguments, starts, at, bytes, key, value)                                     \
    WRAP(type, name, parameters)                                                                                       \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!(starts))                                                                                                 \
            return NEXT(name) arguments;                                                                               \
        const type result = NEXT(name) arguments;                                                                      \
        mpiox_trace_stop(&call);                                                                                       \
        call.offset = at;                                                                                              \
        call.size = bytes;                                                                                             \
        if ((key) >= 0)                                                                                                \
            mpiox_trace_extra(&call, key, value);                                                                      \
        mpiox_trace_commit(&call, result);                                                                             \
        return result;                                                                                                 \
    }
#define NO MPIOX_TRACEFILE_NONE

#define ALIAS(other, name) extern __typeof__(name) other __attribute__((alias(#name), visibility("default")))

/* Begin the record of a call of the C library on a descriptor. False: its file is not recorded. */
static inline bool mpiox_trace_posix_started(mpiox_tracefile_record *call, int operation, int fd)
{
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_descriptor_file(fd) : 0;

    if (file == 0)
        return false;
    mpiox_trace_start_on(call, operation, MPIOX_TRACEFILE_POSIX, file, fd);
    return true;
}

#endif
