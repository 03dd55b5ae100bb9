/*
 * mpiox_mpi_abort.c - MPI_Abort with bytes in the delegates.
 *
 * Problem.   Delegates that are threads of ranks die with them, and with them every byte that a write has returned for
 *            and that is not in its file yet. (Spawned ones outlive the ranks and flush.)
 * Algorithm. Before the MPI library ends the job the aborting rank has every delegate flush the files that it has open:
 *            the others' threads still run then. In a thread, which is waited for so long at most: what made the
 *            program abort may have taken the delegate along.
 * Guarantee. The job ends, ABORT_S seconds later at most. What could not be flushed is said in one line. Writes that
 *            other ranks collect for another node (mpiox_delegate_write_behind), and files that this rank does not have
 *            open, are not looked after; nor is anything when a rank dies without MPI_Abort.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "mpiox_delegated.h"
#include "mpiox_group.h"
#include "mpiox_handle.h"

enum { ABORT_S = 10 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int failed; /* files */
    mpiox_error error;
} flush = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void flush_one(mpiox_handle *handle, void *context)
{
    mpiox_error error = {.code = MPIOX_OK};

    (void)context;
    if (handle->delegated == NULL || mpiox_delegated_fence_alone(handle->delegated, &error) == MPIOX_OK)
        return;
    flush.failed++;
    flush.error = error;
}

static void *flush_all(void *context)
{
    mpiox_handle_each(flush_one, context);
    pthread_mutex_lock(&flush.lock);
    flush.done = true;
    pthread_cond_signal(&flush.changed);
    pthread_mutex_unlock(&flush.lock);
    return NULL;
}

/* Signals stay with the program's threads. */
static bool start(void)
{
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&thread, NULL, flush_all, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

static void flush_delegates(void)
{
    struct timespec until;
    char text[512];
    int code = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_S;
    const bool started = start();
    pthread_mutex_lock(&flush.lock);
    while (started && !flush.done && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&flush.changed, &flush.lock, &until);
    const bool done = flush.done;
    pthread_mutex_unlock(&flush.lock);
    if (!done)
        fprintf(stderr,
                "mpiio_ext: MPI_Abort: I/O delegates did not flush within %d s: bytes written since the last sync or "
                "close may be lost\n",
                ABORT_S);
    else if (flush.failed > 0)
        fprintf(stderr, "mpiio_ext: MPI_Abort: bytes written since the last sync or close may be lost: %s\n",
                mpiox_error_text(&flush.error, NULL, text, sizeof text));
}

__attribute__((visibility("default"))) int MPI_Abort(MPI_Comm comm, int code)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    const mpiox_group *group = mpiox_group_current();

    if (group != NULL && group->count > 0 && !atomic_flag_test_and_set(&begun))
        flush_delegates();
    return PMPI_Abort(comm, code);
}
