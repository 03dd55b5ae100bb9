/* mpiox_delegate_keep.c - see mpiox_delegate_keep.h. */
#include "mpiox_delegate_keep.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpiox_delegate_process.h"
#include "mpiox_delegate_serve.h"
#include "mpiox_delegate_socket.h"
#include "mpiox_delegate_tell.h"
#include "mpiox_delegate_watch.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_LOST = 3, STEP_MS = 100 };

static const double orders_s = 60;   /* so long a keeper waits for its orders */
static const double verdict_s = 600; /* and for the verdict, should its starter hang */
static const double stopping_s = 10; /* a delegate that is to end is killed after so long */

/* What the starter had open, the launcher's pipes for one, must not stay open here, /proc or not. */
static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, MPIOX_DELEGATE_SOCKET + 1, UINT_MAX, 0) == 0)
        return;
#endif
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

/* SIGXFSZ, too: a write beyond ulimit -f is an error that the ranks are told, as they were on their own. */
static void ignore_warnings(void)
{
    static const int warnings[] = {SIGHUP,  SIGINT,  SIGTERM, SIGUSR1, SIGUSR2,
                                   SIGPIPE, SIGXCPU, SIGXFSZ, SIGTSTP, SIGALRM};

    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++)
        signal(warnings[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

/* ---- the delegate ------------------------------------------------------------------------------------------------ */

typedef struct servant {
    mpiox_delegate_service service;
    mpiox_announcement said;
    int socket; /* to the keeper */
} servant;

/* What the keeper says. 'G': everybody has attached. 'S', and the end of the stream before the first word: end. Without
 * its keeper a delegate goes on. */
static void *obey(void *context)
{
    servant *s = context;
    char word = 0;
    ssize_t got = 0;

    if (mpiox_delegate_receive(s->socket, &word, 1, 2 * verdict_s) && word == 'G') {
        mpiox_delegate_seal(&s->service, &s->said);
        do
            got = read(s->socket, &word, 1);
        while (got < 0 && errno == EINTR);
        if (got != 1 || word != 'S')
            return NULL;
    }
    mpiox_delegate_stop(&s->service);
    return NULL;
}

static int serve(const mpiox_delegate_orders *orders, int socket)
{
    servant s = {.socket = socket};
    mpiox_announcement *said = &s.said;
    pthread_t thread;
    int code;

    code = mpiox_delegate_begin(orders, &s.service, said);
    if (code == MPIOX_OK && pthread_create(&thread, NULL, obey, &s) != 0)
        said->code = mpiox_error_set(&said->error, MPIOX_E_NOMEM, EAGAIN, -1, -1, "starting a delegate's thread");
    if (!mpiox_delegate_send(socket, said, sizeof *said) || said->code != MPIOX_OK)
        _exit(EXIT_FAILED);
    code = mpiox_delegate_serve(&s.service);
    shutdown(socket, SHUT_RD); /* ends the thread */
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
    mpiox_watch watch;
} keeper;

/* Until the delegate has ended. A client that does not reach it has it end. Returns its status. */
static int await_end(keeper *k, bool wanted)
{
    double told = 0; /* to end */
    int status = 0;

    if (!wanted)
        close(k->socket);
    while (waitpid(k->pid, &status, WNOHANG) == 0) {
        if (told == 0 && wanted && k->watch.asked)
            mpiox_delegate_send(k->socket, "S", 1);
        if (told == 0 && (!wanted || k->watch.asked))
            told = mpiox_now();
        if (told > 0 && mpiox_now() > told + stopping_s)
            kill(k->pid, SIGKILL);
        mpiox_watch_step(&k->watch, -1, STEP_MS);
    }
    return status;
}

static void map_memory(keeper *k)
{
    mpiox_error error;

    if (mpiox_segment_attach(&k->said.segment, &k->segment, &error) != MPIOX_OK)
        return;
    if (mpiox_cache_attach(k->segment.base, k->segment.bytes, &k->cache) != MPIOX_OK)
        mpiox_segment_free(&k->segment);
}

/* False: what it held is not all in the files. */
static bool rescue(keeper *k, int status)
{
    bool whole = false;

    if (k->segment.base != NULL && !mpiox_cache_is_serving(&k->cache, true)) {
        (void)mpiox_cache_rescue(&k->cache); /* or wait until a client has done it */
        whole = !mpiox_cache_has_errors(&k->cache);
    }
    mpiox_delegate_tell("I/O delegate %d (process %ld on %s) was ended by signal %d; %s", (int)k->said.index,
                        (long)k->pid, k->said.host, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                        whole ? "what it had not written has been written for it"
                              : "not all that it had not written could be written for it");
    return whole;
}

/* Clients on other nodes that have lost the delegate, or will find out, go to the file now. */
static void tell_others(keeper *k, bool whole)
{
    mpiox_watch_answer(&k->watch, whole);
    while (k->watch.count > 0)
        mpiox_watch_step(&k->watch, -1, STEP_MS);
}

/* What the delegate says of itself, with what the keeper adds. */
static void announce(keeper *k, const mpiox_delegate_orders *orders)
{
    mpiox_announcement *said = &k->said;

    if (!mpiox_delegate_receive(k->socket, said, sizeof *said, orders->seconds)) {
        memset(said, 0, sizeof *said);
        said->index = orders->server.delegate;
        said->code = mpiox_error_set(&said->error, MPIOX_E_UNSUPPORTED, 0, -1, -1, "waiting for a delegate to start");
    }
    if (said->code == MPIOX_OK && said->listens)
        said->code = mpiox_watch_open(&orders->place, said->link.secret, &k->watch, &said->watch, &said->error);
    if (said->code == MPIOX_OK)
        map_memory(k);
    mpiox_delegate_send(MPIOX_DELEGATE_SOCKET, said, sizeof *said);
}

/* Clients on other nodes connect meanwhile. */
static bool await_verdict(keeper *k)
{
    const double until = mpiox_now() + verdict_s;
    char verdict = 0;
    ssize_t got = -1;

    while (got < 0 && mpiox_now() < until) {
        mpiox_watch_step(&k->watch, MPIOX_DELEGATE_SOCKET, STEP_MS);
        got = recv(MPIOX_DELEGATE_SOCKET, &verdict, 1, MSG_DONTWAIT);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            got = 0;
    }
    return got == 1 && verdict == 'G';
}

static int keep(keeper *k, const mpiox_delegate_orders *orders)
{
    bool whole;
    int status;

    announce(k, orders);
    if (k->said.code != MPIOX_OK || !await_verdict(k)) {
        await_end(k, false);
        return EXIT_FAILED;
    }
    close(MPIOX_DELEGATE_SOCKET);
    mpiox_delegate_send(k->socket, "G", 1);
    status = await_end(k, true);
    if (WIFEXITED(status))
        whole = WEXITSTATUS(status) == EXIT_FINE && (k->segment.base == NULL || !mpiox_cache_has_errors(&k->cache));
    else
        whole = rescue(k, status);
    if (!WIFEXITED(status) || k->watch.asked)
        tell_others(k, whole);
    mpiox_watch_close(&k->watch);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FINE;
}

/* Each client on another node has three connections to this host. */
static void allow_connections(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int mpiox_delegate_keep(void)
{
    mpiox_delegate_orders orders;
    keeper k = {.segment = {.fd = -1}, .watch = {.listener = -1}};
    int pair[2];

    close_others();
    ignore_warnings();
    allow_connections();
    mpiox_delegate_tell_begin();
    if (chdir("/") != 0 || !mpiox_delegate_receive(MPIOX_DELEGATE_SOCKET, &orders, sizeof orders, orders_s) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return EXIT_FAILED;
    mpiox_delegate_speaker_use(&orders.speaker);
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
