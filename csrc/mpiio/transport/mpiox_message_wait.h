/*
 * mpiox_message_wait.h - what a rank does while it waits in a collective of several nodes: it receives what its
 * windows are sent, learns which of its messages have gone, loads windows, and lets MPI make progress.
 */
#ifndef MPIOX_MESSAGE_WAIT_H
#define MPIOX_MESSAGE_WAIT_H

#include "mpiox_messages.h"

/* mpiox_idle's work; context: mpiox_messages. */
bool mpiox_messages_idle(void *messages);

#endif
