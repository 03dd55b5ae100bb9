/* mpiox_message_views.h - the views that every node knows; see mpiox_message_views.c. */
#ifndef MPIOX_MESSAGE_VIEWS_H
#define MPIOX_MESSAGE_VIEWS_H

#include "mpiox_messages.h"

enum { MPIOX_STORE_BYTES = 1024 * 1024, MPIOX_VIEW_UNKNOWN = -1, MPIOX_VIEW_EMPTY = -2 };

/* Store the present views of all ranks on this node, from the contributions. Collective over the file, blocking. */
void mpiox_message_views_renew(mpiox_messages *m);

#endif
