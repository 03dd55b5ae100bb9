/* mpiox_link_connect.c - see mpiox_link_connect.h. */
#include "mpiox_link_connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_link_stream.h"

static const double next_s = 0.2;  /* until the next attempt starts beside the others */
static const double hello_s = 2.0; /* for an answer to the hello, at most */

typedef struct attempts {
    const mpiox_link_address *address;
    struct pollfd polled[MPIOX_LINK_ADDRESSES]; /* fd -1: not started, or over */
    int started;
    int sys_errno; /* of the last failure */
} attempts;

static bool make_address(const mpiox_link_address *address, int index, struct sockaddr_storage *out, socklen_t *bytes)
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

static void start_next(attempts *a)
{
    struct sockaddr_storage to;
    socklen_t bytes;
    const int index = a->started++;
    if (!make_address(a->address, index, &to, &bytes)) {
        a->sys_errno = EINVAL;
        return;
    }
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&to, bytes) != 0 && errno != EINPROGRESS)) {
        a->sys_errno = errno;
        if (fd >= 0)
            close(fd);
        return;
    }
    a->polled[index] = (struct pollfd){.fd = fd, .events = POLLOUT};
}

static bool is_any_open(const attempts *a)
{
    for (int i = 0; i < a->started; i++) {
        if (a->polled[i].fd >= 0)
            return true;
    }
    return false;
}

/* Say hello on a connected socket and hear the answer. 0 or an errno. */
static int greet(int fd, const mpiox_link_hello *hello, double deadline, mpiox_link_message *welcome)
{
    const mpiox_link_message head = {
        .magic = MPIOX_LINK_MAGIC, .version = MPIOX_LINK_VERSION, .op = MPIOX_LINK_HELLO, .bytes = sizeof *hello};
    char bytes[sizeof head + sizeof *hello];
    size_t filled = 0;
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, hello, sizeof *hello);
    if (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) != (ssize_t)sizeof bytes)
        return errno != 0 ? errno : EPIPE;
    while (filled < sizeof *welcome) {
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        const double left = deadline - mpiox_now();
        if (left <= 0 || (poll(&wanted, 1, (int)(left * 1e3) + 1) == 0))
            return ETIMEDOUT;
        const ssize_t got = recv(fd, (char *)welcome + filled, sizeof *welcome - filled, MSG_DONTWAIT);
        if (got == 0)
            return EACCES; /* closed: the secret is not its own, or it is leaving */
        if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return errno;
        filled += got > 0 ? (size_t)got : 0;
    }
    if (welcome->magic != MPIOX_LINK_MAGIC || welcome->version != MPIOX_LINK_VERSION ||
        welcome->op != MPIOX_LINK_HELLO || welcome->bytes != 0)
        return EPROTO;
    return welcome->result == MPIOX_OK ? 0 : EBUSY;
}

static bool finish(attempts *a, int index, const mpiox_link_hello *hello, double deadline, mpiox_link_message *welcome)
{
    const int fd = a->polled[index].fd;
    const double latest = mpiox_now() + hello_s;
    int code = 0;
    socklen_t bytes = sizeof code;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) != 0)
        code = errno;
    if (code == 0) {
        mpiox_link_stream_tune(fd);
        code = greet(fd, hello, latest < deadline ? latest : deadline, welcome);
    }
    if (code == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0)
        code = errno;
    if (code == 0)
        return true;
    a->sys_errno = code;
    close(fd);
    a->polled[index].fd = -1;
    return false;
}

/* The first attempt that is admitted; -1: none was. */
static int try_all(attempts *a, const mpiox_link_hello *hello, double deadline, mpiox_link_message *welcome)
{
    double next = 0; /* when another attempt starts */
    for (;;) {
        const double now = mpiox_now();
        const bool more = a->started < a->address->count && a->started < MPIOX_LINK_ADDRESSES;
        if (now >= deadline) {
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
        const double until = more && next < deadline ? next : deadline;
        if (poll(a->polled, (nfds_t)a->started, (int)((until - now) * 1e3) + 1) <= 0)
            continue;
        for (int i = 0; i < a->started; i++) {
            if (a->polled[i].fd >= 0 && a->polled[i].revents != 0 && finish(a, i, hello, deadline, welcome))
                return i;
        }
    }
}

int mpiox_link_connect(const mpiox_link_address *address, double seconds, int64_t kind, int64_t token,
                       mpiox_link_message *welcome, mpiox_error *error)
{
    const mpiox_link_hello hello = {.secret = {address->secret[0], address->secret[1]}, .kind = kind, .token = token};
    attempts a = {.address = address};
    for (int i = 0; i < MPIOX_LINK_ADDRESSES; i++)
        a.polled[i].fd = -1;
    const int found = try_all(&a, &hello, mpiox_now() + seconds, welcome);
    const int fd = found >= 0 ? a.polled[found].fd : -1;
    for (int i = 0; i < a.started; i++) {
        if (i != found && a.polled[i].fd >= 0)
            close(a.polled[i].fd);
    }
    if (fd < 0)
        return mpiox_error_set(error, MPIOX_E_IO, a.sys_errno, -1, -1, "connecting to a delegate");
    return fd;
}
