/*
 * mpiox_service_patience.h - the line that reports a rank's wait for a live delegate.
 *
 * For delegates of the rank's node csrc/iod/cache counts the wait (mpiox_cache_waiting.h); for the others the watcher
 * of mpiox_service_join.h checks how long the current request has taken. Printed on standard error, once for each wait.
 */
#ifndef MPIOX_SERVICE_PATIENCE_H
#define MPIOX_SERVICE_PATIENCE_H

#include "mpiox_cache_waiting.h"
#include "mpiox_process.h"

typedef struct mpiox_service_patience {
    int32_t seconds; /* 0: no report */
    int32_t rank;    /* of the program */
} mpiox_service_patience;

/* A wait that repeats its request. Start from {0}. */
typedef struct mpiox_service_wait {
    const mpiox_process *delegate; /* that this process waits for; borrowed; NULL: none yet */
    mpiox_cache_wait wait;         /* the wait for that delegate */
} mpiox_service_wait;

/* From now on in this process; before threads use delegates. */
void mpiox_service_patience_set(const mpiox_service_patience *patience);
/* For a delegate that is not local: report the wait when it is due. One thread calls it, again and again. */
void mpiox_service_patience_look(mpiox_process *delegate);
/* The delegate, local or not, has once more not answered the request (op: of mpiox_ring.h) on its file of this number
 * (-1: none), or of this path. For another delegate than before another wait begins. */
void mpiox_service_patience_step(mpiox_service_wait *self, const mpiox_process *delegate, int32_t op, int32_t file,
                                 const char *path);
/* The wait is over, or has made progress. */
void mpiox_service_patience_end(mpiox_service_wait *self);

#endif
