/*
 * mpiox_process_launcher_id.h - the rank for which a delegate was started; the delegate prints its messages on this
 * rank's standard error.
 *
 * Problem.   A delegate that belongs to no launcher has no standard error that a user reads. A delegate can open a
 *            rank's standard error through /proc/PID/fd/2, but in another process-id namespace the same number is
 *            another process, and two containers may have one host name.
 * Algorithm. The rank sends device and inode of its standard error. The delegate checks the file under the rank's
 *            number before it opens it, and again afterwards.
 * Guarantee. The delegate never writes to another process's files. If it does not find the rank's standard error, it
 *            prints to its own.
 */
#ifndef MPIOX_PROCESS_LAUNCHER_ID_H
#define MPIOX_PROCESS_LAUNCHER_ID_H

#include <stdint.h>

/* Plain data: it travels over MPI and through pipes. */
typedef struct mpiox_process_launcher_id {
    int64_t pid;            /* the rank's, in its own process-id namespace; 0: none */
    uint64_t device, inode; /* of the rank's standard error */
    char host[64];          /* name of the rank's host */
} mpiox_process_launcher_id;

/* The calling process. Local. */
mpiox_process_launcher_id mpiox_process_launcher_id_self(void);
/* Make that rank's standard error this process's own, if it is found from here. Local. mpirun sees it open until
 * this process ends, and waits for it. */
void mpiox_process_launcher_id_use(const mpiox_process_launcher_id *launcher_id);

#endif
