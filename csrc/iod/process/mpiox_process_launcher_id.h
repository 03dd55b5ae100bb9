/*
 * mpiox_process_launcher_id.h - the rank for which a delegate was started; on its standard error the delegate says what
 * has to be said.
 *
 * Problem.   A delegate that belongs to no launcher has no standard error of its own that anybody reads. A rank's can
 *            be opened through /proc/PID/fd/2, but in another process-id namespace the same number is another process,
 *            and two containers may have one host name.
 * Algorithm. The rank says which file its standard error is (device and inode). What is found under its number is
 *            looked at before it is opened, and again afterwards.
 * Guarantee. Nothing is ever written to another process's files. Where the rank's is not found the delegate keeps its
 *            own.
 */
#ifndef MPIOX_PROCESS_LAUNCHER_ID_H
#define MPIOX_PROCESS_LAUNCHER_ID_H

#include <stdint.h>

/* Plain data: it travels over MPI and through pipes. */
typedef struct mpiox_process_launcher_id {
    int64_t pid; /* 0: none */
    uint64_t device, inode;
    char host[64];
} mpiox_process_launcher_id;

/* The calling process. Local. */
mpiox_process_launcher_id mpiox_process_launcher_id_self(void);
/* Make that rank's standard error this process's own, if it is found from here. Local. mpirun sees it open until
 * this process ends, and waits for it. */
void mpiox_process_launcher_id_use(const mpiox_process_launcher_id *launcher_id);

#endif
