/*
 * slow_storage.c - a file system whose requests take time, under any program.
 *
 * Problem.   On a file system in memory a request costs a microsecond; on a parallel file system it is a message to a
 *            server and back. What is gained by fewer, larger requests shows only there.
 * Algorithm. Preloaded, every read and write of a file below SLOW_STORAGE_PATH first sleeps SLOW_STORAGE_US
 *            microseconds, and with SLOW_STORAGE_MBPS the time that its bytes take at so many MB/s; requests of several
 *            processes and threads wait side by side; the processor is free. With SLOW_STORAGE_LINE, the name of a file
 *            of 8 bytes, the rate is that of all processes of the host together: the file says when the line to the
 *            storage is free again, and the bytes of a request wait for that. Each open of such a file sleeps
 *            SLOW_STORAGE_OPEN_US. A request of POSIX's asynchronous I/O (OMPIO's, with more ranks) goes on at once,
 *            and is in progress until it would be done.
 * Guarantee. It is a model of the time of a request, and of nothing else: no locks. All programs that are compared get
 *            the same. What does not go through these functions (io_uring, mmap) is not delayed.
 *
 *   cc -O2 -shared -fPIC -o slow_storage.so tests/programs/slow_storage.c -ldl
 *   LD_PRELOAD=./slow_storage.so SLOW_STORAGE_PATH=/dev/shm/x SLOW_STORAGE_US=100 PROGRAM
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, off64_t, preadv2: no option of the compiler is needed */
#endif
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *below;
static long long pause_ns, open_ns, mbps;
static _Atomic long long *line; /* when it is free: ns of CLOCK_MONOTONIC */

static void map_line(const char *name)
{
    const int fd = open(name, O_RDWR | O_CLOEXEC);
    void *at = fd >= 0 ? mmap(NULL, sizeof *line, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    line = at != MAP_FAILED ? at : NULL;
    if (fd >= 0)
        close(fd);
}

__attribute__((constructor)) static void set_up(void)
{
    const char *us = getenv("SLOW_STORAGE_US"), *open_us = getenv("SLOW_STORAGE_OPEN_US");
    const char *rate = getenv("SLOW_STORAGE_MBPS");

    below = getenv("SLOW_STORAGE_PATH");
    pause_ns = us != NULL ? 1000 * atoll(us) : 0;
    open_ns = open_us != NULL ? 1000 * atoll(open_us) : 0;
    mbps = rate != NULL ? atoll(rate) : 0;
    if (getenv("SLOW_STORAGE_LINE") != NULL)
        map_line(getenv("SLOW_STORAGE_LINE"));
}

/* How long the bytes of a request take from now on: with a line, behind those that were there before. */
static long long transfer_ns(size_t bytes)
{
    const long long ns = mbps > 0 ? 1000 * (long long)bytes / mbps : 0;
    struct timespec clock;

    if (line == NULL)
        return ns;
    clock_gettime(CLOCK_MONOTONIC, &clock);
    const long long now = 1000000000LL * clock.tv_sec + clock.tv_nsec;
    long long free_at = atomic_load(line);
    while (!atomic_compare_exchange_weak(line, &free_at, (free_at > now ? free_at : now) + ns)) {
    }
    return (free_at > now ? free_at - now : 0) + ns;
}

static size_t sum(const struct iovec *iov, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

static void rest(long long ns)
{
    static __thread int precise;
    const struct timespec pause_for = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    if (!precise)
        precise = prctl(PR_SET_TIMERSLACK, 1) == 0 || 1; /* nanoseconds; by default 50 microseconds */
    nanosleep(&pause_for, NULL);
}

/* How long a request takes from now on; 0 for files elsewhere. */
static long long request_ns(int fd, size_t bytes)
{
    char link[32], path[4096];
    const int before = errno;

    if (below == NULL || (pause_ns == 0 && mbps == 0))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path);
    errno = before;
    if (length < (ssize_t)strlen(below) || strncmp(path, below, strlen(below)) != 0)
        return 0;
    return pause_ns + transfer_ns(bytes);
}

static void wait_for(int fd, size_t bytes)
{
    const int before = errno;
    const long long ns = request_ns(fd, bytes);

    if (ns > 0)
        rest(ns);
    errno = before;
}

#define DELAY(type, name, parameters, arguments, bytes)                                                                \
    type name parameters                                                                                               \
    {                                                                                                                  \
        static type(*next) parameters;                                                                                 \
        if (next == NULL)                                                                                              \
            next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                                        \
        wait_for(fd, bytes);                                                                                           \
        return next arguments;                                                                                         \
    }

DELAY(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), n)
DELAY(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), n)
DELAY(ssize_t, writev, (int fd, const struct iovec *iov, int n), (fd, iov, n), sum(iov, n))
DELAY(ssize_t, readv, (int fd, const struct iovec *iov, int n), (fd, iov, n), sum(iov, n))
DELAY(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), n)
DELAY(ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), n)
DELAY(ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at), n)
DELAY(ssize_t, pread64, (int fd, void *data, size_t n, off64_t at), (fd, data, n, at), n)
DELAY(ssize_t, pwritev, (int fd, const struct iovec *iov, int n, off_t at), (fd, iov, n, at), sum(iov, n))
DELAY(ssize_t, preadv, (int fd, const struct iovec *iov, int n, off_t at), (fd, iov, n, at), sum(iov, n))
DELAY(ssize_t, pwritev64, (int fd, const struct iovec *iov, int n, off64_t at), (fd, iov, n, at), sum(iov, n))
DELAY(ssize_t, preadv64, (int fd, const struct iovec *iov, int n, off64_t at), (fd, iov, n, at), sum(iov, n))
DELAY(ssize_t, pwritev2, (int fd, const struct iovec *iov, int n, off_t at, int flags), (fd, iov, n, at, flags),
      sum(iov, n))
