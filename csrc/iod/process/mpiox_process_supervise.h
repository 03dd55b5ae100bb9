/*
 * mpiox_process_supervise.h - the process of a delegate and its supervisor.
 *
 * Problem.   When a delegate is killed its pages must be written even if no client shares its memory, a line must
 *            report it, and no launcher must take it for the death of a rank.
 * Algorithm. The supervisor, which has never called MPI, forks the delegate, maps its memory, and waits. When the
 *            delegate has been killed it writes the dirty bytes, as any client of the node would (mpiox_cache_rescue).
 * Signals.   Both ignore warning signals of launchers and batch systems: the program may continue after them. On
 *            SIGTERM, SIGUSR1, SIGUSR2 and SIGXCPU the delegate writes at full speed the files that it writes behind
 *            their close. Supervisor and delegate end when all clients have left or died.
 */
#ifndef MPIOX_PROCESS_SUPERVISE_H
#define MPIOX_PROCESS_SUPERVISE_H

/* Carry out `mpiio-ext-delegate serve`: orders and announcement go over descriptor MPIOX_PROCESS_SOCKET. Returns the
 * exit status. */
int mpiox_process_supervise(void);

#endif
