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

#define BEHIND(type, name, parameters)                                                                                 \
    typedef type type_of_##name parameters;                                                                            \
    static type_of_##name *next_##name(void)                                                                           \
    {                                                                                                                  \
        static _Atomic(void *) found;                                                                                  \
        return (type_of_##name *)mpiox_trace_next(&found, #name);                                                      \
    }
#define WRAP(type, name, parameters)                                                                                   \
    BEHIND(type, name, parameters)                                                                                     \
    MPIOX_TRACE_EXPORT type name parameters
#define FRONT(type, name, parameters) MPIOX_TRACE_EXPORT type name parameters
#define NEXT(name) next_##name()
#define ALIAS(other, name) extern __typeof__(name) other __attribute__((alias(#name), visibility("default")))

#endif
