/*
 * mpiox_server_flush.h - dirty pages to the file. Private to csrc/iod/server.
 */
#ifndef MPIOX_SERVER_FLUSH_H
#define MPIOX_SERVER_FLUSH_H

#include "mpiox_server_state.h"

/* I/O thread, with the lock, which is given back meanwhile: write, drop or cut the next frames. False: none waits. */
bool mpiox_server_flush_some(mpiox_server *server, mpiox_io *io);
/* The same for these consecutive waiting frames, up to MPIOX_RUN_FRAMES; one that is to be cut is alone. */
void mpiox_server_flush_batch(mpiox_server *server, mpiox_io *io, const uint32_t *frames, int32_t count);
/* The same for io->frames, on which this thread works: pages that cannot be written stay dirty, without an error of the
 * file. Returns the errno, or 0. */
int mpiox_server_flush_behind(mpiox_server *server, mpiox_io *io);

#endif
