/*
 * mpiox_message_inbox.h - an aggregator receives the messages of other nodes for its windows.
 *
 * Problem.   An aggregator must not buffer more than a message, however many nodes send, and must not wait for nodes
 *            that send nothing.
 * Algorithm. It counts the nodes that are due in an exchange round, and receives one message at a time, in the order of
 *            arrival, until each has sent its end. Messages are sent in synchronous mode: until it receives a message,
 *            the aggregator needs no memory for it beyond the window's bytes, and the sender waits two steps later. In
 *            a read it answers every message by one of the same layout, whose entries show how many of their bytes lie
 *            before the end of the file.
 */
#ifndef MPIOX_MESSAGE_INBOX_H
#define MPIOX_MESSAGE_INBOX_H

#include "mpiox_messages.h"

/* A call begins: which nodes are due when. 0 or MPIOX_E_NOMEM. Local. */
int mpiox_inbox_begin(mpiox_messages *m);
/* The call's round begins: its window is in a slot, which gets this rank's arrival when all is done. Local. */
void mpiox_inbox_open(mpiox_messages *m);
/* Do what can be done at once; true when something was. Local. */
bool mpiox_inbox_progress(mpiox_messages *m);
/* Until all messages of the exchange round are in. Blocking. */
void mpiox_inbox_finish(mpiox_messages *m);
/* Until all replies have gone. Blocking. */
void mpiox_inbox_end(mpiox_messages *m);
void mpiox_inbox_free(mpiox_inbox *inbox);

#endif
