/*
 * mpiox_listener_address.h - a listening socket, and the addresses by which other hosts reach it.
 *
 * All interfaces that are up are offered: which of them leads to which host only an attempt shows. Fast ones come
 * first, bridges of containers and virtual machines last; of the loopback nothing is said to others.
 */
#ifndef MPIOX_LISTENER_ADDRESS_H
#define MPIOX_LISTENER_ADDRESS_H

#include <stdbool.h>

#include "mpiox_error.h"
#include "mpiox_link_address.h"

/* A nonblocking socket that listens on a free port of all addresses (loopback: of 127.0.0.1 or ::1 only); *address
 * without its secret. 0 or MPIOX_E_IO. */
int mpiox_listener_bind(bool loopback, int *fd, mpiox_link_address *address, mpiox_error *error);

#endif
