/*
 * mpiox_server_replica.h - copies of other delegates' dirty pages (files opened with MPIOX_FILE_REPLICA).
 *
 * A copy is dirty until it is discarded: only a flush barrier that a client asks for, because the original's delegate
 * is dead, brings it to the file, or, where it has been closed behind, mpiox_server_drain.c. It never leaves the cache
 * for another page, and copies take half of the frames at most. Private to csrc/iod/server; with the lock.
 */
#ifndef MPIOX_SERVER_REPLICA_H
#define MPIOX_SERVER_REPLICA_H

#include "mpiox_server_state.h"

/* MPIOX_OP_REPLICA_MARK and _TRIM; returns the answer's result. */
int mpiox_server_mark_replica(mpiox_server *server, int32_t file);
int mpiox_server_trim_replica(mpiox_server *server, int32_t file);
/* All of the file that nobody is working on. */
void mpiox_server_discard_copies(mpiox_server *server, int32_t file);
/* The delegate ends: copies that nobody needs are discarded, and pages that are never written if all
 * clients have left. */
void mpiox_server_forget_copies(mpiox_server *server);

#endif
