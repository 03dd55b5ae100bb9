/* mpiio_ext_schedule.c - the request queue of the delegates, for Python: arrays of numbers as structs, and back. */
#include <stddef.h>

#include "mpiio_ext.h"
#include "mpiox_schedule.h"

static mpiox_schedule *queue_of(mpiio_ext_schedule *schedule)
{
    return (mpiox_schedule *)schedule;
}

int mpiio_ext_schedule_create(const char *policy, const int64_t *options, mpiio_ext_schedule **schedule)
{
    mpiox_schedule *created = NULL;
    const bool fits = options[5] <= INT32_MAX && options[6] <= INT32_MAX && options[5] >= 0 && options[6] >= 0;
    const int rc = fits ? mpiox_schedule_create(&(mpiox_schedule_options){.policy = policy,
                                                                          .capacity = options[0],
                                                                          .quantum = options[1],
                                                                          .window_ns = options[2],
                                                                          .patience_ns = options[3],
                                                                          .batch_bytes = options[4],
                                                                          .batch_requests = (int32_t)options[5],
                                                                          .first_target = (int32_t)options[6],
                                                                          .clock_offset_ns = options[7]},
                                                &created)
                        : MPIOX_E_ARG;
    *schedule = (mpiio_ext_schedule *)created;
    return rc;
}

int mpiio_ext_schedule_add(mpiio_ext_schedule *schedule, const int64_t *request, int64_t now, uint32_t *id)
{
    *id = MPIOX_SCHEDULE_NONE;
    if (request[4] < 1 || request[4] > INT32_MAX || request[5] < -1 || request[5] > INT32_MAX)
        return MPIOX_E_ARG;
    return mpiox_schedule_add(queue_of(schedule),
                              &(mpiox_schedule_request){.file = request[0],
                                                        .offset = request[1],
                                                        .length = request[2],
                                                        .flow = request[3],
                                                        .weight = (int32_t)request[4],
                                                        .target = (int32_t)request[5],
                                                        .write = request[6] != 0},
                              now, id);
}

static const char *const names[] = {
#define X(name, unit, meaning) #name,
    MPIOX_SCHEDULE_COUNTERS(X)
#undef X
};
enum { COUNTERS = (int)(sizeof names / sizeof names[0]) };

const char *mpiio_ext_schedule_counter_name(int index)
{
    return index >= 0 && index < COUNTERS ? names[index] : NULL;
}

int64_t mpiio_ext_schedule_counter(const mpiio_ext_schedule *schedule, int index)
{
    mpiox_schedule_counters counters;
    mpiox_schedule_count((const mpiox_schedule *)schedule, &counters);
    const int64_t values[] = {
#define X(name, unit, meaning) counters.name,
        MPIOX_SCHEDULE_COUNTERS(X)
#undef X
    };
    return index >= 0 && index < COUNTERS ? values[index] : 0;
}
