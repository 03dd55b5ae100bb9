/*
 * mpiox_delegate_socket.h - sockets over which delegates are started and watched: whole messages, with deadlines.
 */
#ifndef MPIOX_DELEGATE_SOCKET_H
#define MPIOX_DELEGATE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* Can it be read within `seconds`? */
bool mpiox_delegate_await(int socket, double seconds);
/* Exactly `bytes` bytes within `seconds`, or false. */
bool mpiox_delegate_receive(int socket, void *data, size_t bytes, double seconds);
bool mpiox_delegate_send(int socket, const void *data, size_t bytes);

#endif
