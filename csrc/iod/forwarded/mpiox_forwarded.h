/*
 * mpiox_forwarded.h - a file whose accesses go through the delegates.
 *
 *   mpiox_forwarded_file.c           opening, size, descriptions of the delegates
 *   mpiox_forwarded_hold.c           files that delegates write behind their close
 *   mpiox_forwarded_flush_barrier.c  sync, close: everything in the file
 *   mpiox_forwarded_errors.c         bytes that delegates had accepted and could not write
 *   mpiox_forwarded_access.c         one rank's access: owners, pages, large accesses that go straight to the file
 *   mpiox_forwarded_request.c        a request without data to one delegate
 *   mpiox_forwarded_behind.c         collected writes that a delegate elsewhere did not accept
 *   mpiox_forwarded_trace.c          what is lost with a host that vanishes
 *   mpiox_forwarded_ahead.c          which pages this rank will read next
 *   mpiox_forwarded_balance.c        page ranges move from busy delegates to idle ones
 *   mpiox_forwarded_remap.c          page ranges move because the arbiter gives the job other I/O nodes
 *   mpiox_forwarded_migrate.c        one page range changes owners
 *   mpiox_forwarded_owners.c         the owner of each page range
 *   mpiox_forwarded_failover.c       the owner of a page range after the death of its last known owner
 *   mpiox_forwarded_replica.c        copies at another delegate
 *
 * Owners. The static-cyclic file domain assigns units of the file (stripes, or pages if stripes are smaller) to the
 *         delegates. Their number is adjusted so that it divides the number of I/O servers or is a multiple of it
 *         (one-to-many, one-to-one: SDCI report, "Delegate Fileview Coordination"; mpiox_partition group_cyclic). Every
 *         client computes the owner; there is no lookup and no lock.
 * Pages.  A read or write of one page is mpiox_cache_access_page(), or one message to a delegate elsewhere.
 */
#ifndef MPIOX_FORWARDED_H
#define MPIOX_FORWARDED_H

#include <limits.h>

#include "mpiox_file.h"
#include "mpiox_opener.h"
#include "mpiox_service.h"

typedef struct mpiox_forwarded mpiox_forwarded;

/* Begin to use delegates for a file that was just opened; `decision` is that of its openers. Collective over the file's
 * ranks, blocking, agreed: every rank gets an object, or none does and *reason explains why. */
int mpiox_forwarded_open(mpiox_file *file, mpiox_service *service, const mpiox_decision *decision,
                         mpiox_forwarded **out, const char **reason);
extern const char mpiox_forwarded_death[]; /* a *reason, which applies to all files that are opened later */
/* Write all bytes to the file and leave the delegates. Collective, blocking; the same *error on all ranks: the deferred
 * error at the lowest offset, with the number of the other errors and the end of the last one. NULL-safe. Afterwards
 * only mpiox_forwarded_stats() and _free() may be called. */
int mpiox_forwarded_close(mpiox_forwarded *forwarded, mpiox_error *error);
void mpiox_forwarded_free(mpiox_forwarded *forwarded); /* local; NULL-safe */
/* After all ranks have agreed on the opening: rank 0 follows the arbiter's map, if the job has one; page ranges may
 * change owners from now on. Local, blocking; NULL-safe. */
void mpiox_forwarded_follow(mpiox_forwarded *forwarded);
/* Before the file is closed: when this returns no page range changes owners any more. Local, blocking; NULL-safe. */
void mpiox_forwarded_unfollow(mpiox_forwarded *forwarded);
/* MPI_Finalize begins, all files are closed: withdraw the job from its arbiter, if it has one. Local, blocking. */
void mpiox_forwarded_end(void);
/* Put this rank's counters into the file's. Local; NULL-safe. */
void mpiox_forwarded_stats(const mpiox_forwarded *forwarded, mpiox_stats *out);

/* One rank's access through its view. Local, blocking, any thread. As mpiox_file_access(). */
int mpiox_forwarded_access(mpiox_forwarded *forwarded, const mpiox_request *request, mpiox_outcome *outcome);

/* Write all bytes that any rank has written so far to the file; later reads, also by other means, find them. stable: to
 * stable storage, too. drop: no page stays cached. Collective, blocking; the same *error on all ranks. */
int mpiox_forwarded_flush_barrier(mpiox_forwarded *forwarded, bool stable, bool drop, mpiox_error *error);
/* Even out an uneven load of the delegates by moving page ranges. Right after a flush barrier; collective, blocking,
 * calls MPI. */
void mpiox_forwarded_balance(mpiox_forwarded *forwarded);
/* As the flush barrier, but for this rank's bytes alone, and all pages are dropped. Before the MPI library carries out
 * an access that the ranks did not agree on. The next flush barrier reports *error on all ranks. Local, blocking. */
