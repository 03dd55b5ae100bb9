/*
 * mpiox_process_peers.h - other delegates, of whose files a delegate keeps copies: are they still there?
 *
 * Problem.   What another delegate has not written when it is lost with its node is written from copies, also when no
 *            rank is left that could find out.
 * Algorithm. A thread holds a connection to the liveness service beside each of them (mpiox_process_liveness.h), and
 *            never says anything. The kernel ends it when those processes die; an address that acknowledges nothing is
 *            given up after some seconds.
 * Guarantee. Who is not there any more is found to be gone. Who is there may be taken for gone when its host is cut
 *            off: what is written then is what it writes itself. Private to csrc/iod/process; any thread.
 */
#ifndef MPIOX_PROCESS_PEERS_H
#define MPIOX_PROCESS_PEERS_H

#include "mpiox_rendezvous.h"
#include "mpiox_ring.h"

typedef struct mpiox_process_peers mpiox_process_peers;

/* Of so many delegates none is known yet. NULL: no memory. */
mpiox_process_peers *mpiox_process_peers_new(int32_t delegates);
/* Both as mpiox_server_peers has them. MPIOX_OP_PEER: returns the answer's result. One that is known already stays. */
int mpiox_process_peers_name(void *peers, const mpiox_slot *slot);
/* For how many seconds has it been gone? 0: it is there, or is not known to be gone. NULL-safe. */
double mpiox_process_peers_gone_s(void *peers, int32_t delegate);
void mpiox_process_peers_free(mpiox_process_peers *peers); /* NULL-safe; may wait for a connection that is being made */

#endif
