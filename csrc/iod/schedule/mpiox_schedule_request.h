/*
 * mpiox_schedule_request.h - input and counters of a request queue; see mpiox_schedule.h.
 */
#ifndef MPIOX_SCHEDULE_REQUEST_H
#define MPIOX_SCHEDULE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mpiox_schedule mpiox_schedule;

#define MPIOX_SCHEDULE_NONE UINT32_MAX /* no request */
#define MPIOX_SCHEDULE_NEVER INT64_MAX /* no time */

typedef struct mpiox_schedule_options {
    const char *policy;      /* a name of mpiox_schedule_policy_name() */
    int64_t capacity;        /* requests that wait or are being served, at most: 1 .. 2^30 */
    int64_t quantum;         /* bytes that a file or flow is served before another has its turn; > 0 */
    int64_t window_ns;       /* twins: time in which one target is served; aioli: time to wait for missing requests */
    int64_t patience_ns;     /* the wait after which a request is overdue, see mpiox_schedule.h; 0: never */
    int64_t batch_bytes;     /* of a batch of several requests, at most; > 0 */
    int32_t batch_requests;  /* the same in requests; >= 1 */
    int32_t first_target;    /* twins: at which target to begin: not the same in all delegates */
    int64_t clock_offset_ns; /* twins: the difference from a time to one that is the same for all delegates; >= 0 */
} mpiox_schedule_options;

typedef struct mpiox_schedule_request {
    int64_t file, offset, length; /* length > 0 */
    int64_t flow;                 /* the flow that is charged: wfq */
    int32_t weight;               /* of the flow, >= 1: wfq */
    int32_t target;               /* that has the bytes; -1: not known: twins */
    bool write;                   /* false: the request reads */
    uint64_t tag;                 /* the caller's */
} mpiox_schedule_request;

/* X(name, unit, meaning): totals since the queue was made. */
#define MPIOX_SCHEDULE_COUNTERS(X)                                                                                     \
    X(added, "requests", "requests that were added")                                                                   \
    X(served, "requests", "requests that were taken out to be served")                                                 \
    X(batches, "batches", "batches that they made")                                                                    \
    X(merged, "requests", "requests that joined another one's batch")                                                  \
    X(reordered, "requests", "requests that were served before older ones")                                            \
    X(overdue, "requests", "requests that were served because they had waited for the patience")                       \
    X(held, "requests", "requests that had to wait for an older one that they overlap")                                \
    X(windows, "waits", "times that nothing was served though requests waited, by the policy")                         \
    X(waited_ns, "ns", "time of those")                                                                                \
    X(depth_max, "requests", "most requests that waited at once")

typedef struct mpiox_schedule_counters {
#define X(name, unit, meaning) int64_t name;
    MPIOX_SCHEDULE_COUNTERS(X)
#undef X
} mpiox_schedule_counters;

#endif
