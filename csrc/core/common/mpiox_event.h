/*
 * mpiox_event.h - events of the library for the tracer of PIONEER, if it is in the process.
 *
 *   const int64_t begun = mpiox_event_begin();
 *   ...
 *   if (begun != 0)
 *       mpiox_event_end("two_phase", path, offset, size, begun, "\"rounds\":%d", rounds);
 *
 * Without libmpiio_ext_trace.so each event is one test of a pointer. The library searches for the tracer when it is
 * loaded.
 */
#ifndef MPIOX_EVENT_H
#define MPIOX_EVENT_H

#include <stdint.h>

/* Two functions of the tracer: one records an event, one returns the function behind a wrapper. NULL: no tracer. */
typedef void mpiox_event_hook(const char *name, const char *file, int64_t offset, int64_t size, int64_t start_ns,
                              int64_t duration_ns, const char *details);
extern mpiox_event_hook *mpiox_event_to;

/* Now, in ns of CLOCK_MONOTONIC, by the tracer. _begin: 0 without a tracer. */
int64_t mpiox_event_clock(void);
static inline int64_t mpiox_event_begin(void)
{
    return mpiox_event_to != 0 ? mpiox_event_clock() : 0;
}

/* End an event; offset, size: -1 if it has none. The format makes members of a JSON object: "\"name\":%d,..." */
void mpiox_event_end(const char *name, const char *file, int64_t offset, int64_t size, int64_t begun,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The function of that name that a tracer calls; NULL: there is no tracer, or no function behind it. */
void *mpiox_event_behind_tracer(const char *name);

#endif
