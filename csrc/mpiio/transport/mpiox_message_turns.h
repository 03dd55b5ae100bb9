/*
 * mpiox_message_turns.h - who sends to whom, and where in the node's pool the portions of a turn lie.
 *
 * Problem.   Messages must be few and large, memory bounded whatever a turn moves, and nobody may wait for a message
 *            that never comes.
 * Algorithm. Due: node s sends to aggregator a in the turn of window w if and only if w lies between the first and the
 *            last window of a that meets the range of s's ranks, and some rank of the file accesses something of w.
 *            Both sides compute it. The end of what a node sends in a turn says when it sends again, so
 *            that rounds in which it has nothing cost no message. Counting: two turns ahead every rank adds the bytes
 *            of its portions to the areas; when all have, each knows where its portions lie among all of the turn,
 *            areas in the order of aggregators. This sequence is cut into steps of step_bytes bytes, by where a
 *            portion begins; a step takes the half of the pool that was used two steps before. Most turns are one step.
 * Guarantee. Memory does not grow with ranks, nodes or what is accessed. Per turn and rank the work is O(areas of the
 *            turn + portions of the rank).
 * Local, unless it says that it waits for the node's ranks; all ranks of the node call the same in the same order.
 */
#ifndef MPIOX_MESSAGE_TURNS_H
#define MPIOX_MESSAGE_TURNS_H

#include "mpiox_messages.h"

/* Windows of the aggregator that meet the range, as one interval; false: none. */
bool mpiox_turns_due(const mpiox_call *call, int aggregator, mpiox_interval range, int64_t *first, int64_t *last);
/* A call begins: due areas, the first turns counted. 0 or MPIOX_E_NOMEM. */
int mpiox_turns_begin(mpiox_messages *m);
/* Is there a turn of this number? */
bool mpiox_turns_exists(const mpiox_messages *m, int64_t turn);
/* Have all ranks of the node counted it? */
bool mpiox_turns_ready(const mpiox_messages *m, int64_t turn);
/* The turn after the last one laid out: where its portions lie. Waits for the node's ranks. */
mpiox_turn *mpiox_turns_lay_out(mpiox_messages *m, int64_t turn);
/* This rank's portions of a step of the turn into its half of the pool, and the ends of its channels' areas. */
void mpiox_turns_pack(mpiox_messages *m, const mpiox_turn *turn, int64_t turn_number, int64_t step);
/* The areas whose channel this rank is, with what the node has packed of each in the step: `send` gets it. Waits until
 * all ranks of the node have packed the step. */
void mpiox_turns_send(mpiox_messages *m, const mpiox_turn *turn, int64_t number, int64_t step,
                      void (*send)(mpiox_messages *m, int64_t number, int64_t step, int to, char *bytes,
                                   int64_t length));

#endif
