/*
 * mpiox_transport.h - how the pieces of ranks reach the collective buffers of aggregators whose memory they do not
 * share.
 *
 * A transport serves one open file. In each round of a collective the ranks of a node first work on the windows of the
 * node's own aggregators (buffers/); then the transport brings the round's remaining pieces to (write) or from (read)
 * the windows of other aggregators. Rounds do not know which transport there is:
 *
 *   mpiox_transport_shm.c       all ranks share one node: nothing remains to be moved
 *   mpiox_transport_messages.c  several nodes: one combined MPI message per node, aggregator of another node and round
 *
 * The calls of one collective, in order: reset; forget, when a view is new; begin; start; for each round deliver
 * (write) or fetch (read); finish; forget, when it has ended with an error. Agreements before and after the rounds are
 * the topology's (mpiox_topology_gather_nodes()).
 */
#ifndef MPIOX_TRANSPORT_H
#define MPIOX_TRANSPORT_H

#include "mpiox_buffers.h"

typedef struct mpiox_transport mpiox_transport;

typedef struct mpiox_transport_ops {
    const char *name; /* static text */
    /* A transport for these buffers, which must outlive it; NULL without memory. Local. */
    mpiox_transport *(*create)(mpiox_buffers *b);
    void (*free)(mpiox_transport *transport);
    /* Bytes that it needs in the memory that the node shares (b->transport_memory). Local, pure. */
    int64_t (*shared_bytes)(const mpiox_transport *transport);
    /* A collective begins, b->nodes is known: fresh state in shared memory. One rank of the node, while the others
     * wait. */
    void (*reset)(mpiox_transport *transport);
    /* After the reduction: get the facts of other ranks that the rounds will need. May raise call->participants and
     * call->reduction.disjoint. Collective over the file, blocking; errors go to mpiox_buffers_fail(). */
    void (*begin)(mpiox_transport *transport, mpiox_call *call);
    /* The file domains, their owners and the rounds are known. May set call->held. 0 or MPIOX_E_NOMEM. Local. */
    int (*start)(mpiox_transport *transport, mpiox_call *call);
    /* Write: after this rank's part of the local windows of call->round, send pieces to the windows of other nodes and
     * place theirs in the windows of this one. Collective over the file, blocking. A node that has failed continues to
     * deliver. */
    void (*deliver)(mpiox_transport *transport, mpiox_call *call);
    /* Read: the other way round. */
    void (*fetch)(mpiox_transport *transport, mpiox_call *call);
    /* The rounds are over: wait until this rank's messages have been received. Blocking. */
    void (*finish)(mpiox_transport *transport, mpiox_call *call);
    /* Forget the facts of begin(): a rank has a new view, or a collective has failed and may not have finished. Local,
     * on all ranks. */
    void (*forget)(mpiox_transport *transport);
} mpiox_transport_ops;

struct mpiox_transport { /* the head of each transport's own struct */
    const mpiox_transport_ops *ops;
    mpiox_buffers *b; /* borrowed */
};

/* The transport for a file, by its topology, layout and hints; the same on every rank. Never NULL. */
const mpiox_transport_ops *mpiox_transport_choose(const mpiox_file *file);

extern const mpiox_transport_ops mpiox_transport_shm, mpiox_transport_messages;

#endif
