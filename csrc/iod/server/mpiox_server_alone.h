/*
 * mpiox_server_alone.h - exclusive use of a frame, even if a client that had pinned it has died. Private to
 * csrc/iod/server.
 */
#ifndef MPIOX_SERVER_ALONE_H
#define MPIOX_SERVER_ALONE_H

#include "mpiox_server_state.h"

/* By the I/O thread that works on the frame, without the lock. False: a client keeps it pinned; try the frame again
 * later, with a shorter wait. */
bool mpiox_server_alone(mpiox_server *server, uint32_t frame);

#endif
