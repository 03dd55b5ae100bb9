/*
 * mpiox_server_replica.h - copies of other delegates' dirty pages (files opened with MPIOX_FILE_REPLICA).
 *
 * A copy is dirty until it is discarded. Only two things write it to the file: a flush barrier that a client requests
 * because the original's delegate is dead, and, after a close, mpiox_server_drain.c. It never leaves the cache to make
 * room for another page, and copies use half of the frames at most. Private to csrc/iod/server; with the lock.
 */
#ifndef MPIOX_SERVER_REPLICA_H
#define MPIOX_SERVER_REPLICA_H

#include "mpiox_server_state.h"

/* MPIOX_OP_REPLICA_MARK and _TRIM; returns the answer's result. */
int mpiox_server_mark_replica(mpiox_server *server, int32_t file);
int mpiox_server_trim_replica(mpiox_server *server, int32_t file);
/* Discard all pages of the file on which no thread works. */
void mpiox_server_discard_copies(mpiox_server *server, int32_t file);
/* The delegate ends: discard copies. */
void mpiox_server_forget_copies(mpiox_server *server);

#endif
