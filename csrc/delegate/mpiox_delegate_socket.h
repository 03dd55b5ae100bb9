/*
 * mpiox_delegate_socket.h - sockets over which delegates are started and watched: whole messages, with deadlines.
 */
#ifndef MPIOX_DELEGATE_SOCKET_H
#define MPIOX_DELEGATE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "mpiox_link_address.h"

/* Can it be read within `seconds`? */
bool mpiox_delegate_await(int socket, double seconds);
/* Exactly `bytes` bytes within `seconds`, or false. */
bool mpiox_delegate_receive(int socket, void *data, size_t bytes, double seconds);
bool mpiox_delegate_send(int socket, const void *data, size_t bytes);
/* The next address, from *next on, that can be connected to before `until` (mpiox_now()): a blocking socket, or -1.
 * What answers there may be somebody else: then the caller goes on with the next one. */
int mpiox_delegate_connect(const mpiox_link_address *address, int *next, double until);

#endif
