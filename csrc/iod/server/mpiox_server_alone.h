/*
 * mpiox_server_alone.h - exclusive use of a frame, also when a client that had it pinned has died. Private to
 * csrc/iod/server.
 */
#ifndef MPIOX_SERVER_ALONE_H
#define MPIOX_SERVER_ALONE_H

#include "mpiox_server_state.h"

/* I/O thread that has taken the frame up, without the lock. False: a client has it pinned and does not let go; the
 * frame should be tried again later, which gets shorter. */
bool mpiox_server_alone(mpiox_server *server, uint32_t frame);

#endif
