/*
 * mpiox_service_patience.h - the line that says that a rank waits for a delegate which is alive.
 *
 * For delegates of the rank's node csrc/iod/cache counts the wait (mpiox_cache_waiting.h); for the others the watcher
 * of mpiox_service_join.h looks how long the request under way has taken. Printed on standard error, once for each
 * wait.
 */
#ifndef MPIOX_SERVICE_PATIENCE_H
#define MPIOX_SERVICE_PATIENCE_H

#include "mpiox_process.h"

typedef struct mpiox_service_patience {
    int32_t seconds; /* 0: nothing is said */
    int32_t rank;    /* of the program */
} mpiox_service_patience;

/* From now on in this process; before threads use delegates. */
void mpiox_service_patience_set(const mpiox_service_patience *patience);
/* Of a delegate that is not local: say it when it is time. Called by one thread, again and again. */
void mpiox_service_patience_look(mpiox_process *delegate);

#endif