int mpiox_forwarded_flush_barrier_alone(mpiox_forwarded *forwarded, mpiox_error *error);
/* The file's size was set to `bytes`, after a flush barrier that dropped all pages: delegates forget bytes beyond it.
 * Collective, blocking. */
int mpiox_forwarded_cut(mpiox_forwarded *forwarded, int64_t bytes);
/* One past the last byte, including bytes that are still cached. Local, blocking. 0 or MPIOX_E_IO. */
int mpiox_forwarded_size(mpiox_forwarded *forwarded, int64_t *bytes, mpiox_error *error);
int mpiox_forwarded_count(const mpiox_forwarded *forwarded); /* of delegates that own pages of the file; local */
/* The level of acknowledgement in force: disk if the hints request replica, but no replica delegate exists. Local. */
mpiox_delegate_level mpiox_forwarded_level(const mpiox_forwarded *forwarded);
bool mpiox_forwarded_closes_behind(const mpiox_forwarded *forwarded); /* may bytes be written after the close? local */
/* Does it have a hidden name until then? NULL-safe. Local. */
bool mpiox_forwarded_is_hidden(const mpiox_forwarded *forwarded);
/* One line for statistics: how many, how they were started, which of them died, which hints are not in force. Local. */
void mpiox_forwarded_describe(const mpiox_forwarded *forwarded, char *text, size_t bytes);
/* The values in force of the delegates' hints that the job shares, and the level. Local. */
void mpiox_forwarded_to_info(const mpiox_forwarded *forwarded, MPI_Info info);
/* This rank writes, or has written, to the file by other means: the delegates' pages may be old from now on (other
 * openings of the file use them, too). The rank's next access through the delegates drops them first. Local. */
void mpiox_forwarded_bypass(mpiox_forwarded *forwarded);
/* An operation has failed, and not all ranks know it: the next flush barrier reports the error on all of them. Local,
 * any thread. */
void mpiox_forwarded_note_error(mpiox_forwarded *forwarded, const mpiox_error *error);
/* Deliver all bytes that this rank has collected to delegates or the file, where all ranks' accesses find them. *error:
 * the first failure, if it contains none yet. Local, blocking. */
void mpiox_forwarded_drain(mpiox_forwarded *forwarded, mpiox_error *error);
/* This rank's access in a collective has not used the delegates: for the status. Local. */
void mpiox_forwarded_note_collective(const mpiox_forwarded *forwarded);
/* Has this rank accessed the file through the delegates since the last flush barrier, or must all of its accesses go
 * through them? Local. */
bool mpiox_forwarded_is_used(const mpiox_forwarded *forwarded);

/* ---- files that delegates write behind their close (mpiox_forwarded_hold.c) -------------------------------------- */

typedef struct mpiox_forwarded_hold mpiox_forwarded_hold;

/* This process has opened such a file. Local. */
void mpiox_forwarded_expect_holds(void);
/* May the job have such files? NULL-safe. Local, cheap. */
bool mpiox_forwarded_may_hold(const mpiox_service *service);
/* Do delegates of this node still write a closed file that has its own name? Local, cheap. */
bool mpiox_forwarded_is_draining(const mpiox_service *service, uint64_t device, uint64_t inode);
/* The next file, after *at, that delegates of this node still write in that folder, or below: its own name. False:
 * there are no more. Local, cheap. */
bool mpiox_forwarded_next_draining(const mpiox_service *service, const char *folder, int32_t *at, char path[PATH_MAX]);
/* Find a file by its own or its hidden name at all delegates. If it was closed, wait until it has its own name, and
 * return NULL, as for a file that no delegate has bytes of. If the file system refuses the bytes for `patience`
 * seconds, *why is an errno, else 0. If it is open under a hidden name, it keeps that name, and the delegates keep its
 * bytes, until mpiox_forwarded_hold_end(). how: MPIOX_HOLD_TO_OPEN; MPIOX_HOLD_TO_LOOK: the delegates need not keep it;
 * MPIOX_HOLD_TO_DELETE: they need not write it. Local, blocking. */
mpiox_forwarded_hold *mpiox_forwarded_hold_file(mpiox_service *service, const char *path, int how, double patience,
                                                int *why);
/* Write all of its bytes to the file, and drop its pages. Local, blocking. 0, or the first failure: bytes that cannot
 * be written stay with their delegates. */
int mpiox_forwarded_hold_flush(const mpiox_forwarded_hold *hold, mpiox_error *error);
void mpiox_forwarded_hold_discard(const mpiox_forwarded_hold *hold); /* discard its cached bytes */
/* The delegates need not keep it any more. NULL-safe. */
void mpiox_forwarded_hold_end(mpiox_forwarded_hold *hold);

#endif
