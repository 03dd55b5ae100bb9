/*
 * mpiox_forwarded.h - a file whose accesses go through the delegates.
 *
 *   mpiox_forwarded_file.c           opening, size, what is told of the delegates
 *   mpiox_forwarded_hold.c           files that delegates write behind their close
 *   mpiox_forwarded_flush_barrier.c  sync, close: everything in the file
 *   mpiox_forwarded_errors.c         bytes that delegates had taken and could not write
 *   mpiox_forwarded_access.c         one rank's access: owners, pages, large accesses that go straight to the file
 *   mpiox_forwarded_behind.c         collected writes that a delegate elsewhere did not take
 *   mpiox_forwarded_trace.c          what is lost with a host that vanishes
 *   mpiox_forwarded_ahead.c          which pages this rank will read next
 *   mpiox_forwarded_balance.c        page ranges move from busy delegates to idle ones
 *   mpiox_forwarded_remap.c          page ranges move because the arbiter gives the job other I/O nodes
 *   mpiox_forwarded_claim.c          pages that are never written are where a rank wrote first
 *   mpiox_forwarded_migrate.c        one page range changes hands
 *   mpiox_forwarded_owners.c         who has which page range
 *   mpiox_forwarded_failover.c       who has it when the delegate that had it is dead
 *   mpiox_forwarded_replica.c        copies at another delegate
 *
 * Owners.  Units of the file (stripes, or pages where stripes are smaller) belong to the delegates by the static-cyclic
 *          file domain, with their number adjusted so that it divides the number of I/O servers or is a multiple of it
 *          (one-to-many, one-to-one: SDCI report, "Delegate Fileview Coordination"; mpiox_partition group_cyclic).
 *          Every client computes the owner; there is no lookup and no lock.
 * Reads and writes of one page are mpiox_cache_access_page(), or one message to a delegate elsewhere.
 */
#ifndef MPIOX_FORWARDED_H
#define MPIOX_FORWARDED_H

#include <limits.h>

#include "mpiox_file.h"
#include "mpiox_opener.h"
#include "mpiox_service.h"

typedef struct mpiox_forwarded mpiox_forwarded;

/* For a file that was just opened, as its openers have told of it. Collective over the file's ranks, blocking, agreed:
 * every rank gets one, or none does and *reason says why not. */
int mpiox_forwarded_open(mpiox_file *file, mpiox_service *service, const mpiox_decision *decision,
                         mpiox_forwarded **out, const char **reason);
extern const char mpiox_forwarded_death[]; /* a *reason: it holds for all files that are opened from now on */
/* Bring everything to the file and let go of the delegates. Collective, blocking; the same *error on all ranks: the
 * deferred error at the lowest offset, with the number of the others and where they end. NULL-safe. Afterwards only
 * mpiox_forwarded_stats() and _free(). */
int mpiox_forwarded_close(mpiox_forwarded *forwarded, mpiox_error *error);
void mpiox_forwarded_free(mpiox_forwarded *forwarded); /* local; NULL-safe */
/* After the file was opened, and its opening has been agreed: rank 0 follows the arbiter's map, if the job has one;
 * page ranges change hands from now on. Local, blocking; NULL-safe. */
void mpiox_forwarded_follow(mpiox_forwarded *forwarded);
/* Before the file is closed: when this returns nothing moves any more. Local, blocking; NULL-safe. */
void mpiox_forwarded_unfollow(mpiox_forwarded *forwarded);
/* MPI_Finalize begins, all files are closed: the job leaves its arbiter, if it has one. Local, blocking. */
void mpiox_forwarded_end(void);
/* Put this rank's counters into the file's. Local; NULL-safe. */
void mpiox_forwarded_stats(const mpiox_forwarded *forwarded, mpiox_stats *out);

/* One rank's access through its view. Local, blocking, any thread. As mpiox_file_access(). */
int mpiox_forwarded_access(mpiox_forwarded *forwarded, const mpiox_request *request, mpiox_outcome *outcome);

/* All bytes that any rank has written so far to the file; later reads, also by other means, find them. stable: to
 * stable storage too. drop: nothing stays cached. Collective, blocking; the same *error on all ranks. */
int mpiox_forwarded_flush_barrier(mpiox_forwarded *forwarded, bool stable, bool drop, mpiox_error *error);
/* Even the delegates' load out, if it is uneven: page ranges change hands. Right after a flush barrier; collective,
 * blocking, calls MPI. */
void mpiox_forwarded_balance(mpiox_forwarded *forwarded);
/* The same by this rank alone, without the others' bytes in flight; everything is dropped. Before the MPI library
 * carries out an access that the ranks did not agree on. The next flush barrier tells all ranks of *error. Local,
 * blocking. */
int mpiox_forwarded_flush_barrier_alone(mpiox_forwarded *forwarded, mpiox_error *error);
/* The file's size has been set to `bytes`, after a flush barrier that dropped everything: what delegates remember of
 * the bytes beyond is void. Collective, blocking. */
