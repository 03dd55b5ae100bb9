/*
 * mpiox_server_drain.h - writing files behind their close. Private to csrc/iod/server; with the lock unless the comment
 * names another condition.
 */
#ifndef MPIOX_SERVER_DRAIN_H
#define MPIOX_SERVER_DRAIN_H

#include "mpiox_server_state.h"

/* A MPIOX_OP_CLOSE that does not wait: the slot is answered. */
void mpiox_server_close_behind(mpiox_server *server, mpiox_slot *slot);
/* Is this one such a close? */
bool mpiox_server_closes_behind(const mpiox_server *server, const mpiox_slot *slot);
/* MPIOX_OP_HOLD. */
void mpiox_server_hold(mpiox_server *server, mpiox_slot *slot);
/* A page of a file is complete. True: it is not written for that alone, for it is a copy, or has time until the
 * close. */
bool mpiox_server_drain_defers(mpiox_server *server, int32_t file);
/* An idle I/O thread, which unlocks meanwhile, writes some pages of the file that was closed first, or ends with it;
 * else of one that is open and at rest. False: there are none now. */
bool mpiox_server_drain_some(mpiox_server *server, mpiox_io *io);
/* No client is left: end all their holds. With the lock. */
void mpiox_server_end_holds(mpiox_server *server);
/* When there may be something to do (mpiox_now()); INFINITY: not before something changes. */
double mpiox_server_drain_due(const mpiox_server *server);
/* Does the job's end wait for a file? Not for one that has failed for as long as its patience. */
bool mpiox_server_is_draining(const mpiox_server *server);
/* The delegate ends: files that could not be written so far stay in a segment that has a name;
 * mpiox_server_drain_last() then names them by an error. */
void mpiox_server_leave_behind(mpiox_server *server);
bool mpiox_server_has_left(const mpiox_server *server);
/* At the end of the delegate, when nothing else runs, all pages are in the files, which are still open: on to stable
 * storage, and files with a hidden name get their own. */
void mpiox_server_drain_last(mpiox_server *server);

#endif
