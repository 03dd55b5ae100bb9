/*
 * mpiox_mpi_abort.c - MPI_Abort with bytes in the delegates.
 *
 * Problem.   Delegates that are threads of ranks die with them, and with them every byte of a completed write that is
 *            not in its file yet. (Delegates of other modes outlive the ranks and flush, but the job may end before
 *            they have.)
 * Algorithm. Before the MPI library ends the job the aborting rank has every delegate flush its open files: the others'
 *            threads still run then. A thread does this, and the rank waits for it for a limited time: the cause of the
 *            abort may have killed the delegate, too.
 * Guarantee. The job ends after ABORT_S seconds at most. The one exception is a signal handler that has interrupted
 *            malloc() and calls MPI_Abort: the library needs malloc() to start the thread. One line reports unflushed
 *            bytes. Writes that other ranks collect for another node (mpiox_delegate_write_behind), and files that this
 *            rank does not have open, are not flushed; nor is any byte when a rank dies without MPI_Abort.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "mpiox_count.h"
#include "mpiox_forwarded.h"
#include "mpiox_print.h"
#include "mpiox_service.h"
#include "mpiox_handle.h"

#define EXPORT __attribute__((visibility("default")))

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
    if (handle->forwarded == NULL || mpiox_forwarded_flush_barrier_alone(handle->forwarded, &error) == MPIOX_OK)
        return;
    flush.failed++;
    flush.error = error;
}

static void *flush_all(void *context)
{
    mpiox_handle_each(flush_one, context);
    pthread_mutex_lock(&flush.lock);
    flush.done = true;
    pthread_cond_broadcast(&flush.changed);
    pthread_mutex_unlock(&flush.lock);
    return NULL;
}

/* Signals stay with the program's threads. */
static bool start(void)
{
    pthread_t thread;
    sigset_t all, before;

    mpiox_count_threads();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&thread, NULL, flush_all, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* False: not within ABORT_S. Threads that abort at the same time wait for the same flush. */
static bool flush_within(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    struct timespec until;
    bool started = true;
    int code = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ABORT_S;
    if (!atomic_flag_test_and_set(&begun))
        started = start();
    pthread_mutex_lock(&flush.lock);
    while (started && !flush.done && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&flush.changed, &flush.lock, &until);
    const bool done = flush.done;
    pthread_mutex_unlock(&flush.lock);
    return done;
}

static void flush_delegates(bool die_with_ranks)
{
    char text[512];

    const bool done = flush_within();
    if (!done && die_with_ranks)
        mpiox_print(
            "mpiio_ext: MPI_Abort: I/O delegates did not flush within %d s: bytes written since the last sync or "
            "close may be lost\n",
            ABORT_S);
    else if (done && flush.failed > 0)
        mpiox_print("mpiio_ext: MPI_Abort: bytes written since the last sync or close may be lost: %s\n",
                    mpiox_error_text(&flush.error, NULL, text, sizeof text));
}

EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    const mpiox_service *service = mpiox_service_current();

    if (service != NULL && service->count > 0)
        flush_delegates(service->mode == MPIOX_SERVICE_THREAD);
    return PMPI_Abort(comm, code);
}
