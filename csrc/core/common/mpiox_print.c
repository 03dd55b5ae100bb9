/* mpiox_print.c - see mpiox_print.h. */
#include "mpiox_print.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_S = 1, STEP_MS = 10, LINE_BYTES = PATH_MAX + 1024 };

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static const struct {
    int signal, error; /* raised together */
} raised[] = {{SIGPIPE, EPIPE}, {SIGXFSZ, EFBIG}};
enum { SIGNALS = sizeof raised / sizeof raised[0] };

typedef struct signals {
    sigset_t before, pending;
} signals;

static void block(signals *s)
{
    sigset_t both;

    sigemptyset(&both);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&both, raised[i].signal);
    sigemptyset(&s->pending);
    sigpending(&s->pending);
    pthread_sigmask(SIG_BLOCK, &both, &s->before);
}

/* error: of the write. */
static void unblock(const signals *s, int error)
{
    static const struct timespec at_once = {0};

    for (int i = 0; i < SIGNALS; i++) {
        sigset_t one;

        sigemptyset(&one);
        sigaddset(&one, raised[i].signal);
        while (error == raised[i].error && sigismember(&s->pending, raised[i].signal) == 0 &&
               sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}

/* ---- one write --------------------------------------------------------------------------------------------------- */

typedef struct target {
    int fd;
    mode_t kind;           /* S_IFIFO, ... */
    struct timespec since; /* the last bytes were written */
} target;

/* A pipe's: another description of it, which does not block, if there can be one. */
static int without_blocking(int fd)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const long own = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    return own >= 0 ? (int)own : fd;
}

/* As many whole lines as one write into a pipe takes without other writes between them. */
static int64_t share(const char *text, int64_t bytes)
{
    const char *end = bytes > PIPE_BUF ? memrchr(text, '\n', PIPE_BUF) : NULL;

    return end != NULL ? end + 1 - text : bytes > PIPE_BUF ? PIPE_BUF : bytes;
}

static int64_t put(const target *t, const char *text, int64_t bytes)
{
    if (t->kind == S_IFSOCK)
        return syscall(SYS_sendto, t->fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
    return syscall(SYS_write, t->fd, text, t->kind == S_IFIFO ? share(text, bytes) : bytes);
}

/* ---- a text ------------------------------------------------------------------------------------------------------ */

static int left_ms(const target *t)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t passed_ms = (now.tv_sec - t->since.tv_sec) * 1000 + (now.tv_nsec - t->since.tv_nsec) / 1000000;
    return passed_ms < WAIT_S * 1000 ? (int)(WAIT_S * 1000 - passed_ms) : 0;
}

/* Is there room, in time? Errors count: the write returns them. */
static bool has_room(const target *t, bool waits)
{
    struct pollfd polled = {.fd = t->fd, .events = POLLOUT};
    int result;

    do
        result = poll(&polled, 1, waits ? left_ms(t) : 0);
    while (result < 0 && errno == EINTR);
    return result != 0;
}

static int64_t write_all(target *t, const char *text, int64_t bytes)
{
    static atomic_bool nobody_reads;
    const bool waits = !atomic_load(&nobody_reads);
    int64_t done = 0, now = 0;

    while (done < bytes) {
        errno = EAGAIN;
        now = has_room(t, waits) ? put(t, text + done, bytes - done) : -1;
        if (now > 0) {
            done += now;
            clock_gettime(CLOCK_MONOTONIC, &t->since);
        } else if (now == 0 || (errno != EINTR && (errno != EAGAIN || !waits || left_ms(t) == 0))) {
            break;
        } else if (errno == EAGAIN) {
            poll(NULL, 0, STEP_MS);
        }
    }
    atomic_store(&nobody_reads, done < bytes && now < 0 && errno == EAGAIN);
    return done;
}

int64_t mpiox_print_to(int fd, const char *text, int64_t bytes)
{
    struct stat status = {0};
    signals signals;
    target t = {.fd = fd};

    t.kind = syscall(SYS_fstat, fd, &status) == 0 ? status.st_mode & S_IFMT : 0;
    if (t.kind == S_IFIFO)
        t.fd = without_blocking(fd);
    clock_gettime(CLOCK_MONOTONIC, &t.since);
    block(&signals);
    const int64_t done = write_all(&t, text, bytes);
    const int error = done < bytes ? errno : 0;

    unblock(&signals, error);
    if (t.fd != fd)
        syscall(SYS_close, t.fd);
    errno = error;
    return done;
}

void mpiox_print(const char *format, ...)
{
    const int before = errno;
    char line[LINE_BYTES], *text = line;
    va_list arguments, again;

    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length >= LINE_BYTES && (text = malloc((size_t)length + 1)) != NULL)
        vsnprintf(text, (size_t)length + 1, format, again);
    else if (length >= LINE_BYTES) { /* without memory its beginning */
        text = line;
        length = LINE_BYTES - 1;
    }
    va_end(again);
    va_end(arguments);
    if (length > 0)
        mpiox_print_to(STDERR_FILENO, text, length);
    if (text != line)
        free(text);
    errno = before;
}
