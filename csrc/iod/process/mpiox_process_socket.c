/* mpiox_process_socket.c - see mpiox_process_socket.h. */
#include "mpiox_process_socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpiox_wait.h"

/* Also when signals come. */
static bool await(int socket, short events, double seconds)
{
    struct pollfd poll_for = {.fd = socket, .events = events};
    const double until = mpiox_now() + seconds;
    double left = seconds;

    do {
        const int found = poll(&poll_for, 1, left > 1 ? 1000 : left > 0 ? (int)(left * 1000) + 1 : 0);

        if (found > 0 || (found < 0 && errno != EINTR))
            return found > 0;
        left = until - mpiox_now();
    } while (left > 0);
    return false;
}

bool mpiox_process_socket_await(int socket, double seconds)
{
    return await(socket, POLLIN, seconds);
}

bool mpiox_process_socket_receive(int socket, void *data, size_t bytes, double seconds)
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

bool mpiox_process_socket_send(int socket, const void *data, size_t bytes)
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
