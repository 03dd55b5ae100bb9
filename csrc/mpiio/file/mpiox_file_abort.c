/*
 * mpiox_file_abort.c - ending the job where the only other end is a hang.
 *
 * Problem.   Ranks wait for an act or message that one rank cannot give. Or they wait for dead ranks that no message
 *            reports: over a cut link TCP retransmits for a quarter of an hour, and a hanging process is never
 *            detected.
 * Algorithm. One line that names the rank that gives up, the file and the reason; then MPI_Abort, which ends the ranks
 *            that the launcher reaches. Where the launcher's own connections are cut MPI_Abort may not return (MPICH's
 *            waits for the launcher): a thread ends this process then. Ranks beyond the cut reach their own limits.
 * Guarantee. The calling rank ends, within ABORTING_S seconds of the call.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_file.h"
#include "mpiox_print.h"

enum { ABORTING_S = 5 };

static void *end_anyway(void *unused)
{
    struct timespec rest = {.tv_sec = ABORTING_S};
    (void)unused;
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
    _exit(EXIT_FAILURE);
}

static void end_job(const mpiox_file *file)
{
    pthread_t thread;
    pthread_create(&thread, NULL, end_anyway, NULL); /* without it the best is done below */
    PMPI_Abort(file->topology->comm, 1);
    _exit(EXIT_FAILURE);
}

void mpiox_file_give_up(const mpiox_file *file, int code, int64_t offset, int64_t length, const char *what)
{
    char text[512];
    mpiox_error error = {.code = MPIOX_OK};
    const int sys_errno = code == MPIOX_E_NOMEM ? ENOMEM : code == MPIOX_E_ARG ? EINVAL : 0;
    mpiox_error_set(&error, code, sys_errno, offset, length, what);
    error.rank = file->topology->rank;
    mpiox_print("mpiio_ext: %s\n", mpiox_error_text(&error, file->path, text, sizeof text));
    end_job(file);
}

void mpiox_file_end_of_waiting(void *context, const char *what, int64_t number, double seconds)
{
    const mpiox_file *file = context;
    char which[32] = "";
    if (number >= 0)
        snprintf(which, sizeof which, " %lld", (long long)number);
    mpiox_print(
        "mpiio_ext: rank %d on %s: %s: waited %.0f s for %s%s: a rank, a node or the network may have failed; the "
        "job ends because of mpiox_wait_limit=%d\n",
        file->topology->rank, file->topology->node_name ? file->topology->node_name : "its node",
        file->path ? file->path : "", seconds, what ? what : "data of other ranks", which, file->hints.wait_limit);
    end_job(file);
}
