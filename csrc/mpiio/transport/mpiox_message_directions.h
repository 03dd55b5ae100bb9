/* mpiox_message_directions.h - a round of either direction: the operations of the transport; see mpiox_transport.h. */
#ifndef MPIOX_MESSAGE_DIRECTIONS_H
#define MPIOX_MESSAGE_DIRECTIONS_H

#include "mpiox_messages.h"

void mpiox_messages_deliver(mpiox_transport *transport, mpiox_call *call); /* mpiox_messages_write.c */
void mpiox_messages_fetch(mpiox_transport *transport, mpiox_call *call);   /* mpiox_messages_read.c */
void mpiox_messages_finish(mpiox_transport *transport, mpiox_call *call);  /* both, mpiox_messages_write.c */

#endif