int mpiox_forwarded_cut(mpiox_forwarded *forwarded, int64_t bytes);
/* One past the last byte, those included that are still cached. Local, blocking. 0 or MPIOX_E_IO. */
int mpiox_forwarded_size(mpiox_forwarded *forwarded, int64_t *bytes, mpiox_error *error);
int mpiox_forwarded_count(const mpiox_forwarded *forwarded); /* of delegates that own pages of the file; local */
/* The level of acknowledgement in force: disk where replica was asked for and cannot be had. Local. */
mpiox_delegate_level mpiox_forwarded_level(const mpiox_forwarded *forwarded);
bool mpiox_forwarded_closes_behind(const mpiox_forwarded *forwarded); /* it is not written when it is closed; local */
/* Has it another name than its own until then, and is it never written? NULL-safe. Local. */
bool mpiox_forwarded_is_hidden(const mpiox_forwarded *forwarded);
bool mpiox_forwarded_is_unwritten(const mpiox_forwarded *forwarded);
/* One line for statistics: how many, how they were started, which of them died, which hints are not in force. Local. */
void mpiox_forwarded_describe(const mpiox_forwarded *forwarded, char *text, size_t bytes);
/* The values in force of the delegates' hints that the job shares, and the level. Local. */
void mpiox_forwarded_to_info(const mpiox_forwarded *forwarded, MPI_Info info);
/* This rank writes, or has written, to the file by other means: what delegates hold of it may be old from now on (they
 * hold pages for other openings, too). The rank's next access through them drops it first. Local. */
void mpiox_forwarded_bypass(mpiox_forwarded *forwarded);
/* Something has failed of which not all ranks know: the next flush barrier tells them. Local, any thread. */
void mpiox_forwarded_note_error(mpiox_forwarded *forwarded, const mpiox_error *error);
/* Everything that this rank has written is with delegates or in the file, where all ranks' accesses find it. *error:
 * the first failure, if it has none yet. Local, blocking. */
void mpiox_forwarded_drain(mpiox_forwarded *forwarded, mpiox_error *error);
/* This rank's access in a collective has not used the delegates: for the status. Local. */
void mpiox_forwarded_note_collective(const mpiox_forwarded *forwarded);
/* Has this rank accessed the file through the delegates since the last flush barrier, or are all of its accesses to go
 * through them? Local. */
bool mpiox_forwarded_is_used(const mpiox_forwarded *forwarded);

/* ---- files that delegates write behind their close (mpiox_forwarded_hold.c) -------------------------------------- */

typedef struct mpiox_forwarded_hold mpiox_forwarded_hold;

/* This process has opened such a file. Local. */
void mpiox_forwarded_expect_holds(void);
/* May the job have such files? NULL-safe. Local, cheap. */
bool mpiox_forwarded_may_hold(const mpiox_service *service);
/* Do delegates of this node still write it, by its own name? Local, cheap. */
bool mpiox_forwarded_is_draining(const mpiox_service *service, uint64_t device, uint64_t inode);
/* The next file, after *at, that delegates of this node still write in that folder, or below: its own name. False:
 * there are no more. Local, cheap. */
bool mpiox_forwarded_next_draining(const mpiox_service *service, const char *folder, int32_t *at, char path[PATH_MAX]);
/* A file of this name, its own or a hidden one, that was closed gets its own before this returns: NULL, as where no
 * delegate has any of it. If the file system refuses its bytes for `patience` seconds, *why is an errno, else 0.
 * One that others have open under a hidden name, or is never written, keeps that name, and the delegates keep what they
 * have of it, until it is let go. how: MPIOX_HOLD_TO_OPEN; MPIOX_HOLD_TO_LOOK: nothing is kept; MPIOX_HOLD_TO_DELETE:
 * nothing has to be written. Local, blocking. */
mpiox_forwarded_hold *mpiox_forwarded_hold_file(mpiox_service *service, const char *path, int how, double patience,
                                                int *why);
/* Had a delegate of this node, which cannot be asked any more, that file open under this hidden name? Local. */
bool mpiox_forwarded_was_open(const mpiox_service *service, const char *path);
bool mpiox_forwarded_hold_is_unwritten(const mpiox_forwarded_hold *hold); /* it is never written */
/* All of it is in the file, and nothing is cached. Local, blocking. 0, or the first failure: what cannot be written
 * stays with its delegates. */
int mpiox_forwarded_hold_flush(const mpiox_forwarded_hold *hold, mpiox_error *error);
void mpiox_forwarded_hold_discard(const mpiox_forwarded_hold *hold); /* what is cached is not written any more */
/* Let it go. NULL-safe. */
void mpiox_forwarded_hold_end(mpiox_forwarded_hold *hold);
/* The same; a file that is never written, and nobody has open, is written, and stays. */
void mpiox_forwarded_hold_end_to_write(mpiox_forwarded_hold *hold);

#endif
