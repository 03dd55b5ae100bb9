/*
 * mpiox_process_socket.h - sockets over which delegates are started and watched: whole messages, with deadlines.
 */
#ifndef MPIOX_PROCESS_SOCKET_H
#define MPIOX_PROCESS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* Can it be read within `seconds`? */
bool mpiox_process_socket_await(int socket, double seconds);
/* Exactly `bytes` bytes within `seconds`, or false. */
bool mpiox_process_socket_receive(int socket, void *data, size_t bytes, double seconds);
bool mpiox_process_socket_send(int socket, const void *data, size_t bytes);

#endif
