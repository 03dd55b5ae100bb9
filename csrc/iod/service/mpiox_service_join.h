/*
 * mpiox_service_join.h - a process becomes a client of all delegates, and leaves them.
 *
 * Problem.   A delegate knows its clients by mutexes, each owned by a thread that must live as long as the process is a
 *            client. A rank that computes makes no calls, and still has to detect within two seconds that a delegate of
 *            its node has died, because others wait until its pages are rescued.
 * Algorithm. One thread, the watcher, joins the local delegates, checks each of them every 250 ms, rescues the pages of
 *            one that has died, and leaves them at the end. Signals are blocked in it.
 */
#ifndef MPIOX_SERVICE_JOIN_H
#define MPIOX_SERVICE_JOIN_H

#include "mpiox_process.h"
#include "mpiox_service_patience.h"

/* Attach to all delegates (entries are made from their announcements) and start the watcher. `node`: of this process.
 * Local; connecting takes `seconds` at most. patience: reports of long waits. 0 or MPIOX_E_*, with *error; then nothing
 * remains. */
int mpiox_service_join(mpiox_process *delegates, const mpiox_announcement *announced, int32_t count, int node,
                       double seconds, const mpiox_service_patience *patience, mpiox_error *error);
/* The delegates may end now. Their memory stays mapped, so that a file that is closed later still detects their end.
 * Local; does nothing if this process has not joined. */
void mpiox_service_leave(void);

#endif
