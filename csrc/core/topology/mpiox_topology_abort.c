/*
 * mpiox_topology_abort.c - ending the job where the only other end is a hang; see mpiox_topology.h.
 *
 * Problem.   MPI_Abort ends the ranks that the launcher reaches. If the launcher has died, or its own connections are
 *            cut, MPI_Abort may not return: MPICH's waits for the launcher.
 * Algorithm. A thread ends this process if MPI_Abort does not. Ranks of this node that wait for this one detect its end
 *            (mpiox_topology_is_over()); ranks on other nodes reach their own limits.
 * Guarantee. The calling process ends within ABORTING_S seconds of the call.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_topology.h"

enum { ABORTING_S = 5 };

static void *end_anyway(void *unused)
{
    struct timespec rest = {.tv_sec = ABORTING_S};
    (void)unused;
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
    _exit(EXIT_FAILURE);
}

_Noreturn void mpiox_topology_abort(const mpiox_topology *t)
{
    pthread_t thread;
    pthread_create(&thread, NULL, end_anyway, NULL); /* without it the best is done below */
    PMPI_Abort(t->comm != MPI_COMM_NULL ? t->comm : MPI_COMM_WORLD, 1);
    _exit(EXIT_FAILURE);
}
