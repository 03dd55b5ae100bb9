/*
 * mpiox_darshan_isolated.c - reads logs in a child process, so that no log can harm its reader.
 *
 * Problem. libdarshan-util ends the process by an assertion, or crashes, on logs that are damaged in certain ways; it
 * prints to standard error, and could take memory or time without end. Starting a process for each log would cost
 * more than reading it.
 *
 * PyDarshan in worker processes takes 7 times as long. 26 real logs, each five times, take two warm workers 2.0 to 2.3
 * s, which only read the records of some modules. Here they take 0.27 to 0.31 s, from the log to the tables (load 6).
 *
 * Algorithm. One fork for all logs. The child reads log after log and sends the rows of each through a pipe: the sizes
 * of the buffers, then their bytes, which the parent reads straight behind those it has. A page that both share says
 * which log, and which part of it, the child is at, and a count that moves while anything goes on. When the child is
 * gone, or has not moved for too long and is ended, that part is blamed. A new child goes on with the same log without
 * the part. A log whose part was blamed twice, or whose header it was, is skipped. What a child sent in part is cut
 * off.
 *
 * Guarantees. Logs that were sent stay. The child shares no descriptor with the parent but its pipe, writes no core
 * file, and dies with its parent. It runs nothing but this code (it leaves by _exit): the state of Python, of its
 * threads and of their locks does not matter. Standard error of the process is never touched; its text in the child
 * becomes the reason of the outcome.
 */
#include "mpiox_darshan_isolated.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_darshan_log.h"
#include "mpiox_error.h"

/* How reading from the child ended. */
enum { RECEIVED = 1, GONE = 0, STUCK = -1, NO_MEMORY = -2 };
enum { MESSAGE_BYTES = 1 << 18, STAGE_BYTES = 1 << 18 };
enum { POLL_MS = 200, GRACE_S = 2, PIPE_BYTES = 1 << 20, OUT = 3, EXIT_NO_MEMORY = 41, EXIT_PIPE = 42 };

typedef struct session {
    const mpiox_darshan_library *library;
    const char *paths; /* of the next log */
    int64_t next, count;
    const mpiox_darshan_limits *limits;
    mpiox_darshan_progress *progress; /* shared */
    mpiox_darshan_blame blame;        /* of the next log */
    mpiox_darshan_rows *rows;
    pid_t child;
    int in;      /* the pipe's end for reading */
    char *stage; /* what was read from it and not yet asked for: [stage_at, stage_end) */
    int64_t stage_at, stage_end;
} session;

/* ---- the child ---- */

static int write_all(int fd, const void *data, int64_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        const ssize_t done = write(fd, at, (size_t)bytes);

        if (done < 0 && errno != EINTR)
            return -1;
        if (done > 0) {
            at += done;
            bytes -= done;
        }
    }
    return 0;
}

/* One message for a log, in one write where the pipe takes it: *message is memory that is kept from log to log. */
static int send_rows(const mpiox_darshan_rows *rows, mpiox_darshan_buffer *message)
{
    int64_t sizes[MPIOX_DARSHAN_BUFFER_COUNT];
    const int64_t bytes = (int64_t)sizeof(sizes) + mpiox_darshan_rows_bytes(rows);

    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++)
        sizes[k] = rows->buffers[k].used;
    if (bytes > MESSAGE_BYTES) {
        int failed = write_all(OUT, sizes, sizeof(sizes));
        for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT && !failed; k++)
            failed = write_all(OUT, rows->buffers[k].data, sizes[k]);
        return failed;
    }
    memcpy(message->data, sizes, sizeof(sizes));
    message->used = sizeof(sizes);
    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++) {
        if (sizes[k] > 0)
            memcpy(message->data + message->used, rows->buffers[k].data, (size_t)sizes[k]);
        message->used += sizes[k];
    }
    return write_all(OUT, message->data, message->used);
}

