/*
 * mpiox_process_peers.h - other delegates, of whose files a delegate keeps copies: are they still there?
 *
 * Problem.   If another delegate is lost with its node, its dirty bytes are written from copies, also if no rank is
 *            left that could detect the loss.
 * Algorithm. A thread has a connection to the liveness service of each of them (mpiox_process_liveness.h), and never
 *            sends anything. The kernel ends the connection when the processes of that service die. After some seconds
 *            the thread gives up an address that acknowledges nothing.
 * Guarantee. A lost delegate is always detected. A living delegate may seem lost if its host is cut off: the bytes that
 *            are then written from copies are those that the delegate writes itself. Private to csrc/iod/process; any
 *            thread.
 */
#ifndef MPIOX_PROCESS_PEERS_H
#define MPIOX_PROCESS_PEERS_H

#include "mpiox_rendezvous.h"
#include "mpiox_ring.h"

typedef struct mpiox_process_peers mpiox_process_peers;

/* Of so many delegates none is known yet. NULL: no memory. */
mpiox_process_peers *mpiox_process_peers_new(int32_t delegates);
/* See mpiox_server_peers. MPIOX_OP_PEER: returns the answer's result. A peer that is known already stays. */
int mpiox_process_peers_name(void *peers, const mpiox_slot *slot);
/* For how many seconds has it been gone? 0: it is there, or is not known to be gone. NULL-safe. */
double mpiox_process_peers_gone_s(void *peers, int32_t delegate);
void mpiox_process_peers_free(mpiox_process_peers *peers); /* NULL-safe; may wait for a connection that is being made */

#endif
