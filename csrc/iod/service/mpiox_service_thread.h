/*
 * mpiox_service_thread.h - delegates that are threads of the program's own processes.
 *
 * The lowest ranks of a node host its delegates. A rank that hosts one stays in MPI_Finalize until all clients have
 * left. Signals are blocked in the threads. If a rank is killed its delegates end with it, and as a rule the launcher
 * ends the whole job: the bytes that such a delegate had not written are lost then, like any rank's memory.
 */
#ifndef MPIOX_SERVICE_THREAD_H
#define MPIOX_SERVICE_THREAD_H

#include "mpiox_service_plan.h"

/* Start the delegates of this rank; announcements of the others stay zero. Local, blocking until they have started. 0
 * or MPIOX_E_NOMEM, which is also in an announcement. */
int mpiox_service_thread_start(const mpiox_service_plan *plan, mpiox_announcement *announced);
/* Everybody has attached. Local. */
void mpiox_service_thread_seal(void);
/* End them at once: no client uses them. Local. */
void mpiox_service_thread_cancel(void);
/* Wait until they have ended, because all clients have left, letting MPI make progress. Local. */
void mpiox_service_thread_await(void);

#endif
