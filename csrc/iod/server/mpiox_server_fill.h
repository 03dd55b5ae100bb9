/*
 * mpiox_server_fill.h - pages from the file. Private to csrc/iod/server.
 */
#ifndef MPIOX_SERVER_FILL_H
#define MPIOX_SERVER_FILL_H

#include "mpiox_server_state.h"

/* I/O thread, with the lock, which the thread unlocks meanwhile: read the pages that were requested first, or, if
 * `ahead`, pages that may be requested. False: none waits. */
bool mpiox_server_fill_some(mpiox_server *server, mpiox_io *io, bool ahead);
/* The same with these frames, which wait to be filled, follow each other and are up to MPIOX_RUN_FRAMES. */
void mpiox_server_fill_batch(mpiox_server *server, mpiox_io *io, const uint32_t *frames, int32_t count);

#endif
