/*
 * test_death.c - the other side goes: a delegate's process is killed or stopped, a delegate ends, a listener stops, a
 * client goes without saying so.
 *
 * Nobody must hang: everything is awaited without a limit of its own, the caller of this program has one.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "links.h"
#include "mpiox_link_core.h"

enum { PAGE = 4096 };

/* A process of this test's, which does not outlive it, stopped or not. */
static pid_t fork_child(void)
{
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(4);
    return pid;
}

/* ---- a delegate in a process of its own -------------------------------------------------------------------------- */

typedef struct remote {
    pid_t pid;
    mpiox_rendezvous_address address;
} remote;

static void serve(int out)
{
    static mock delegate;
    mpiox_remote *listener;
    mpiox_rendezvous_address address;
    mock_start(&delegate, PAGE, 50, 0, 1);
    atomic_store(&delegate.flush_ms, 1000000);
    if (start_listener(&delegate.cache, &listener, &address, NULL) != MPIOX_OK ||
        write(out, &address, sizeof address) != (ssize_t)sizeof address)
        _exit(3);
    for (;;)
        pause();
}

static remote start_remote(void)
{
    remote r;
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    r.pid = fork_child();
    if (r.pid == 0)
        serve(ends[1]);
    close(ends[1]);
    if (read(ends[0], &r.address, sizeof r.address) != (ssize_t)sizeof r.address)
        abort();
    close(ends[0]);
    return r;
}

static void end_remote(const remote *r)
{
    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
}

static void await_death(const mpiox_link *link)
{
    while (mpiox_link_is_alive(link))
        mock_sleep(1);
}

static void *flush(void *context)
{
    mpiox_slot slot = {.op = MPIOX_OP_FLUSH, .question.flush = {0, 1}};
    return (void *)(intptr_t)mpiox_link_call(context, &slot);
}

static int count_extents(void *context, const mpiox_link_access *access)
{
    *(int64_t *)context += access->length;
    return MPIOX_OK;
}

/* While one thread waits for an answer, another one for its turn, and collected writes are under way. */
static void check_killed(void)
{
    const remote r = start_remote();
    pthread_t threads[2];
    int64_t collected = 0, returned = 0;
    station s = {.link = link_to(&r.address)};
    s.file = open_over(s.link, 1, 1);
    mpiox_link *writer = link_to(&r.address);
    CHECK_EQUAL(mpiox_link_set_write_behind(writer, 4096), MPIOX_OK);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, flush, s.link), 0);
    mock_sleep(50);
    kill(r.pid, SIGSTOP); /* so that the writes stay on their way */
    char data[1000] = {0};
    const int16_t owner[] = {0};
    mpiox_link_access access = {.file = s.file,
                                .write = true,
                                .length = sizeof data,
                                .memory.base = data,
                                .unit_bytes = PAGE,
                                .ranges = 1,
                                .owner = owner};
    for (; collected < 7 * (int64_t)sizeof data; collected += (int64_t)sizeof data, access.position += sizeof data)
        CHECK_EQUAL(mpiox_link_access_pages(writer, &access, NULL), MPIOX_OK);
    end_remote(&r);
    await_death(s.link);
    await_death(writer);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        CHECK_EQUAL((intptr_t)result, MPIOX_E_UNSUPPORTED);
    }
    CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, NULL), MPIOX_E_UNSUPPORTED);
    CHECK_EQUAL(mpiox_link_drain(writer, NULL), MPIOX_E_UNSUPPORTED);
    CHECK_EQUAL(mpiox_link_take_undelivered(writer, count_extents, &returned), MPIOX_OK);
    CHECK_EQUAL(returned, collected);
    CHECK_EQUAL(mpiox_link_drain(writer, NULL), MPIOX_OK); /* nothing is left */
    mpiox_link_close(s.link);
    mpiox_link_close(writer);
}

/* Killed in the middle of transfers, at any moment. */
static void *transfer(void *context)
{
    mpiox_link *link = context;
    static _Thread_local char data[40 * PAGE];
    const int16_t owner[] = {0};
    int code = MPIOX_OK;
    for (int i = 0; code == MPIOX_OK; i++) {
        const mpiox_link_access access = {.write = i % 2 == 0,
                                          .beyond = true,
                                          .length = sizeof data,
                                          .memory.base = data,
                                          .unit_bytes = PAGE,
                                          .ranges = 1,
                                          .owner = owner};
        code = mpiox_link_access_pages(link, &access, NULL);
    }
    return (void *)(intptr_t)code;
}

