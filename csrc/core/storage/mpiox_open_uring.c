/*
 * mpiox_open_uring.c - liburing opened at run time, for builds that must not need it (CMake: MPIOX_ANY_MPI).
 *
 * Problem.    A wheel serves machines with and without liburing.so.2, which the dynamic linker would demand.
 * Algorithm.  The four functions that liburing.h leaves to the library are defined here, hidden, and call those of the
 *             library, opened at the first io_uring_queue_init().
 * Guarantees. Without the library io_uring_queue_init() returns -ENOSYS, as on a kernel without io_uring; the others
 *             are only called for a ring that it has made.
 */
#ifdef MPIOX_OPEN_IO_URING

#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>

#define HIDDEN __attribute__((visibility("hidden")))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool complete;
static __typeof__(io_uring_queue_init) *queue_init;
static __typeof__(io_uring_queue_exit) *queue_exit;
static __typeof__(io_uring_submit_and_wait) *submit_and_wait;
static __typeof__(__io_uring_get_cqe) *get_cqe;

static void open_library(void)
{
    void *const library = dlopen("liburing.so.2", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return;
    *(void **)&queue_init = dlsym(library, "io_uring_queue_init");
    *(void **)&queue_exit = dlsym(library, "io_uring_queue_exit");
    *(void **)&submit_and_wait = dlsym(library, "io_uring_submit_and_wait");
    *(void **)&get_cqe = dlsym(library, "__io_uring_get_cqe");
    complete = queue_init && queue_exit && submit_and_wait && get_cqe;
}

HIDDEN int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
    pthread_once(&once, open_library);
    return complete ? queue_init(entries, ring, flags) : -ENOSYS;
}

HIDDEN void io_uring_queue_exit(struct io_uring *ring)
{
    queue_exit(ring);
}

HIDDEN int io_uring_submit_and_wait(struct io_uring *ring, unsigned wait_nr)
{
    return submit_and_wait(ring, wait_nr);
}

HIDDEN int __io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned submit, unsigned wait_nr,
                              sigset_t *sigmask)
{
    return get_cqe(ring, cqe, submit, wait_nr, sigmask);
}

#else
typedef int mpiox_open_uring_not_used;
#endif