DELAY(ssize_t, preadv2, (int fd, const struct iovec *iov, int n, off_t at, int flags), (fd, iov, n, at, flags),
      sum(iov, n))

/* ---- asynchronous I/O: when each request is done --------------------------------------------------------------- */

enum { MOST_ASYNC = 1024 }; /* requests in progress; further ones are waited for before they begin */

static struct {
    const struct aiocb *request; /* NULL: free */
    long long done_ns;           /* of CLOCK_MONOTONIC */
} in_progress[MOST_ASYNC];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static long long now_ns(void)
{
    struct timespec clock;

    clock_gettime(CLOCK_MONOTONIC, &clock);
    return 1000000000LL * clock.tv_sec + clock.tv_nsec;
}

static void note(const struct aiocb *request)
{
    const long long ns = request_ns(request->aio_fildes, request->aio_nbytes);
    int at = 0;

    if (ns == 0)
        return;
    pthread_mutex_lock(&guard);
    while (at < MOST_ASYNC && in_progress[at].request != NULL && in_progress[at].request != request)
        at++;
    if (at < MOST_ASYNC) {
        in_progress[at].request = request;
        in_progress[at].done_ns = now_ns() + ns;
    }
    pthread_mutex_unlock(&guard);
    if (at == MOST_ASYNC)
        rest(ns);
}

/* What is left of a request; one that is done is forgotten. */
static long long left_ns(const struct aiocb *request)
{
    long long ns = 0;

    pthread_mutex_lock(&guard);
    for (int at = 0; at < MOST_ASYNC && request != NULL; at++) {
        if (in_progress[at].request != request)
            continue;
        ns = in_progress[at].done_ns - now_ns();
        if (ns <= 0)
            in_progress[at].request = NULL;
        break;
    }
    pthread_mutex_unlock(&guard);
    return ns > 0 ? ns : 0;
}

#define SLOW_ASYNC(name)                                                                                               \
    int name(struct aiocb *request)                                                                                    \
    {                                                                                                                  \
        static int (*next)(struct aiocb *);                                                                            \
        if (next == NULL)                                                                                              \
            next = (int (*)(struct aiocb *))dlsym(RTLD_NEXT, #name);                                                   \
        note(request);                                                                                                 \
        return next(request);                                                                                          \
    }

SLOW_ASYNC(aio_write)
SLOW_ASYNC(aio_read)

int aio_error(const struct aiocb *request)
{
    static int (*next)(const struct aiocb *);
    if (next == NULL)
        next = (int (*)(const struct aiocb *))dlsym(RTLD_NEXT, "aio_error");
    return left_ns(request) > 0 ? EINPROGRESS : next(request);
}

/* Waits for the first to be done, without regard to the limit, as if the storage answered no sooner. */
int aio_suspend(const struct aiocb *const list[], int n, const struct timespec *limit)
{
    static int (*next)(const struct aiocb *const[], int, const struct timespec *);
    long long least = -1;
    if (next == NULL)
        next = (int (*)(const struct aiocb *const[], int, const struct timespec *))dlsym(RTLD_NEXT, "aio_suspend");
    for (int i = 0; i < n; i++) {
        const long long ns = list[i] != NULL ? left_ns(list[i]) : -1;
        if (ns >= 0 && (least < 0 || ns < least))
            least = ns;
    }
    if (least > 0)
        rest(least);
    return next(list, n, limit);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

#define SLOW_OPEN(name)                                                                                                \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        static int (*next)(const char *, int, ...);                                                                    \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        const int mode = va_arg(more, int);                                                                            \
        va_end(more);                                                                                                  \
        if (next == NULL)                                                                                              \
            next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);                                           \
        if (open_ns > 0 && below != NULL && strncmp(path, below, strlen(below)) == 0)                                  \
            rest(open_ns);                                                                                             \
        return next(path, flags, mode);                                                                                \
    }

SLOW_OPEN(open)
SLOW_OPEN(open64)