static int64_t address_space(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void limit(int what, int64_t to)
{
    struct rlimit now;

    if (getrlimit(what, &now) == 0 && (now.rlim_cur == RLIM_INFINITY || now.rlim_cur > (rlim_t)to)) {
        now.rlim_cur = (rlim_t)to;
        setrlimit(what, &now);
    }
}

/* Make this process one that only reads logs: messages to a file without a name, results to descriptor OUT. */
static int become_reader(const mpiox_darshan_limits *limits, pid_t parent, int out)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGPIPE};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        return -1;
    for (size_t k = 0; k < sizeof(deadly) / sizeof(deadly[0]); k++)
        signal(deadly[k], SIG_DFL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent; a log is not blamed for it */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    const int messages = (int)syscall(SYS_memfd_create, "mpiox_darshan", 0U);
    const int result = fcntl(out, F_DUPFD, 10);
    if (result < 0 || dup2(messages >= 0 ? messages : result, STDERR_FILENO) < 0)
        return -1;
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (dup2(result, OUT) < 0)
        return -1;
    close(STDIN_FILENO);
#ifdef SYS_close_range
    syscall(SYS_close_range, OUT + 1U, ~0U, 0U);
#endif
    limit(RLIMIT_CORE, 0);
    const int64_t used = limits->memory_bytes > 0 ? address_space() : 0;
    if (used > 0)
        limit(RLIMIT_AS, used + limits->memory_bytes);
    /* The library takes and returns megabytes for every log: keep them, new pages cost time. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    return messages >= 0 ? STDERR_FILENO : -2;
}

static _Noreturn void read_logs(session *session, pid_t parent, int out)
{
    mpiox_darshan_rows rows = {0};
    mpiox_darshan_buffer message = {malloc(MESSAGE_BYTES), 0, MESSAGE_BYTES};
    const int messages = become_reader(session->limits, parent, out);
    const mpiox_darshan_blame *blame = &session->blame;

    if (messages == -1 || message.data == NULL)
        _exit(EXIT_PIPE);
    for (int64_t k = session->next; k < session->count; k++) {
        session->progress->stage = MPIOX_DARSHAN_STAGE_OPEN;
        session->progress->log = k;
        mpiox_darshan_rows_clear(&rows);
        if (mpiox_darshan_log_read(session->library, session->paths, blame, messages >= 0 ? messages : -1,
                                   session->progress, &rows) != MPIOX_OK) {
            mpiox_darshan_rows_clear(&rows);
            mpiox_darshan_log_skip(&rows, "needs more memory than there is");
        }
        if (send_rows(&rows, &message) != 0)
            _exit(EXIT_PIPE);
        session->paths += strlen(session->paths) + 1;
        blame = NULL;
    }
    _exit(0);
}

/* ---- the parent ---- */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int start_child(session *session)
{
    const pid_t parent = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return MPIOX_E_IO;
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES); /* fewer switches where it is allowed */
    session->progress->log = session->next;
    session->progress->stage = MPIOX_DARSHAN_STAGE_OPEN;
    session->child = fork();
    if (session->child == 0)
        read_logs(session, parent, ends[1]);
    const int error = errno;
    close(ends[1]);
    session->in = ends[0];
    session->stage_at = session->stage_end = 0;
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (session->child > 0)
        return MPIOX_OK;
    close(ends[0]);
    errno = error;
    return MPIOX_E_IO;
}

static int has_ended(const session *session)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)session->child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* Read what there is, at least something, to `data` or, where less than a stage is wanted, to the stage. */
static int read_some(session *session, char *data, int64_t bytes, int64_t *got_bytes)
{
    const int staged = bytes < STAGE_BYTES;
    int64_t beat = session->progress->beat;
    double since = now_s();

    for (;;) {
        const ssize_t got = read(session->in, staged ? session->stage : data, staged ? STAGE_BYTES : (size_t)bytes);

        if (got > 0) {
            session->stage_at = 0;
            session->stage_end = staged ? got : 0;
            *got_bytes = staged ? 0 : got;
            return RECEIVED;
        }
        if (got == 0 || (errno != EINTR && errno != EAGAIN))
            return GONE;
        struct pollfd wait = {session->in, POLLIN, 0};
        if (poll(&wait, 1, POLL_MS) > 0)
            continue;
        if (session->progress->beat != beat) {
            beat = session->progress->beat;
            since = now_s();
        }
        if (now_s() - since > session->limits->patience_s)
            return STUCK;
        if (has_ended(session) && poll(&wait, 1, 0) == 0) /* another process may hold the pipe's other end open */
            return GONE;
    }
}

static int read_exactly(session *session, void *data, int64_t bytes)
{
    char *at = data;
    int state = RECEIVED;

    while (bytes > 0 && state == RECEIVED) {
        int64_t got = session->stage_end - session->stage_at;

        got = got < bytes ? got : bytes;
        if (got > 0) {
            memcpy(at, session->stage + session->stage_at, (size_t)got);
            session->stage_at += got;
        } else {
            state = read_some(session, at, bytes, &got);
        }
        at += got;
        bytes -= got;
    }
    return state;
}

