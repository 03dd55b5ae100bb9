/*
 * mpiox_server_share.h - the client that gets the next frame under weighted fair queueing. Private to csrc/iod/server;
 * with the lock.
 */
#ifndef MPIOX_SERVER_SHARE_H
#define MPIOX_SERVER_SHARE_H

#include "mpiox_server_state.h"

/* Bring the request that shall be served next to the front of the parked ones. */
void mpiox_server_share_choose(mpiox_server *server);
/* A parked request of a client (id + 1, 0: not known) for a page of a file got its frame. */
void mpiox_server_share_charge(mpiox_server *server, int32_t client, int32_t file);

#endif
