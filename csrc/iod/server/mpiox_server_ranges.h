/*
 * mpiox_server_ranges.h - page ranges that change owners, at a delegate. Private to csrc/iod/server; with the lock.
 *
 * Problem.   A client moves a range in three steps at two delegates. It may die between them, another may continue in
 *            its place, its last message may arrive long after the end of the move, and several clients may try to move
 *            the range. A delegate with a new record of the file counts versions from 0 again, while another one still
 *            has an older record.
 * Algorithm. Each move has a version, one more than the old owner's. A delegate takes a range over only with a version
 *            that it does not know; a version that it has refused it never accepts later. If the client of a move is
 *            dead, the old owner gives the move to the next client that requests it: this client makes the remaining
 *            steps, with the same version. Version and stamp of the old owner's record identify a move: so an old
 *            record cannot confuse the first move of a new record with another one of the same version. If two
 *            delegates claim a range the second gives it to the first, which must still own it when the request arrives
 *            (a repair, with a stamp below 0): otherwise it would take back a range that it has given away.
 * Guarantee. A step that is done twice, late, or by two clients has the effect of one. A delegate does not take over a
 *            range that is moving at it.
 */
#ifndef MPIOX_SERVER_RANGES_H
#define MPIOX_SERVER_RANGES_H

#include "mpiox_server_state.h"

enum { MPIOX_MIGRATE_BARRIER = 100 }; /* beside MPIOX_OK and MPIOX_E_ARG */

/* MPIOX_OP_MIGRATE or _COMMIT: its result, when all is done; MPIOX_MIGRATE_BARRIER: the pages of the range have to be
 * dropped first, nothing has been done. */
int mpiox_server_judge_migration(mpiox_server *server, mpiox_slot *slot);
/* That flush barrier begins: no client accesses the pages. */
void mpiox_server_begin_migration(mpiox_server *server, mpiox_slot *slot);
/* It has ended, for MPIOX_OP_COMMIT: the range is this delegate's. */
void mpiox_server_end_commit(mpiox_server *server, const mpiox_slot *slot);
/* MPIOX_OP_OWNER: its result. */
int mpiox_server_answer_owner(mpiox_server *server, mpiox_slot *slot);

#endif