/* Append the rows of one log, whole or not at all. */
static int receive_log(session *session)
{
    int64_t sizes[MPIOX_DARSHAN_BUFFER_COUNT], before[MPIOX_DARSHAN_BUFFER_COUNT];
    mpiox_darshan_rows *rows = session->rows;
    int state = read_exactly(session, sizes, sizeof(sizes));

    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++)
        before[k] = rows->buffers[k].used;
    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT && state == RECEIVED; k++) {
        void *to = sizes[k] > 0 ? mpiox_darshan_rows_extend(rows, k, sizes[k]) : NULL;

        if (sizes[k] > 0)
            state = to != NULL ? read_exactly(session, to, sizes[k]) : NO_MEMORY;
    }
    if (state == RECEIVED)
        return RECEIVED;
    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++)
        rows->buffers[k].used = before[k];
    rows->failed = 0;
    return state;
}

/* Wait for the child, end it if it is not gone, and say how it ended. */
static void end_child(session *session, int state, char *why, size_t why_bytes)
{
    const double since = now_s();
    int status = 0;
    pid_t ended;

    while (state == GONE && !has_ended(session) && now_s() - since < GRACE_S)
        usleep(1000);
    kill(session->child, SIGKILL); /* is nothing to one that has ended */
    do
        ended = waitpid(session->child, &status, 0);
    while (ended < 0 && errno == EINTR);
    close(session->in);
    if (state == STUCK)
        snprintf(why, why_bytes, "libdarshan-util made no progress for %.0f s", session->limits->patience_s);
    else if (ended == session->child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && state == GONE)
        snprintf(why, why_bytes, "the process that read the log was killed, perhaps because memory was short");
    else if (ended == session->child && WIFSIGNALED(status))
        snprintf(why, why_bytes, "libdarshan-util crashed (%s): the log is damaged", strsignal(WTERMSIG(status)));
    else
        snprintf(why, why_bytes, "libdarshan-util ended the process that read the log");
}

static void step(session *session)
{
    session->paths += strlen(session->paths) + 1;
    session->next++;
    memset(&session->blame, 0, sizeof(session->blame));
}

/* The child is gone before it sent the next log: blame the part that it was at, or give the log up. */
static void blame_part(session *session, const char *why)
{
    const int64_t stage = session->progress->log == session->next ? session->progress->stage : 0;
    char *reason = stage > 0 && stage < MPIOX_DARSHAN_STAGES ? session->blame.why[stage] : NULL;

    if (reason != NULL && reason[0] == '\0') {
        snprintf(reason, MPIOX_DARSHAN_BLAME, "%s", why);
        return;
    }
    mpiox_darshan_log_skip(session->rows, why);
    step(session);
}

/* Let one child read as far as it gets. MPIOX_OK, or an error that is not a log's. */
static int run_child(session *session)
{
    char why[MPIOX_DARSHAN_BLAME];
    int state = start_child(session);

    if (state != MPIOX_OK)
        return state;
    state = RECEIVED;
    while (state == RECEIVED && session->next < session->count &&
           mpiox_darshan_rows_bytes(session->rows) < session->limits->rows_bytes) {
        state = receive_log(session);
        if (state == RECEIVED)
            step(session);
    }
    end_child(session, state, why, sizeof(why));
    if (state == NO_MEMORY)
        return MPIOX_E_NOMEM;
    if (state != RECEIVED)
        blame_part(session, why);
    return MPIOX_OK;
}

int64_t mpiox_darshan_isolated_read(const mpiox_darshan_library *library, const char *paths, int64_t count,
                                    const mpiox_darshan_limits *limits, mpiox_darshan_rows *rows)
{
    session session = {.library = library, .paths = paths, .count = count, .limits = limits, .rows = rows};
    int code = MPIOX_OK;

    session.stage = malloc(STAGE_BYTES);
    session.progress = mmap(NULL, sizeof(*session.progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (session.stage == NULL || session.progress == MAP_FAILED)
        code = MPIOX_E_NOMEM;
    while (code == MPIOX_OK && session.next < count &&
           (session.next == 0 || mpiox_darshan_rows_bytes(rows) < limits->rows_bytes))
        code = run_child(&session);
    if (session.progress != MAP_FAILED)
        munmap(session.progress, sizeof(*session.progress));
    free(session.stage);
    return code == MPIOX_OK ? session.next : code;
}
