/*
 * test_print.c - no line harms the program: not without a reader, not into full or closed descriptors, whatever the
 * program does with the signals; lines of several processes do not mix.
 *
 * Descriptor 2 is the program's own again before each check: those print on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_print.h"

enum { LIMIT_S = 120, PIPE_ENDS = 2, ROOM = 1 << 16, WRITERS = 4, LINES = 40 };

static volatile sig_atomic_t handled;

static void handle(int number)
{
    (void)number;
    handled++;
}

static int is_pending(int number)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, number);
}

/* Print a line with `fd` as descriptor 2, -1: closed; returns errno after it. */
static int print_on(int fd, const char *line)
{
    const int own = dup(STDERR_FILENO);

    if (fd >= 0)
        dup2(fd, STDERR_FILENO);
    else
        close(STDERR_FILENO);
    errno = ENOTTY;
    mpiox_print("%s", line);
    const int error = errno;
    dup2(own, STDERR_FILENO);
    close(own);
    return error;
}

static void fill(int fd)
{
    static const char zeros[ROOM];
    const int flags = fcntl(fd, F_GETFL);

    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while (write(fd, zeros, sizeof zeros) > 0 || write(fd, zeros, 1) > 0)
        ;
    fcntl(fd, F_SETFL, flags);
}

static void check_without_reader(int ends[PIPE_ENDS])
{
    sigset_t blocked, before, after;

    handled = 0;
    close(ends[0]);
    CHECK_EQUAL(print_on(ends[1], "nobody reads\n"), ENOTTY); /* SIGPIPE would end this program */
    CHECK_EQUAL(mpiox_print_to(ends[1], "x", 1), 0);
    CHECK_EQUAL(errno, EPIPE);

    signal(SIGPIPE, handle);
    print_on(ends[1], "nobody reads\n");
    CHECK_EQUAL(handled, 0);
    signal(SIGPIPE, SIG_IGN);
    print_on(ends[1], "nobody reads\n");
    signal(SIGPIPE, handle);
    CHECK_EQUAL(handled, 0);

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    print_on(ends[1], "nobody reads\n");
    CHECK_EQUAL(is_pending(SIGPIPE), 0);
    raise(SIGPIPE); /* the program's own */
    print_on(ends[1], "nobody reads\n");
    CHECK_EQUAL(is_pending(SIGPIPE), 1);
    sigprocmask(SIG_SETMASK, &before, &after);
    CHECK_EQUAL(sigismember(&after, SIGPIPE), 1);
    CHECK_EQUAL(handled, 1);
    signal(SIGPIPE, SIG_DFL);
    close(ends[1]);
}

/* Of a descriptor that blocks, or does not: its flags stay, the line is lost, and one for which there is room is no */
static void check_full(int ends[PIPE_ENDS], int flags)
{
    char bytes[ROOM];

    fcntl(ends[1], F_SETFL, fcntl(ends[1], F_GETFL) | flags);
    const int before = fcntl(ends[1], F_GETFL);
    fill(ends[1]);
    CHECK_EQUAL(print_on(ends[1], "lost\n"), ENOTTY);
    CHECK_EQUAL(print_on(ends[1], "lost, too\n"), ENOTTY);
    CHECK_EQUAL(fcntl(ends[1], F_GETFL), before);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    while (read(ends[0], bytes, sizeof bytes) > 0)
        ;
    print_on(ends[1], "read\n");
    CHECK_EQUAL(read(ends[0], bytes, sizeof bytes), 5);
    CHECK(memcmp(bytes, "read\n", 5) == 0);
    close(ends[0]);
    close(ends[1]);
}

static void check_pipes_and_sockets(void)
{
    int ends[PIPE_ENDS];

    CHECK(pipe(ends) == 0);
    check_without_reader(ends);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    check_without_reader(ends);
    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        CHECK(pipe(ends) == 0);
        check_full(ends, flags);
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        check_full(ends, flags);
    }
    CHECK_EQUAL(print_on(-1, "closed\n"), ENOTTY);
    CHECK_EQUAL(mpiox_print_to(ends[0], "x", 1), 0);
    CHECK_EQUAL(errno, EBADF);
}

/* A file of the largest size allowed: SIGXFSZ would end this program. */
static void check_largest_file(void)
{
    char name[] = "/tmp/mpiox_print.XXXXXX";
    const int fd = mkstemp(name);
    struct rlimit before, limit;

    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 4;
    setrlimit(RLIMIT_FSIZE, &limit);
    const int64_t part = mpiox_print_to(fd, "four+", 5);
    const int error = errno;
    print_on(fd, "no room\n");
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_EQUAL(part, 4);
    CHECK_EQUAL(error, EFBIG);
    CHECK_EQUAL(lseek(fd, 0, SEEK_END), 4);
    close(fd);
    unlink(name);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Each line: the letter of its writer, as often as differs from line to line. */
static int line_bytes(int line)
{
    return 300 + 900 * (line % 5); /* up to 3,900 */
}

static void write_lines(int fd, char letter)
{
    char *text = malloc((size_t)LINES * PIPE_BUF);
    int used = 0;

    for (int i = 0; i < LINES; i++) {
        memset(text + used, letter, (size_t)line_bytes(i));
        used += line_bytes(i);
        text[used++] = '\n';
    }
    const int64_t written = mpiox_print_to(fd, text, used); /* all lines at once */
    free(text);
    _exit(written == used ? 0 : 1);
}

/* Writers with one pipe, which has room for everything: no reader has to be in time. */
static void check_lines_of_several(void)
{
    int ends[PIPE_ENDS], counts[WRITERS] = {0}, wrong = 0;
    char bytes[PIPE_BUF + 1];

    CHECK(pipe(ends) == 0);
    CHECK(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0)
            write_lines(ends[1], (char)('a' + i));
    for (int i = 0, status; i < WRITERS; i++)
        CHECK(wait(&status) > 0 && status == 0);
    close(ends[1]);
    FILE *lines = fdopen(ends[0], "r");
    while (fgets(bytes, sizeof bytes, lines) != NULL) {
        const int writer = bytes[0] - 'a', length = (int)strlen(bytes) - 1;

        if (writer < 0 || writer >= WRITERS || length != line_bytes(counts[writer]) ||
            (int)strspn(bytes, (char[]){bytes[0], '\0'}) != length)
            wrong++;
        else
            counts[writer]++;
    }
    CHECK_EQUAL(wrong, 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK_EQUAL(counts[i], LINES);
    fclose(lines);
}

static void check_long_line(void)
{
    static char line[3 * PIPE_BUF];
    char bytes[sizeof line];
    int ends[PIPE_ENDS];

    memset(line, 'x', sizeof line - 1);
    CHECK(pipe(ends) == 0);
    print_on(ends[1], line);
    CHECK_EQUAL(read(ends[0], bytes, sizeof bytes), sizeof line - 1);
    CHECK(memcmp(bytes, line, sizeof line - 1) == 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    alarm(LIMIT_S); /* a write that waits for a reader */
    check_pipes_and_sockets();
    check_largest_file();
    check_lines_of_several();
    check_long_line();
    return check_exit();
}
