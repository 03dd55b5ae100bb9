/*
 * mpiox_device_access.h - the access of one rank whose buffer is in the memory of a GPU.
 */
#ifndef MPIOX_DEVICE_ACCESS_H
#define MPIOX_DEVICE_ACCESS_H

#include "mpiox_independent_file.h"

/* Is the request's memory a GPU's? `now` is mpiox_now(). Two branches where the process has loaded no driver, else the
 * a query of the drivers. Local, from any thread. */
bool mpiox_device_has(const mpiox_request *request, double now, mpiox_device *device);

/* An access of a part whose memory is contiguous, and the host's: as mpiox_independent_access(). */
typedef int mpiox_device_step(void *context, const mpiox_request *part, int64_t *done, mpiox_error *error);

/* How the parts of a request are carried out. */
typedef struct mpiox_device_steps {
    int64_t window;          /* bytes of a part, > 0; the last one may have fewer */
    mpiox_device_step *step; /* carries out one part */
    void *context;           /* of step; the caller's */
} mpiox_device_steps;

/* Carry a request out in steps. Its memory is that of `device`. Uses two windows of host memory, raises the counters of
 * device memory. *done and the result are those of mpiox_independent_access(). Local and blocking. */
int mpiox_device_access(const mpiox_request *request, const mpiox_device *device, const mpiox_device_steps *steps,
                        mpiox_independent_counters *counters, int64_t *done, mpiox_error *error);

#endif
