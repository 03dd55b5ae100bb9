/*
 * mpiox_link_connect.h - a connection to one of several addresses that admits us.
 *
 * Problem.   A host has addresses that lead nowhere from here, or to another host (private bridges have the same
 *            address everywhere). Trying one after the other until each times out takes seconds.
 * Algorithm. Attempts start in the order of the addresses, the next one as soon as the last one has failed, or after
 *            0.2 s. The first that is connected says hello; if it is not answered as it should be, the others go on.
 * Source.    After "Happy Eyeballs", RFC 8305, section 5.
 */
#ifndef MPIOX_LINK_CONNECT_H
#define MPIOX_LINK_CONNECT_H

#include "mpiox_link_address.h"
#include "mpiox_link_message.h"

/* Blocking, at most `seconds`. Returns a (blocking) socket with *welcome, the answer to the hello; or MPIOX_E_IO with
 * *error. kind and token as in mpiox_link_hello. */
int mpiox_link_connect(const mpiox_link_address *address, double seconds, int64_t kind, int64_t token,
                       mpiox_link_message *welcome, mpiox_error *error);

#endif
