/*
 * mpiox_exchange_rounds.h - senders and receivers of an exchange round, and the place of its chunks in the node's pool.
 *
 * Problem.   Messages must be few and large, memory bounded whatever an exchange round moves, and no rank may wait for
 *            a message that is never sent.
 * Algorithm. Due: node s sends to aggregator a in an exchange round under two conditions. The round lies between the
 *            first and the last round whose window of a meets the range of s's ranks. Some rank of the file accesses
 *            something of that window. Both sides compute it. A node's last message of an exchange round contains when
 *            it sends again, so that rounds without data cost no message. Counting: two exchange rounds ahead every
 *            rank adds the bytes of its chunks to the destination buffers; when all have, each knows where its chunks
 *            lie in the exchange round, whose destination buffers follow in the order of aggregators. This sequence is
 *            cut into steps of step_bytes bytes, by where a chunk begins; a step takes the half of the pool that was
 *            used two steps before. Most exchange rounds are one step.
 * Guarantee. Memory does not grow with ranks, nodes or what is accessed. Per exchange round and rank the work is
 *            O(destination buffers of the exchange round + chunks of the rank).
 * Local, except for functions marked as waiting for the node's ranks; all ranks of the node call the same in the same
 * order.
 */
#ifndef MPIOX_EXCHANGE_ROUNDS_H
#define MPIOX_EXCHANGE_ROUNDS_H

#include "mpiox_messages.h"

/* Rounds whose windows of the aggregator meet the range, as one interval; false: none. */
bool mpiox_exchange_rounds_due(const mpiox_call *call, int aggregator, mpiox_interval range, int64_t *first,
                               int64_t *last);
/* A call begins: due destination buffers, the first exchange rounds counted. 0 or MPIOX_E_NOMEM. */
int mpiox_exchange_rounds_begin(mpiox_messages *m);
/* Is there an exchange round of this number? */
bool mpiox_exchange_rounds_exists(const mpiox_messages *m, int64_t number);
/* Have all ranks of the node counted it? */
bool mpiox_exchange_rounds_ready(const mpiox_messages *m, int64_t number);
/* The exchange round after the last one laid out: where its chunks lie. Waits for the node's ranks. */
mpiox_exchange_round *mpiox_exchange_rounds_lay_out(mpiox_messages *m, int64_t number);
/* This rank's chunks of a step of the exchange round into its half of the pool, and the ends of its channels'
 * destination buffers. */
void mpiox_exchange_rounds_pack(mpiox_messages *m, const mpiox_exchange_round *round, int64_t number, int64_t step);
/* Call `send` for the destination buffers whose channel this rank is, with the bytes that the node has packed for each
 * in the step. Waits until all ranks of the node have packed the step. */
void mpiox_exchange_rounds_send(mpiox_messages *m, const mpiox_exchange_round *round, int64_t number, int64_t step,
                                void (*send)(mpiox_messages *m, int64_t number, int64_t step, int to, char *bytes,
                                             int64_t length));

#endif
