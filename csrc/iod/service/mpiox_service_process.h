/*
 * mpiox_service_process.h - delegates that are processes which the program's own ranks start.
 *
 * Problem.   Under srun, Open MPI 5 and other launchers MPI_Comm_spawn is not available or not safe, and delegates that
 *            are threads of ranks end with their ranks.
 * Algorithm. The lowest ranks of a node host its delegates, as in thread mode. A rank executes each of its delegates
 *            (mpiox_process_child.h), in a session of its own and without MPI.
 * Guarantee. If a rank is killed its delegates write their bytes, as long as the batch system lets them live. A rank
 *            that hosts a delegate stays in MPI_Finalize until this delegate has ended: at the end of a step Slurm
 *            kills the processes that the step has left. If this delegate and its supervisor die, the rank writes their
 *            bytes. The processes are no children of the rank, whose program may wait for all of its own.
 */
#ifndef MPIOX_SERVICE_PROCESS_H
#define MPIOX_SERVICE_PROCESS_H

#include "mpiox_process.h"
#include "mpiox_service_plan.h"

/* Why no process can be started here; NULL: nothing is known against it. Local; static text. */
const char *mpiox_service_process_refusal(void);
/* Start the delegates of this rank; announcements of the others stay zero. Local, blocking until they have started. 0
 * or MPIOX_E_*, which is also in an announcement. */
int mpiox_service_process_start(const mpiox_service_plan *plan, mpiox_announcement *announced);
/* Everybody has attached: serve; or end, soon and without being waited for. Local. */
void mpiox_service_process_release(bool go);
/* This process has left its delegates (array of the job's). Wait until those that it has started have ended, because
 * all clients have left, letting MPI make progress; rescue those that have died. Prints a line after report_s seconds,
 * if that is not 0. Local. */
void mpiox_service_process_await(mpiox_process *delegates, int32_t report_s);

#endif
