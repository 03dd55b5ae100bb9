/*
 * mpiox_trace_event.c - events of libmpiio_ext itself (csrc/core/common/mpiox_event.h finds this function).
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "mpiox_recording.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_core.h"
#include "mpiox_trace_names.h"

enum { SHORTEST_NS = 1000 }; /* of a part of a call that is worth a record */

MPIOX_TRACE_EXPORT void mpiox_trace_event(const char *name, const char *file, int64_t offset, int64_t size,
                                          int64_t start_ns, int64_t duration_ns, const char *details);

MPIOX_TRACE_EXPORT void mpiox_trace_event(const char *name, const char *file, int64_t offset, int64_t size,
                                          int64_t start_ns, int64_t duration_ns, const char *details)
{
    const int error = errno;
    const int operation = mpiox_trace_enabled() && !mpiox_recording_wanted ? mpiox_trace_event_number(name) : -1;
    mpiox_tracefile_record call;

    if (operation >= 0) {
        mpiox_trace_start(&call, operation, MPIOX_TRACEFILE_EXTENSION, mpiox_trace_file_number(AT_FDCWD, file));
        call.file &= ~(int64_t)MPIOX_TRACE_LEFT_OUT;
        call.start = start_ns;
        call.duration = duration_ns > 0 ? duration_ns : 0;
        call.offset = offset < 0 ? MPIOX_TRACEFILE_NONE : offset;
        call.size = size < 0 ? MPIOX_TRACEFILE_NONE : size;
        mpiox_trace_extra_text(&call, MPIOX_KEY_DETAILS, details);
        mpiox_trace_commit(&call, MPIOX_TRACEFILE_NONE);
    }
    errno = error;
}

/* In which part of a call the library was, "waiting" or "messages" (csrc/core/common/mpiox_parts.h), or is from now on
 * (end_ns 0); or (NULL) that it carries the call out. What other threads do for it is not in the time of the call. */
MPIOX_TRACE_EXPORT void mpiox_trace_part(const char *part, int64_t start_ns, int64_t end_ns);

MPIOX_TRACE_EXPORT void mpiox_trace_part(const char *part, int64_t start_ns, int64_t end_ns)
{
    if (part == NULL) {
        mpiox_trace_self.own = 1;
        mpiox_recording_in_own();
    } else if (!mpiox_recording_wanted) {
        if (end_ns != 0 && end_ns - start_ns >= SHORTEST_NS)
            mpiox_trace_event(part, NULL, -1, -1, start_ns, end_ns - start_ns, NULL);
    } else if (!mpiox_trace_enabled() || mpiox_trace_self.depth == 0) {
        return;
    } else if (end_ns == 0) {
        mpiox_recording_in_part(strcmp(part, "waiting") == 0, start_ns);
    } else {
        mpiox_trace_lock();
        mpiox_recording_add_part(strcmp(part, "waiting") == 0, start_ns, end_ns);
        mpiox_trace_unlock();
    }
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
