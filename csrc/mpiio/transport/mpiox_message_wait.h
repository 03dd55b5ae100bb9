/*
 * mpiox_message_wait.h - the work of a rank while it waits in a collective of several nodes: it receives messages for
 * its windows, tests which of its own have been sent, loads windows, and lets MPI make progress.
 */
#ifndef MPIOX_MESSAGE_WAIT_H
#define MPIOX_MESSAGE_WAIT_H

#include "mpiox_messages.h"

/* mpiox_idle's work; context: mpiox_messages. */
bool mpiox_messages_idle(void *messages);

#endif
