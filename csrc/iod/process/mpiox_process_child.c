/* mpiox_process_child.c - see mpiox_process_child.h. */
#include "mpiox_process_child.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpiox_process_socket.h"

extern char **environ;

static const double ending_s = 15; /* limit on a supervisor's end: more than its own on the delegate's */

int mpiox_process_executable(char *path, size_t bytes, mpiox_error *error)
{
    char library[PATH_MAX], *slash = NULL;
    Dl_info info;

    if (dladdr((void *)(uintptr_t)mpiox_process_executable, &info) != 0 && info.dli_fname != NULL &&
        realpath(info.dli_fname, library) != NULL)
        slash = strrchr(library, '/');
    if (slash != NULL) {
        *slash = '\0';
        if ((size_t)snprintf(path, bytes, "%s/../bin/mpiio-ext-delegate", library) < bytes && access(path, X_OK) == 0)
            return MPIOX_OK;
    }
    return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, ENOENT, -1, -1, "finding bin/mpiio-ext-delegate");
}

/* ---- the parent -------------------------------------------------------------------------------------------------- */

/* Execute mpiio-ext-delegate with `theirs` as its descriptor 3, no signal blocked, in a session of its own: signals
 * from a launcher or a terminal to the program's process group do not reach it. */
static int execute(const char *path, bool apart, int theirs, pid_t *pid)
{
    char *const arguments[] = {"mpiio-ext-delegate", "serve", apart ? "apart" : NULL, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int failed;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    for (int fd = 0; fd <= 2; fd++) /* a launcher takes a process for alive as long as its output is open */
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, theirs, MPIOX_PROCESS_SOCKET);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    failed = posix_spawn(pid, path, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* The process that was executed leaves its own child behind, and exits at once. */
static void collect(mpiox_process_child *process)
{
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    process->pid = 0;
}

bool mpiox_process_child_has_ended(mpiox_process_child *process, int *status)
{
    const pid_t pid = waitpid(process->pid, status, WNOHANG);

    if (pid < 0 && errno == ECHILD) /* other code of the program has collected it */
        *status = 0;
    return pid == process->pid || (pid < 0 && errno == ECHILD);
}

/* It ends its delegate when its parent is gone. */
static void give_up(mpiox_process_child *process)
{
    const double until = mpiox_now() + ending_s;
    int status;

    close(process->socket);
    process->socket = -1;
    while (process->pid > 0 && !mpiox_process_child_has_ended(process, &status)) {
        if (mpiox_now() > until)
            kill(process->pid, SIGKILL);
        poll(NULL, 0, 10);
    }
}

static int fail(mpiox_announcement *announced, int code, int sys_errno, const char *what)
{
    announced->code = mpiox_error_set(&announced->error, code, sys_errno, -1, -1, what);
    return code;
}

/* Two connected descriptors, none of which is one that execute() opens. */
static bool make_pair(int pair[2])
{
    int made[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        pair[i] = fcntl(made[i], F_DUPFD_CLOEXEC, MPIOX_PROCESS_SOCKET + 1);
        close(made[i]);
    }
    if (pair[0] >= 0 && pair[1] >= 0)
        return true;
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            close(pair[i]);
    }
    return false;
}

int mpiox_process_child_start(const mpiox_process_orders *orders, bool apart, double seconds, mpiox_process_child *out,
                              mpiox_announcement *announced)
{
    const double until = mpiox_now() + seconds;
    char path[PATH_MAX];
    int pair[2], failed;

    memset(announced, 0, sizeof *announced);
    announced->index = orders->server.delegate;
    announced->node = orders->node;
    if (mpiox_process_executable(path, sizeof path, &announced->error) != MPIOX_OK)
        return announced->code = MPIOX_E_UNSUPPORTED;
    if (!make_pair(pair))
        return fail(announced, MPIOX_E_NOMEM, errno, "starting a delegate");
    failed = execute(path, apart, pair[1], &out->pid);
    close(pair[1]);
    out->socket = pair[0];
    if (failed == 0 && apart)
        collect(out);
    if (failed != 0) {
        close(pair[0]);
        return fail(announced, MPIOX_E_UNSUPPORTED, failed, "executing mpiio-ext-delegate");
    }
    if (!mpiox_process_socket_send(out->socket, orders, sizeof *orders) ||
        !mpiox_process_socket_receive(out->socket, announced, sizeof *announced, until - mpiox_now())) {
        give_up(out);
        return fail(announced, MPIOX_E_UNSUPPORTED, 0, "waiting for a delegate to start");
    }
    if (announced->code != MPIOX_OK)
        give_up(out);
    return announced->code;
}

void mpiox_process_child_release(mpiox_process_child *process, bool go)
{
    if (go)
        mpiox_process_socket_send(process->socket, "G", 1);
    close(process->socket);
    process->socket = -1;
}
