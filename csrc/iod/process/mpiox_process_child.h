/*
 * mpiox_process_child.h - a delegate that is a process of its own, seen from the process that starts it.
 *
 * Problem.   A launcher ends the whole job when a process that it has started dies, and counts the slot of the process
 *            as occupied as long as the process lives: the program's own children would find no slot left.
 * Algorithm. The process that starts a delegate executes mpiio-ext-delegate a second time, outside of MPI and of the
 *            launcher's session. The executed process, the supervisor, forks the delegate and waits for its end
 *            (mpiox_process_supervise.h). Orders, announcement and verdict travel over a pair of sockets. A spawned MPI
 *            process can then leave MPI and exit.
 * Guarantee. No call waits longer than its limit. A delegate without a verdict ends by itself.
 */
#ifndef MPIOX_PROCESS_CHILD_H
#define MPIOX_PROCESS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "mpiox_process_orders.h"

enum { MPIOX_PROCESS_SOCKET = 3 }; /* the descriptor of the socket between a supervisor and its parent */

typedef struct mpiox_process_child {
    pid_t pid;  /* the supervisor's; 0: it is no child of this process */
    int socket; /* to the supervisor, for orders, announcement and verdict; -1: closed */
} mpiox_process_child;

/* Where the executable is: beside the library. 0, or MPIOX_E_UNSUPPORTED if it is not there. */
int mpiox_process_executable(char *path, size_t bytes, mpiox_error *error);
/* Blocking, `seconds` at most. `apart`: the supervisor is no child of this process, whose program may wait for all of
 * its children. Returns announced->code; if that is not MPIOX_OK no process remains, or (apart) it ends by itself. */
int mpiox_process_child_start(const mpiox_process_orders *orders, bool apart, double seconds, mpiox_process_child *out,
                              mpiox_announcement *announced);
/* The verdict: serve, or end. Local, does not wait. */
void mpiox_process_child_release(mpiox_process_child *process, bool go);
/* Has the child ended? Then *status is as of waitpid(). Local, does not wait. */
bool mpiox_process_child_has_ended(mpiox_process_child *process, int *status);

#endif
