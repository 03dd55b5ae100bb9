/* mpiox_process_supervise.c - see mpiox_process_supervise.h. */
#include "mpiox_process_supervise.h"

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

#include "mpiox_process_child.h"
#include "mpiox_process_serve.h"
#include "mpiox_process_socket.h"
#include "mpiox_process_notify.h"
#include "mpiox_process_liveness.h"
#include "mpiox_segment_guard.h"
#include "mpiox_testing.h"
#include "mpiox_cache_hidden.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_LOST = 3, STEP_MS = 100 };

static const double orders_s = 60;   /* limit on a supervisor's wait for its orders */
static const double verdict_s = 600; /* and for the verdict, should its parent hang */
static const double stopping_s = 10; /* a delegate that has not ended by then is killed */

/* The parent's open descriptors, such as the launcher's pipes, must not stay open here, with or without /proc. */
static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, MPIOX_PROCESS_SOCKET + 1, UINT_MAX, 0) == 0)
        return;
#endif
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const int fd = atoi(entry->d_name);

        if (fd > MPIOX_PROCESS_SOCKET && fd != dirfd(folder))
            close(fd);
    }
    if (folder != NULL)
        closedir(folder);
}

/* SIGXFSZ, too: a write beyond ulimit -f is an error that the ranks get, as without delegates. */
static void ignore_warnings(void)
{
    static const int warnings[] = {SIGHUP,  SIGINT,  SIGTERM, SIGUSR1, SIGUSR2,
                                   SIGPIPE, SIGXCPU, SIGXFSZ, SIGTSTP, SIGALRM};

    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++)
        signal(warnings[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

/* ---- the delegate ------------------------------------------------------------------------------------------------ */

static mpiox_server *warned; /* the one of this process */

/* Batch systems send these when time is short. */
static void hurry(int number)
{
    (void)number;
    mpiox_server_hurry(warned);
}

static void mind_warnings(mpiox_server *server)
{
    static const int warnings[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
    struct sigaction action = {.sa_handler = hurry, .sa_flags = SA_RESTART};

    warned = server;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++)
        sigaction(warnings[i], &action, NULL);
}

typedef struct server_process {
    mpiox_process_instance instance;
    mpiox_announcement announced;
    int socket; /* to the supervisor */
} server_process;

/* The supervisor's words. 'G': all clients have attached. 'S', and the end of the stream before the first word: end. A
 * delegate continues without its supervisor. */
static void *obey(void *context)
{
    server_process *s = context;
    char word = 0;
    ssize_t got = 0;

    if (mpiox_process_socket_receive(s->socket, &word, 1, 2 * verdict_s) && word == 'G') {
        mpiox_process_seal(&s->instance, &s->announced);
        do
            got = read(s->socket, &word, 1);
        while (got < 0 && errno == EINTR);
        if (got != 1 || word != 'S')
            return NULL;
    }
    mpiox_process_stop(&s->instance);
    return NULL;
}

static int serve(const mpiox_process_orders *orders, int socket)
{
    server_process s = {.socket = socket};
    mpiox_announcement *announced = &s.announced;
    pthread_t thread;
    int code;

    code = mpiox_process_begin(orders, &s.instance, announced);
    if (code == MPIOX_OK && pthread_create(&thread, NULL, obey, &s) != 0)
        announced->code = mpiox_error_set(&announced->error, MPIOX_E_NOMEM, EAGAIN, -1, -1,
                                          "starting a delegate's thread");
    if (!mpiox_process_socket_send(socket, announced, sizeof *announced) || announced->code != MPIOX_OK)
        _exit(EXIT_FAILED);
    mind_warnings(s.instance.server);
    code = mpiox_process_serve(&s.instance);
    ignore_warnings();
    shutdown(socket, SHUT_RD); /* ends the thread */
    pthread_join(thread, NULL);
    mpiox_process_end(&s.instance);
    return code == MPIOX_OK ? EXIT_FINE : EXIT_LOST;
}

/* ---- the supervisor ---------------------------------------------------------------------------------------------- */

typedef struct supervisor {
    pid_t pid;  /* of the delegate */
    int socket; /* to the delegate */
    mpiox_announcement announced;
    mpiox_segment segment;
    mpiox_cache cache;
    mpiox_liveness liveness;
    char folder[sizeof((mpiox_server_options){0}).cache_dirs];
    int32_t closed;                        /* in use of files[] */
    char (*files)[MPIOX_CACHE_PATH_BYTES]; /* of a cache on a disk: closed, and not written at the last check */
} supervisor;

/* A cache that cannot be read any more does not show its dirty bytes. */
static void remember_files(supervisor *k)
{
    const int32_t both = MPIOX_FILE_DRAINING | MPIOX_FILE_REPLICA;
    int32_t count = 0;

    if (k->files == NULL || mpiox_cache_torn(&k->cache) == MPIOX_TORN_TABLES)
        return;
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_file_record *record = &k->cache.header->files[i];

        if ((atomic_load(&record->flags) & both) == MPIOX_FILE_DRAINING)
            memcpy(k->files[count++], record->path, sizeof record->path);
    }
    if (mpiox_cache_torn(&k->cache) != MPIOX_TORN_TABLES)
        k->closed = count;
}

static void report_files(const supervisor *k)
{
    char room[MPIOX_CACHE_PATH_BYTES];

    for (int32_t i = 0; i < k->closed; i++)
        mpiox_process_notify("lost bytes: I/O delegate %d had not written all of %s", (int)k->announced.index,
                             mpiox_cache_shown_name(k->files[i], room, sizeof room));
}

/* Until the delegate has ended. A client that does not reach it has it end. Returns its status. */
static int await_end(supervisor *k, bool wanted)
{
    double ordered = 0; /* to end */
    int status = 0;

    if (!wanted)
        close(k->socket);
    while (waitpid(k->pid, &status, WNOHANG) == 0) {
        if (ordered == 0 && wanted && k->liveness.asked)
            mpiox_process_socket_send(k->socket, "S", 1);
        if (ordered == 0 && (!wanted || k->liveness.asked))
            ordered = mpiox_now();
        if (ordered > 0 && mpiox_now() > ordered + stopping_s)
            kill(k->pid, SIGKILL);
        remember_files(k);
        mpiox_liveness_step(&k->liveness, -1, STEP_MS);
    }
    return status;
}

static void map_memory(supervisor *k)
{
    mpiox_error error;

    if (mpiox_segment_attach(&k->announced.segment, &k->segment, &error) != MPIOX_OK)
        return;
    if (mpiox_cache_attach(k->segment.base, k->segment.bytes, &k->cache) != MPIOX_OK) {
        mpiox_segment_free(&k->segment);
    } else if (k->segment.on_disk) {
        mpiox_cache_guard(&k->cache, k->segment.fd);
        k->files = malloc(MPIOX_CACHE_MAX_FILES * sizeof k->files[0]);
    }
}

/* False: some of its bytes are not in the files. Clients that send a query meanwhile, and other new connections, wait.
 */
static bool rescue(supervisor *k, int status)
{
    bool whole = false, first = false;

    if (k->segment.base != NULL && !mpiox_cache_is_serving(&k->cache, true)) {
        first = mpiox_cache_rescue(&k->cache) >= 0; /* or wait until a client has done it */
        whole = !mpiox_cache_has_errors(&k->cache) && mpiox_cache_torn(&k->cache) != MPIOX_TORN_TABLES;
    }
    mpiox_process_notify("I/O delegate %d (process %ld on %s) was ended by signal %d; %s", (int)k->announced.index,
                         (long)k->pid, k->announced.host, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                         whole ? "its dirty bytes have been written for it"
                               : "not all its dirty bytes could be written for it");
    if (k->segment.on_disk && WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
        mpiox_process_notify("its cache in %s cannot be read any more: the disk has failed, or the file was truncated",
                             k->folder);
    if (first)
        mpiox_process_report_left(&k->cache);
    if (k->segment.base != NULL && mpiox_segment_is_lost(k->cache.header, k->cache.pages - (char *)k->cache.header))
        report_files(k);
    else if (!whole && k->segment.base != NULL && mpiox_cache_torn(&k->cache) != MPIOX_TORN_TABLES &&
             k->cache.header->kept[0] != '\0')
        mpiox_process_notify("the remaining bytes are in %s: mpiio-ext delegates recover", k->cache.header->kept);
    return whole;
}

/* Clients on other nodes that have lost the delegate, or will find out, go to the file now. */
static void answer_clients(supervisor *k)
{
    mpiox_liveness_answer(&k->liveness, true);
    while (k->liveness.count > 0)
        mpiox_liveness_step(&k->liveness, -1, STEP_MS);
}

/* The delegate's announcement, with the supervisor's additions. */
static void announce(supervisor *k, const mpiox_process_orders *orders)
{
    mpiox_announcement *announced = &k->announced;

    if (!mpiox_process_socket_receive(k->socket, announced, sizeof *announced, orders->seconds)) {
        memset(announced, 0, sizeof *announced);
        announced->index = orders->server.delegate;
        announced->code = mpiox_error_set(&announced->error, MPIOX_E_UNSUPPORTED, 0, -1, -1,
                                          "waiting for a delegate to start");
    }
    if (announced->code == MPIOX_OK && announced->listens)
        announced->code = mpiox_liveness_open(&orders->place, announced->link.secret, &k->liveness,
                                              &announced->liveness, &announced->error);
    if (announced->code == MPIOX_OK)
        map_memory(k);
    mpiox_process_socket_send(MPIOX_PROCESS_SOCKET, announced, sizeof *announced);
}

/* Clients on other nodes connect meanwhile. */
static bool await_verdict(supervisor *k)
{
    const double until = mpiox_now() + verdict_s;
    char verdict = 0;
    ssize_t got = -1;

    while (got < 0 && mpiox_now() < until) {
        mpiox_liveness_step(&k->liveness, MPIOX_PROCESS_SOCKET, STEP_MS);
        got = recv(MPIOX_PROCESS_SOCKET, &verdict, 1, MSG_DONTWAIT);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            got = 0;
    }
    return got == 1 && verdict == 'G';
}

static int supervise(supervisor *k, const mpiox_process_orders *orders)
{
    bool whole;
    int status;

    announce(k, orders);
    if (k->announced.code != MPIOX_OK || !await_verdict(k)) {
        await_end(k, false);
        return EXIT_FAILED;
    }
    close(MPIOX_PROCESS_SOCKET);
    mpiox_process_socket_send(k->socket, "G", 1);
    status = await_end(k, true);
    if (WIFEXITED(status))
        whole = WEXITSTATUS(status) == EXIT_FINE && (k->segment.base == NULL || !mpiox_cache_has_errors(&k->cache));
    else
        whole = rescue(k, status);
    /* else its end is answer enough, also for delegates with copies */
    if (whole && (!WIFEXITED(status) || k->liveness.asked))
        answer_clients(k);
    mpiox_liveness_close(&k->liveness);
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

int mpiox_process_supervise(void)
{
    mpiox_process_orders orders;
    supervisor k = {.segment = {.fd = -1}};
    int pair[2];

    close_others();
    ignore_warnings();
    allow_connections();
    mpiox_process_notify_begin();
    if (chdir("/") != 0 || !mpiox_process_socket_receive(MPIOX_PROCESS_SOCKET, &orders, sizeof orders, orders_s) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return EXIT_FAILED;
    mpiox_process_launcher_id_use(&orders.launcher_id);
    memcpy(k.folder, orders.server.cache_dirs, sizeof k.folder);
    MPIOX_SERVES(orders.server.delegate, "heir");
    k.pid = fork();
    if (k.pid == 0) {
        MPIOX_SERVES(orders.server.delegate, "owner");
        close(MPIOX_PROCESS_SOCKET);
        close(pair[0]);
        return serve(&orders, pair[1]);
    }
    close(pair[1]);
    k.socket = pair[0];
    return k.pid > 0 ? supervise(&k, &orders) : EXIT_FAILED;
}
