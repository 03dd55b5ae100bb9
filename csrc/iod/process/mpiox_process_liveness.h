/*
 * mpiox_process_liveness.h - clients on other nodes query the state of a delegate that they do not reach any more.
 *
 * Problem.   A client whose connection to a delegate breaks accesses the file itself from then on. The client must not
 *            begin before the delegate's pages are in the file, or these older bytes would overwrite its own. And a
 *            delegate that still lives must not continue to cache, for other clients, bytes that this client changes.
 * Algorithm. Another process or thread answers for the delegate: its supervisor, or in thread mode a thread of the
 *            hosting rank. Each client on another node has a liveness connection. When it loses the delegate it sends a
 *            query; the answering side ends the delegate, if it still lives, and answers when the delegate's pages are
 *            in the file, or when some of them cannot be written.
 * Guarantee. The first answer means that all pages are in the file. The second, and no answer (the host is lost), mean
 *            that the delegate's bytes may be lost.
 */
#ifndef MPIOX_PROCESS_LIVENESS_H
#define MPIOX_PROCESS_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_rendezvous.h"

/* ---- beside the delegate; one thread ----------------------------------------------------------------------------- */

typedef struct mpiox_liveness_peer mpiox_liveness_peer;

typedef struct mpiox_liveness {   /* start from {0} */
    mpiox_rendezvous *rendezvous; /* the listener; owned */
    int32_t count, room;          /* peers; room in the array */
    mpiox_liveness_peer *peers;   /* [count], owned; each has proven that it is the job's */
    /* asked: a peer has sent a query; answered, whole: mpiox_liveness_answer() was called, and its argument */
    bool asked, answered, whole;
} mpiox_liveness;

/* *address: where, and `secret`, which admits. 0 or MPIOX_E_IO. */
int mpiox_liveness_open(const mpiox_rendezvous_place *place, const uint64_t *secret, mpiox_liveness *liveness,
                        mpiox_rendezvous_address *address, mpiox_error *error);
/* Wait for peers and their words, for at most this time, or until `also` (-1: none) can be read. Call it ten times a
 * second, so that unauthenticated peers keep their deadlines. liveness->asked: one of the peers does not reach the
 * delegate. */
void mpiox_liveness_step(mpiox_liveness *liveness, int also, int milliseconds);
/* The pages are in the file (whole), or some cannot be written: answer present and later queries with that. */
void mpiox_liveness_answer(mpiox_liveness *liveness, bool whole);
void mpiox_liveness_close(mpiox_liveness *liveness);

/* ---- clients on other nodes -------------------------------------------------------------------------------------- */

/* A descriptor in *fd. Blocking, `seconds` at most. 0 or MPIOX_E_IO. */
int mpiox_liveness_connect(const mpiox_rendezvous_address *address, double seconds, int *fd, mpiox_error *error);
/* Send a query, and wait for the answer. False: pages could not be written, or the answering side is gone, too.
 * Blocking. */
bool mpiox_liveness_ask(int fd);

#endif
