/*
 * mpiox_listener_address.h - a listening socket, and the addresses by which other hosts reach it.
 *
 * All interfaces that are up are offered, fast ones first: which of them leads to which host only an attempt shows. But
 * not the loopback, and not networks of containers and virtual machines, whose addresses exist on every host: bridges
 * (other than those with a network card, bond or VLAN in them) and interfaces whose names say so. Interfaces that are
 * named are offered in any case, and no others.
 */
#ifndef MPIOX_LISTENER_ADDRESS_H
#define MPIOX_LISTENER_ADDRESS_H

#include <stdbool.h>

#include "mpiox_error.h"
#include "mpiox_link_address.h"

enum { MPIOX_LISTENER_INTERFACES = 64 };

typedef struct mpiox_listener_place {           /* plain data */
    bool loopback;                              /* all clients are on this host: pretended nodes */
    char interfaces[MPIOX_LISTENER_INTERFACES]; /* a,b or a;b: only these are offered to others; "": as above */
} mpiox_listener_place;

/* A nonblocking socket that listens on a free port of all addresses (loopback: of 127.0.0.1 or ::1 only); *address
 * without its secret. 0 or MPIOX_E_IO (ENODEV: none of the interfaces that are named has an address here). */
int mpiox_listener_bind(const mpiox_listener_place *place, int *fd, mpiox_link_address *address, mpiox_error *error);

#endif
