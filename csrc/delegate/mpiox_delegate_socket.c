/* mpiox_delegate_socket.c - see mpiox_delegate_socket.h. */
#include "mpiox_delegate_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_wait.h"

static const double try_s = 2; /* for one address */

/* Also when signals come. */
static bool await(int socket, short events, double seconds)
{
    struct pollfd poll_for = {.fd = socket, .events = events};
    const double until = mpiox_now() + seconds;
    double left = seconds;

    do {
        if (poll(&poll_for, 1, left > 1 ? 1000 : left > 0 ? (int)(left * 1000) + 1 : 0) > 0)
            return true;
        left = until - mpiox_now();
    } while (left > 0);
    return false;
}

bool mpiox_delegate_await(int socket, double seconds)
{
    return await(socket, POLLIN, seconds);
}

bool mpiox_delegate_receive(int socket, void *data, size_t bytes, double seconds)
{
    const double until = mpiox_now() + seconds;
    char *at = data;

    while (bytes > 0) {
        ssize_t got;

        if (!await(socket, POLLIN, until - mpiox_now()))
            return false;
        got = read(socket, at, bytes);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return false;
        at += got > 0 ? got : 0;
        bytes -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool mpiox_delegate_send(int socket, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return false;
        at += sent > 0 ? sent : 0;
        bytes -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static int connect_to(const char *host, int port, double seconds)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    socklen_t bytes = sizeof(int);
    char service[12];
    int fd, failed = 0;

    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &hints, &found) != 0)
        return -1;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0 &&
        (errno != EINPROGRESS || !await(fd, POLLOUT, seconds) ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &bytes) != 0 || failed != 0)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    freeaddrinfo(found);
    return fd;
}

int mpiox_delegate_connect(const mpiox_link_address *address, int *next, double until)
{
    int fd = -1;

    while (fd < 0 && *next < address->count) {
        const double left = until - mpiox_now();

        if (left <= 0)
            return -1;
        fd = connect_to(address->host[(*next)++], address->port, left < try_s ? left : try_s);
    }
    return fd;
}
