/*
 * mpiox_link_connect.h - a connection to one of several addresses that proves to be the one that we look for.
 *
 * Problem.   A host has addresses that lead nowhere from here, or to another host, and anybody may listen there. Trying
 *            one after the other until each times out takes seconds.
 * Algorithm. Attempts start in the order of the addresses, the next one as soon as the last one has failed, or after
 *            0.2 s; they go on side by side. Each that is connected sends the hello of mpiox_handshake.h. The first
 *            that proves itself gets the answer; the others are closed. Whoever answers wrongly is dropped. One that
 *            hangs up may have had no room for us: all are called again, after a pause, when the others have had a
 *            second (twice as long each time), until the time is over.
 * Guarantee. Nothing but a random number is sent to somebody who has not proven himself.
 * Source.    After "Happy Eyeballs", RFC 8305, section 5.
 */
#ifndef MPIOX_LINK_CONNECT_H
#define MPIOX_LINK_CONNECT_H

#include <stddef.h>

#include "mpiox_handshake.h"
#include "mpiox_link_address.h"

typedef struct mpiox_link_wish { /* what is wanted, and what comes of it */
    mpiox_handshake_protocol protocol;
    mpiox_handshake_wish wish;
    void *welcome; /* the first bytes that the listener sends when it has admitted us */
    size_t welcome_bytes;
    uint8_t session[MPIOX_HANDSHAKE_KEY]; /* set */
} mpiox_link_wish;

/* Blocking, at most `seconds`. Returns a (blocking) socket with the welcome filled in and the session's key set; or
 * MPIOX_E_IO with *error: errno EACCES: somebody answers, who does not know the secret. */
int mpiox_link_connect(const mpiox_link_address *address, double seconds, mpiox_link_wish *request, mpiox_error *error);

#endif