static void check_killed_at_work(void)
{
    uint64_t state = (uint64_t)getpid() | 1;
    for (int i = 0; i < 8; i++) {
        const remote r = start_remote();
        pthread_t thread;
        mpiox_link *link = link_to(&r.address);
        open_over(link, 1, 1);
        CHECK_EQUAL(pthread_create(&thread, NULL, transfer, link), 0);
        nanosleep(&(struct timespec){0, mock_pick(&state, 0, 30000000)}, NULL);
        end_remote(&r);
        void *result;
        pthread_join(thread, &result);
        CHECK_EQUAL((intptr_t)result, MPIOX_E_UNSUPPORTED);
        await_death(link);
        mpiox_link_close(link);
    }
}

/* A peer that takes what is sent and answers nothing. The link is found dead (by its heartbeat) meanwhile. */
typedef struct mute {
    mpiox_link *link;
    int fd;
} mute;

static void *listen_only(void *context)
{
    const mute *m = context;
    static char received[1 << 16];
    int waiting = 0;
    while (waiting < 4096 && ioctl(m->fd, FIONREAD, &waiting) == 0)
        mock_sleep(1);
    mock_sleep(20); /* the client fills the buffers, and waits */
    atomic_store(&m->link->alive, false);
    while (read(m->fd, received, sizeof received) > 0)
        continue;
    return NULL;
}

/* A write that was sent and has no answer has not been done, also when the death was noticed in between. */
static void check_dead_before_the_answer(void)
{
    static char data[4 << 20];
    const int16_t owner[] = {0};
    mute m = {.link = mpiox_link_new()};
    const mpiox_link_access access = {
        .write = true, .length = sizeof data, .memory.base = data, .unit_bytes = PAGE, .ranges = 1, .owner = owner};
    pthread_t thread;
    int ends[2];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    mpiox_link_stream_init(&m.link->stream, ends[0]);
    atomic_store(&m.link->alive, true);
    m.fd = ends[1];
    CHECK_EQUAL(pthread_create(&thread, NULL, listen_only, &m), 0);
    CHECK_EQUAL(mpiox_link_access_pages(m.link, &access, NULL), MPIOX_E_UNSUPPORTED);
    mpiox_link_close(m.link); /* and its end of the connection */
    pthread_join(thread, NULL);
    close(ends[1]);
}

/* A process that does not run is not dead. */
static void check_stopped(void)
{
    const remote r = start_remote();
    mpiox_link *link = link_to(&r.address);
    mpiox_slot slot = {.op = MPIOX_OP_PING};
    kill(r.pid, SIGSTOP);
    mock_sleep(3000);
    CHECK_EQUAL(mpiox_link_is_alive(link), true);
    kill(r.pid, SIGCONT);
    CHECK_EQUAL(mpiox_link_call(link, &slot), MPIOX_OK);
    mpiox_link_close(link);
    end_remote(&r);
}

/* ---- within a process -------------------------------------------------------------------------------------------- */

static void check_ended(void)
{
    station s;
    station_start(&s, PAGE, 10, 0, 1, 1);
    atomic_store(&s.delegate.stop, true);
    await_death(s.link);
    station_stop(&s);
}

static void check_listener_stopped(void)
{
    station s;
    mpiox_slot slot = {.op = MPIOX_OP_PING};
    station_start(&s, PAGE, 10, 0, 1, 1);
    mpiox_link *other = link_to(&s.address);
    mpiox_remote_stop(s.listener);
    await_death(s.link);
    CHECK_EQUAL(mpiox_link_call(other, &slot), MPIOX_E_UNSUPPORTED);
    CHECK_EQUAL(atomic_load(&s.delegate.detached), 2);
    s.listener = NULL;
    mpiox_link_close(other);
    station_stop(&s);
}

