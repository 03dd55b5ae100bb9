/* mpiox_rendezvous_connect.c - see mpiox_rendezvous.h. */
#include "mpiox_rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_wait.h"

static const double next_s = 0.2;                    /* until the next attempt starts beside the others */
static const double pause_s = 0.05, longest_s = 1.0; /* before all are called again; doubled each time */
static const double others_s = 1.0;                  /* for the others when one has hung up; doubled each time */

typedef struct attempt {
    mpiox_handshake handshake;
    bool greeted;   /* the hello is sent */
    int32_t filled; /* bytes of the challenge */
    uint8_t challenge[MPIOX_HANDSHAKE_CHALLENGE];
} attempt;

typedef struct attempts {
    const mpiox_rendezvous_address *address;
    mpiox_rendezvous_wish *wish;
    struct pollfd polled[MPIOX_RENDEZVOUS_ADDRESSES]; /* fd -1: not started, or over */
    attempt each[MPIOX_RENDEZVOUS_ADDRESSES];
    int started;
    int sys_errno; /* of the last failure; EACCES stays */
    double others_s;
    double over; /* one has hung up, which may have had no room: until then the others have time; 0: none has */
} attempts;

static bool make_address(const mpiox_rendezvous_address *address, int index, struct sockaddr_storage *out,
                         socklen_t *bytes)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, address->host[index], &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)address->port);
        *bytes = sizeof *v4;
        return true;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)address->port);
    *bytes = sizeof *v6;
    return inet_pton(AF_INET6, address->host[index], &v6->sin6_addr) == 1;
}

static void fail(attempts *a, int index, int code)
{
    if (a->sys_errno != EACCES)
        a->sys_errno = code;
    if (a->polled[index].fd >= 0)
        close(a->polled[index].fd);
    a->polled[index].fd = -1;
}

static void start_next(attempts *a)
{
    struct sockaddr_storage to;
    socklen_t bytes;
    const int index = a->started++;
    if (!make_address(a->address, index, &to, &bytes)) {
        fail(a, index, EINVAL);
        return;
    }
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        fail(a, index, errno);
        return;
    }
    a->polled[index] = (struct pollfd){.fd = fd, .events = POLLOUT};
    if (connect(fd, (struct sockaddr *)&to, bytes) != 0 && errno != EINPROGRESS)
        fail(a, index, errno);
}

static bool is_any_open(const attempts *a)
{
    for (int i = 0; i < a->started; i++) {
        if (a->polled[i].fd >= 0)
            return true;
    }
    return false;
}

/* ---- one attempt ------------------------------------------------------------------------------------------------- */

