/*
 * mpiox_server_files.h - files, flush barriers, and what is asked about whole files. Private to csrc/iod/server; with
 * the lock unless said otherwise.
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
/* What those of these flush barriers that wait for the frame wanted of it is done. */
void mpiox_server_pass_flush_barriers(mpiox_server *server, uint32_t frame, uint64_t flush_barriers);
/* The same of those that fail by this error; those that are to fail where something stays dirty. */
void mpiox_server_fail_flush_barriers(mpiox_server *server, uint32_t frame, uint64_t flush_barriers,
                                      const mpiox_error *error);
uint64_t mpiox_server_keeping_barriers(const mpiox_server *server);
/* The lowest byte from which on a flush barrier that waits for this frame discards. */
int64_t mpiox_server_cut_of(const mpiox_server *server, uint32_t frame);
/* Carry out an operation of server->operations that is the first; the lock is given back meanwhile. */
void mpiox_server_operate(mpiox_server *server);
/* Close all files and collect the errors that nobody has taken, if nobody is left to do so. Nothing else runs. */
void mpiox_server_close_files(mpiox_server *server, bool collect);

#endif
