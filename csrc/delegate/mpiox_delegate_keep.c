/* mpiox_delegate_keep.c - see mpiox_delegate_keep.h. */
#include "mpiox_delegate_keep.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpiox_delegate_process.h"
#include "mpiox_delegate_serve.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_LOST = 3, STEP_MS = 50 };

static const double orders_s = 60;   /* so long a keeper waits for its orders */
static const double verdict_s = 600; /* and for the verdict, should its starter hang */
static const double stopping_s = 5;  /* a delegate that is not needed is killed after so long */

/* What the starter had open, the launcher's pipes for one, must not stay open here. */
static void close_others(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const int fd = atoi(entry->d_name);

        if (fd > MPIOX_DELEGATE_SOCKET && fd != dirfd(folder))
            close(fd);
    }
    if (folder != NULL)
        closedir(folder);
}

static void ignore_warnings(void)
{
    static const int warnings[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGXCPU, SIGTSTP, SIGALRM};

    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++)
        signal(warnings[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

/* ---- the delegate ------------------------------------------------------------------------------------------------ */

typedef struct servant {
    mpiox_delegate_service service;
    int socket; /* to the keeper */
} servant;

/* 'G': everybody has attached. The end of the stream before that: the delegate is not needed. */
static void *await_verdict(void *context)
{
    servant *s = context;
    char verdict = 0;

    if (!mpiox_delegate_receive(s->socket, &verdict, 1, 2 * verdict_s) || verdict != 'G')
        mpiox_delegate_stop(&s->service);
    else
        mpiox_server_seal(s->service.server);
    return NULL;
}

static int serve(const mpiox_delegate_orders *orders, int socket)
{
    servant s = {.socket = socket};
    mpiox_announcement said;
    pthread_t thread;
    int code;

    code = mpiox_delegate_begin(orders, &s.service, &said);
    if (code == MPIOX_OK && pthread_create(&thread, NULL, await_verdict, &s) != 0)
        said.code = mpiox_error_set(&said.error, MPIOX_E_NOMEM, EAGAIN, -1, -1, "starting a delegate's thread");
    if (!mpiox_delegate_send(socket, &said, sizeof said) || said.code != MPIOX_OK)
        _exit(EXIT_FAILED);
    code = mpiox_delegate_serve(&s.service);
    shutdown(socket, SHUT_RD); /* ends the thread, if no verdict has come */
    pthread_join(thread, NULL);
    mpiox_delegate_end(&s.service);
    return code == MPIOX_OK ? EXIT_FINE : EXIT_LOST;
}

/* ---- the keeper -------------------------------------------------------------------------------------------------- */

typedef struct keeper {
    pid_t pid;  /* of the delegate */
    int socket; /* to the delegate */
    mpiox_announcement said;
    mpiox_segment segment;
    mpiox_cache cache;
} keeper;

/* Within `seconds`; 0: without end. */
static bool await_end(keeper *k, double seconds, int *status)
{
    const double until = mpiox_now() + seconds;

    while (waitpid(k->pid, status, WNOHANG) == 0) {
        if (seconds > 0 && mpiox_now() > until)
            return false;
        poll(NULL, 0, STEP_MS);
    }
    return true;
}

static void map_memory(keeper *k)
{
    mpiox_error error;

    if (mpiox_segment_attach(&k->said.segment, &k->segment, &error) != MPIOX_OK)
        return;
    if (mpiox_cache_attach(k->segment.base, k->segment.bytes, &k->cache) != MPIOX_OK)
        mpiox_segment_free(&k->segment);
}

static void rescue(keeper *k, int status)
{
    int64_t bytes = 0;

    if (k->segment.base != NULL && !mpiox_cache_is_serving(&k->cache, true))
        bytes = mpiox_cache_rescue(&k->cache);
    fprintf(stderr,
            "mpiio_ext: I/O delegate %d (process %ld on %s) was ended by signal %d; %lld bytes that it had not written "
            "have been written by its keeper, others by its clients\n",
            (int)k->said.index, (long)k->pid, k->said.host, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
            (long long)bytes);
}

static int end_unwanted(keeper *k)
{
    int status;

    close(k->socket);
    if (!await_end(k, stopping_s, &status)) {
        kill(k->pid, SIGKILL);
        await_end(k, 0, &status);
    }
    return EXIT_FAILED;
}

static int keep(keeper *k, const mpiox_delegate_orders *orders)
{
    char verdict = 0;
    int status = 0;

    if (!mpiox_delegate_receive(k->socket, &k->said, sizeof k->said, orders->seconds)) {
        memset(&k->said, 0, sizeof k->said);
        k->said.index = orders->server.delegate;
        k->said.code = mpiox_error_set(&k->said.error, MPIOX_E_UNSUPPORTED, 0, -1, -1,
                                       "waiting for a delegate to start");
    }
    if (k->said.code == MPIOX_OK)
        map_memory(k);
    mpiox_delegate_send(MPIOX_DELEGATE_SOCKET, &k->said, sizeof k->said);
    if (k->said.code != MPIOX_OK || !mpiox_delegate_receive(MPIOX_DELEGATE_SOCKET, &verdict, 1, verdict_s) ||
        verdict != 'G')
        return end_unwanted(k);
    close(MPIOX_DELEGATE_SOCKET);
    mpiox_delegate_send(k->socket, "G", 1);
    await_end(k, 0, &status);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    rescue(k, status);
    return EXIT_FINE;
}

int mpiox_delegate_keep(void)
{
    mpiox_delegate_orders orders;
    keeper k = {.segment = {.fd = -1}};
    int pair[2];

    close_others();
    ignore_warnings();
    if (chdir("/") != 0 || !mpiox_delegate_receive(MPIOX_DELEGATE_SOCKET, &orders, sizeof orders, orders_s) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return EXIT_FAILED;
    k.pid = fork();
    if (k.pid == 0) {
        close(MPIOX_DELEGATE_SOCKET);
        close(pair[0]);
        return serve(&orders, pair[1]);
    }
    close(pair[1]);
    k.socket = pair[0];
    return k.pid > 0 ? keep(&k, &orders) : EXIT_FAILED;
}
