/*
 * mpiox_server_files.h - files, flush barriers, and requests about whole files. Private to csrc/iod/server; with the
 * lock unless the comment names another condition.
 */
#ifndef MPIOX_SERVER_FILES_H
#define MPIOX_SERVER_FILES_H

#include "mpiox_server_state.h"

/* MPIOX_OP_CLOSE, _FLUSH, _DISCARD, _MIGRATE, _COMMIT: begin the flush barrier, or leave it waiting for one of the
 * MPIOX_FLUSH_BARRIERS. */
void mpiox_server_ask_flush_barrier(mpiox_server *server, mpiox_slot *slot);
/* Flush and drop everything; *done is set to 1. False: no flush barrier is free now. */
bool mpiox_server_empty(mpiox_server *server, mpiox_futex *done);
/* The delegate is the last opener of the file: close it, without anybody waiting. False: no flush barrier is free now.
 * */
bool mpiox_server_close_alone(mpiox_server *server, int32_t file);
/* Clients have died: write everything that is dirty, without waiting for it, and find out which frames they have
 * pinned. */
void mpiox_server_flush_after_death(mpiox_server *server);
/* The frame has done what these flush barriers waited for. */
void mpiox_server_pass_flush_barriers(mpiox_server *server, uint32_t frame, uint64_t flush_barriers);
/* The same for barriers that fail with this error, or because bytes stay dirty. */
void mpiox_server_fail_flush_barriers(mpiox_server *server, uint32_t frame, uint64_t flush_barriers,
                                      const mpiox_error *error);
uint64_t mpiox_server_keeping_barriers(const mpiox_server *server);
/* The lowest byte from which on a flush barrier that waits for this frame discards. */
int64_t mpiox_server_cut_of(const mpiox_server *server, uint32_t frame);
/* Carry out an operation of server->operations that is the first; the lock is given back meanwhile. */
void mpiox_server_operate(mpiox_server *server);
/* Close all files and collect untaken errors, if no client is left to take them. No other thread runs. */
void mpiox_server_close_files(mpiox_server *server, bool collect);

#endif