/* A client that is killed leaves the delegate, too. */
static void check_client_killed(void)
{
    station s;
    int ends[2], died;
    if (pipe(ends) != 0)
        abort();
    const pid_t pid = fork_child(); /* before there are threads */
    if (pid == 0) {
        mpiox_rendezvous_address address;
        mpiox_link *link;
        if (read(ends[0], &address, sizeof address) == (ssize_t)sizeof address &&
            mpiox_link_open(&address, 20, &link, NULL) == MPIOX_OK)
            pause();
        _exit(1);
    }
    station_start(&s, PAGE, 10, 0, 1, 1);
    CHECK_EQUAL(write(ends[1], &s.address, sizeof s.address), (ssize_t)sizeof s.address);
    while (mpiox_ring_clients(&s.delegate.cache, &died) < 2)
        mock_sleep(1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    while (mpiox_ring_clients(&s.delegate.cache, &died) > 1)
        mock_sleep(1);
    CHECK_EQUAL(atomic_load(&s.delegate.detached), 1);
    close(ends[0]);
    close(ends[1]);
    station_stop(&s);
}

/* Clients that are stopped half way through an access keep neither memory nor turns from the others. */
static void check_client_stopped(void)
{
    enum { CLIENTS = 4, ACCESSES = 30 };
    pid_t pids[CLIENTS];
    int ends[2];
    station s;
    static char data[100 * PAGE];
    if (pipe(ends) != 0)
        abort();
    for (int i = 0; i < CLIENTS; i++) {
        pids[i] = fork_child();
        if (pids[i] == 0) {
            mpiox_rendezvous_address address;
            if (read(ends[0], &address, sizeof address) != (ssize_t)sizeof address)
                _exit(1);
            const station mine = {.link = link_to(&address)};
            for (;;) {
                mpiox_link_access access = access_of(&mine, 1, PAGE);
                access.write = i % 2 == 0;
                access.origin = (i + 1) * (int64_t)sizeof data; /* bytes of its own: MPI orders nothing else */
                access.length = sizeof data;
                access.memory.base = data;
                if (mpiox_link_access_pages(mine.link, &access, NULL) != MPIOX_OK)
                    _exit(0);
            }
        }
    }
    station_start(&s, PAGE, 100 * (CLIENTS + 1), 0, 1, 1);
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQUAL(write(ends[1], &s.address, sizeof s.address), (ssize_t)sizeof s.address);
    mock_sleep(200);
    for (int i = 0; i < CLIENTS; i++) {
        mock_sleep(3);
        kill(pids[i], SIGSTOP);
    }
    for (int i = 0; i < ACCESSES; i++) {
        mpiox_link_access access = access_of(&s, 1, PAGE);
        access.write = i % 2 == 0;
        access.length = sizeof data;
        access.memory.base = data;
        CHECK_EQUAL(mpiox_link_access_pages(s.link, &access, NULL), MPIOX_OK);
    }
    for (int i = 0; i < CLIENTS; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    close(ends[0]);
    close(ends[1]);
    station_stop(&s);
}

/* MPIOX_NETWORK_FAULT: the connection breaks after so many bytes, whatever is under way. */
static void check_dropped(void)
{
    static char data[100 * PAGE];
    for (int64_t after = 1; after < 3000000; after = after * 3 + 11) {
        char text[64];
        station s = {.file = 0};
        mpiox_error error = {.code = 0};
        snprintf(text, sizeof text, "drop_after=%lld", (long long)after);
        setenv("MPIOX_NETWORK_FAULT", text, 1);
        mock_start(&s.delegate, PAGE, 200, 0, 1);
        CHECK_EQUAL(start_listener(&s.delegate.cache, &s.listener, &s.address, NULL), MPIOX_OK);
        s.link = link_to(&s.address); /* the hello does not count */
        mpiox_slot slot = {.op = MPIOX_OP_OPEN, .question.open = {3, 1, 1}, .text = "/file"};
        int code = mpiox_link_call(s.link, &slot);
        for (int i = 0; i < 20 && code == MPIOX_OK; i++) {
            mpiox_link_access access = access_of(&s, 1, PAGE);
            access.write = i % 2 == 0;
            access.length = sizeof data;
            access.memory.base = data;
            code = mpiox_link_access_pages(s.link, &access, &error);
        }
        CHECK_EQUAL(code, MPIOX_E_UNSUPPORTED);
        await_death(s.link);
        station_stop(&s);
    }
    mpiox_link *link;
    mpiox_error error;
    const mpiox_rendezvous_address nowhere = {.count = 0};
    setenv("MPIOX_NETWORK_FAULT", "delay=3", 1); /* no such key */
    CHECK_EQUAL(mpiox_link_open(&nowhere, 1, &link, &error), MPIOX_E_ARG);
    unsetenv("MPIOX_NETWORK_FAULT");
    CHECK_EQUAL(mpiox_link_open(&nowhere, 1, &link, &error), MPIOX_E_IO);
}

int main(void)
{
    check_client_killed();
    check_client_stopped();
    check_killed();
    check_killed_at_work();
    check_dead_before_the_answer();
    check_stopped();
    check_ended();
    check_listener_stopped();
    check_dropped();
    return check_exit();
}
