/*
 * mpiox_service_thread.h - delegates that are threads of the program's own processes.
 *
 * The lowest ranks of a node host its delegates. A rank that hosts one stays in MPI_Finalize until all clients have
 * left. Signals are blocked in the threads. A rank that is killed takes its delegates with it, and so, as a rule, the
 * launcher the whole job: what such a delegate held and had not written is lost then, as it is in any rank's memory.
 */
#ifndef MPIOX_SERVICE_THREAD_H
#define MPIOX_SERVICE_THREAD_H

#include "mpiox_service_plan.h"

/* Start those of this rank; announcements of the others stay zero. Local, blocking until they have started. 0 or
 * MPIOX_E_NOMEM, which an announcement says as well. */
int mpiox_service_thread_start(const mpiox_service_plan *plan, mpiox_announcement *announced);
/* Everybody has attached. Local. */
void mpiox_service_thread_seal(void);
/* End them at once: nobody uses them. Local. */
void mpiox_service_thread_cancel(void);
/* Wait until they have ended, because all clients have left, letting MPI make progress. Local. */
void mpiox_service_thread_await(void);

#endif