/* The socket is connected, or has failed. 0 or an errno. */
static int greet(const attempts *a, attempt *one, struct pollfd *polled)
{
    struct sockaddr_storage end;
    uint8_t hello[MPIOX_HANDSHAKE_HELLO];
    socklen_t bytes = sizeof end, code_bytes = sizeof(int);
    int code = 0;
    if (getsockopt(polled->fd, SOL_SOCKET, SO_ERROR, &code, &code_bytes) != 0 || code != 0)
        return code != 0 ? code : errno;
    if (getpeername(polled->fd, (struct sockaddr *)&end, &bytes) != 0)
        return errno;
    mpiox_rendezvous_tune(polled->fd);
    if (mpiox_handshake_start(a->address->secret, a->wish->purpose, &end, &one->handshake) != MPIOX_OK ||
        mpiox_handshake_hello(&one->handshake, hello) != MPIOX_OK)
        return EIO;
    if (send(polled->fd, hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
        return errno != 0 ? errno : EPIPE;
    one->greeted = true;
    polled->events = POLLIN;
    return 0;
}

/* Something has arrived. 0: the challenge is there; EAGAIN: not yet; or an errno. */
static int listen_to(attempt *one, int fd)
{
    const ssize_t got = recv(fd, one->challenge + one->filled, sizeof one->challenge - (size_t)one->filled,
                             MSG_DONTWAIT);
    if (got == 0)
        return ECONNRESET;
    if (got < 0)
        return errno == EWOULDBLOCK || errno == EINTR ? EAGAIN : errno;
    one->filled += (int32_t)got;
    return one->filled == (int32_t)sizeof one->challenge ? 0 : EAGAIN;
}

static void hung_up(attempts *a)
{
    if (a->over == 0)
        a->over = mpiox_now() + a->others_s;
}

/* True: this one has proven itself and has our answer. */
static bool advance(attempts *a, int index)
{
    attempt *one = &a->each[index];
    uint8_t answer[MPIOX_HANDSHAKE_ANSWER];
    const int fd = a->polled[index].fd;
    int code = one->greeted ? listen_to(one, fd) : greet(a, one, &a->polled[index]);
    if (code == EAGAIN || (code == 0 && one->filled == 0))
        return false;
    if (code == ECONNRESET || code == EPIPE)
        hung_up(a);
    if (code == 0 && mpiox_handshake_answer(&one->handshake, one->challenge, a->wish->token, answer) != MPIOX_OK)
        code = EACCES;
    if (code == 0 && send(fd, answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer) {
        hung_up(a);
        code = errno != 0 ? errno : EPIPE;
    }
    if (code == 0)
        return true;
    fail(a, index, code);
    return false;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* The first attempt that proves itself; -1: none did. A listener that never answers does not prevent another call of
 * one that has hung up. */
static int race(attempts *a, double deadline)
{
    double next = 0; /* when another attempt starts */
    for (;;) {
        const double now = mpiox_now();
        const bool more = a->started < a->address->count && a->started < MPIOX_RENDEZVOUS_ADDRESSES;
        const double end = a->over > 0 && a->over < deadline ? a->over : deadline;
        if (now >= end) {
            a->sys_errno = a->sys_errno != 0 ? a->sys_errno : ETIMEDOUT;
            return -1;
        }
        if (more && (now >= next || !is_any_open(a))) {
            start_next(a);
            next = now + next_s;
            continue;
        }
        if (!is_any_open(a))
            return -1;
        const double until = more && next < end ? next : end;
        if (poll(a->polled, (nfds_t)a->started, (int)((until - now) * 1e3) + 1) <= 0)
            continue;
        for (int i = 0; i < a->started; i++) {
            if (a->polled[i].fd >= 0 && a->polled[i].revents != 0 && advance(a, i))
                return i;
        }
    }
}

/* Receive the listener's welcome after admission. 0 or an errno; ECONNRESET: it has hung up. */
static int receive_welcome(int fd, mpiox_rendezvous_wish *wish, double deadline)
{
    size_t filled = 0;
    while (filled < wish->welcome_bytes) {
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        const double left = deadline - mpiox_now();
        if (left <= 0 || poll(&wanted, 1, (int)(left * 1e3) + 1) == 0)
            return ETIMEDOUT;
        const ssize_t got = recv(fd, (char *)wish->welcome + filled, wish->welcome_bytes - filled, MSG_DONTWAIT);
        if (got == 0)
            return ECONNRESET;
        if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return errno;
        filled += got > 0 ? (size_t)got : 0;
    }
    return mpiox_rendezvous_set_blocking(fd) ? 0 : errno;
}

/* Call all addresses once. A socket or -1. */
static int call_once(attempts *a, double deadline)
{
    for (int i = 0; i < MPIOX_RENDEZVOUS_ADDRESSES; i++)
        a->polled[i].fd = -1;
    const int found = race(a, deadline);
    int fd = found >= 0 ? a->polled[found].fd : -1;
    for (int i = 0; i < a->started; i++) {
        if (i != found && a->polled[i].fd >= 0)
            close(a->polled[i].fd);
    }
    if (fd >= 0) {
        const int code = receive_welcome(fd, a->wish, deadline);
        mpiox_handshake_session(&a->each[found].handshake, a->wish->session);
        if (code != 0) {
            if (code == ECONNRESET)
                hung_up(a);
            fail(a, found, code);
            fd = -1;
        }
    }
    for (int i = 0; i < a->started; i++)
        mpiox_handshake_wipe(&a->each[i].handshake);
    return fd;
}

int mpiox_rendezvous_connect(const mpiox_rendezvous_address *address, double seconds, mpiox_rendezvous_wish *wish,
                             mpiox_error *error)
{
    const double deadline = mpiox_now() + seconds;
    double pause = pause_s, others = others_s;
    for (;;) {
        attempts a = {.address = address, .wish = wish, .others_s = others};
        const int fd = call_once(&a, deadline);
        if (fd >= 0)
            return fd;
        if (a.over == 0 || mpiox_now() + pause >= deadline)
            return mpiox_error_set(error, MPIOX_E_IO, a.sys_errno, -1, -1,
                                   a.sys_errno == EACCES
                                       ? "connecting to a delegate: the process that answers does not know the secret"
                                       : "connecting to a delegate");
        poll(NULL, 0, (int)(pause * 1e3));
        others *= 2;
        pause = 2 * pause < longest_s ? 2 * pause : longest_s;
    }
}
