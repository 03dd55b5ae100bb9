/*
 * mpiox_server_ranges.h - page ranges that change hands, as a delegate sees them. Private to csrc/iod/server; with the
 *                         lock.
 *
 * Problem.   A client moves a range in three steps at two delegates. It may die between them, another may go on in its
 *            place, its last message may arrive when that has long been done, and several may want to move the range.
 *            A delegate whose record of the file is new counts versions from 0 again; another one's is of before.
 * Algorithm. Each move has a version, one more than the old owner's. A delegate takes a range over only with a version
 *            that it has not heard of; what it refuses it never takes afterwards. A move whose client is gone is handed
 *            to whoever asks for it: that client does the steps that are left, with the same version. A move is known
 *            by its version and by the stamp of the record of the old owner: an old record takes the first move of a
 *            new one for no other that it had the version of. Where two say that a range is theirs the second hands it
 *            to the first, which must have it still when that arrives (a repair, of stamp below 0), lest it take back
 *            what it has handed over.
 * Guarantee. A step that is done twice, late, or by two clients has the effect of one. A range that is moving is not
 *            taken over here.
 */
#ifndef MPIOX_SERVER_RANGES_H
#define MPIOX_SERVER_RANGES_H

#include "mpiox_server_state.h"

enum { MPIOX_MIGRATE_BARRIER = 100 }; /* beside MPIOX_OK and MPIOX_E_ARG */

/* MPIOX_OP_MIGRATE or _COMMIT: its result, when all is done; MPIOX_MIGRATE_BARRIER: the pages of the range have to be
 * dropped first, nothing has been done. */
int mpiox_server_judge_migration(mpiox_server *server, mpiox_slot *slot);
/* That flush barrier begins: nobody gets at the pages. */
void mpiox_server_begin_migration(mpiox_server *server, mpiox_slot *slot);
/* It has ended, for MPIOX_OP_COMMIT: the range is this delegate's. */
void mpiox_server_end_commit(mpiox_server *server, const mpiox_slot *slot);
/* MPIOX_OP_OWNER: its result. */
int mpiox_server_answer_owner(mpiox_server *server, mpiox_slot *slot);

#endif
