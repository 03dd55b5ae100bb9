/*
 * mpiox_trace_event.c - events of libmpiio_ext itself (csrc/core/common/mpiox_event.h finds this function).
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "mpiox_recording.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_core.h"
#include "mpiox_trace_sink.h"

MPIOX_TRACE_EXPORT void mpiox_trace_event(const char *name, const char *file, int64_t offset, int64_t size,
                                          int64_t start_ns, int64_t duration_ns, const char *details);

MPIOX_TRACE_EXPORT void mpiox_trace_event(const char *name, const char *file, int64_t offset, int64_t size,
                                          int64_t start_ns, int64_t duration_ns, const char *details)
{
    const int error = errno;

    mpiox_trace_sink_chosen->event(name, file, offset, size, start_ns, duration_ns, details);
    errno = error;
}

/* In which part of a call the library was, "waiting" or "messages" (csrc/core/common/mpiox_parts.h), or is from now on
 * (end_ns 0); or (NULL) that it carries the call out. What other threads do for it is not in the time of the call. */
MPIOX_TRACE_EXPORT void mpiox_trace_part(const char *part, int64_t start_ns, int64_t end_ns);

MPIOX_TRACE_EXPORT void mpiox_trace_part(const char *part, int64_t start_ns, int64_t end_ns)
{
    const int error = errno;

    if (part == NULL) {
        mpiox_trace_self.own = 1;
        mpiox_recording_in_own();
    } else {
        mpiox_trace_sink_chosen->part(strcmp(part, "waiting") == 0, start_ns, end_ns);
    }
    errno = error;
}

/* The tracer's clock: events that are reported to it and its own records are then in one order. */
MPIOX_TRACE_EXPORT int64_t mpiox_trace_time(void);

MPIOX_TRACE_EXPORT int64_t mpiox_trace_time(void)
{
    return mpiox_trace_now();
}

/* The function that a call of the program ends in, here or behind the tracer: whether libmpiio_ext is in its way. */
MPIOX_TRACE_EXPORT void *mpiox_trace_behind(const char *name);

MPIOX_TRACE_EXPORT void *mpiox_trace_behind(const char *name)
{
    _Atomic(void *) found = NULL;

    return mpiox_trace_next(&found, name);
}

/* Do not record this thread's calls from now on, or (-1) record them again; calls may be nested. A program that carries
 * out a trace calls it for its own preparations. */
MPIOX_TRACE_EXPORT void mpiox_trace_hold(int more);

MPIOX_TRACE_EXPORT void mpiox_trace_hold(int more)
{
    mpiox_trace_self.inside += more < 0 ? -1 : 1;
}
