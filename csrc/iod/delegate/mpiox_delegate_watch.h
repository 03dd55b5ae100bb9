/*
 * mpiox_delegate_watch.h - clients on other nodes ask what has become of a delegate that they do not reach any more.
 *
 * Problem.   A client whose connection to a delegate breaks goes to the file itself from then on. It must not begin
 *            before the delegate's pages are in the file, or they would come later and be older than what it writes.
 *            And a delegate that is still there must not go on to cache for others what this client changes.
 * Algorithm. Beside the delegate somebody keeps watch: its keeper, or in thread mode a thread of the hosting rank. Each
 *            client on another node holds a connection to the watch. When it loses the delegate it asks; then the watch
 *            has the delegate end, if it is still there, and answers when its pages are in the file, or when it knows
 *            that some of them cannot be written.
 * Guarantee. The first answer means that. The second, and none, when the watch is gone as well (the host has vanished),
 *            mean that what the delegate held may be lost.
 */
#ifndef MPIOX_DELEGATE_WATCH_H
#define MPIOX_DELEGATE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_admission.h"
#include "mpiox_link_address.h"
#include "mpiox_listener_address.h"

/* ---- beside the delegate; one thread ----------------------------------------------------------------------------- */

typedef struct mpiox_watch_peer mpiox_watch_peer;

typedef struct mpiox_watch { /* start from {.listener = -1} */
    int listener;
    mpiox_admission *admission;
    int32_t count, room;
    mpiox_watch_peer *peers; /* [count]; each has proven that it is the job's */
    bool asked, answered, whole;
} mpiox_watch;

/* *address: where, and `secret`, which admits. 0 or MPIOX_E_IO. */
int mpiox_watch_open(const mpiox_listener_place *place, const uint64_t *secret, mpiox_watch *watch,
                     mpiox_link_address *address, mpiox_error *error);
/* Wait for peers and what they say, for so long at most, or until `also` (-1: none) can be read. Ten times a second, so
 * that strangers keep their deadlines. watch->asked: one of the peers does not reach the delegate. */
void mpiox_watch_step(mpiox_watch *watch, int also, int milliseconds);
/* The pages are in the file (whole), or some cannot be written: tell those who have asked, and who will ask. */
void mpiox_watch_answer(mpiox_watch *watch, bool whole);
void mpiox_watch_close(mpiox_watch *watch);

/* ---- clients on other nodes -------------------------------------------------------------------------------------- */

/* A descriptor in *fd. Blocking, `seconds` at most. 0 or MPIOX_E_IO. */
int mpiox_watch_connect(const mpiox_link_address *address, double seconds, int *fd, mpiox_error *error);
/* Ask, and wait for the answer. False: pages could not be written, or the watch is gone. Blocking. */
bool mpiox_watch_ask(int fd);

#endif
