/*
 * mpiox_forwarded_impl.h - the struct behind mpiox_forwarded.h. Private to csrc/iod/forwarded.
 */
#ifndef MPIOX_FORWARDED_IMPL_H
#define MPIOX_FORWARDED_IMPL_H

#include "mpiox_cache_page.h"
#include "mpiox_forwarded.h"

/* Where this rank reads, for mpiox_forwarded_ahead.c. A thread only tries `lock`: if two read at once, one is not
 * noted. */
typedef struct mpiox_forwarded_reader {
    pthread_mutex_t lock;
    int64_t position, length; /* of the last read, stream bytes */
    int64_t stride;           /* from the one before it to the last one */
    int32_t streak;           /* reads in a row that kept the stride */
    int64_t asked; /* pages up to this one (in the direction of the stride) have been named to their owners */
} mpiox_forwarded_reader;

/* Where this rank has written since the last flush barrier at a delegate elsewhere, for mpiox_forwarded_trace.c: file
 * bytes. */
typedef struct mpiox_forwarded_trace {
    atomic_int_least64_t first, past; /* file bytes within [first, past) are with the delegate */
    atomic_bool lost;                 /* the delegate is lost, with its pages, as far as this rank knows */
    atomic_bool damaged; /* this rank has taken the errors of a dead delegate: some of its bytes are not in the file */
} mpiox_forwarded_trace;

struct mpiox_forwarded {
    mpiox_file *file;                                 /* borrowed */
    mpiox_service *service;                           /* borrowed; the delegates in use are its first `owners` ones */
    mpiox_decision decision;                          /* of the openers */
    int32_t owners, ranges;                           /* delegates of the file; its page ranges (mpiox_cache.h) */
    int64_t page_bytes, unit_bytes;                   /* of a page; of a unit, a multiple of it */
    atomic_int_least64_t most_bytes;                  /* mpiox_forwarded_size_limit(), when it was called last */
    int32_t *index;                                   /* [owners] of the file record at each delegate */
    _Atomic int16_t owner_of[MPIOX_FILE_RANGES];      /* as far as this rank knows */
    atomic_int_least64_t accesses[MPIOX_FILE_RANGES]; /* of pages, by this rank, since the last balance */
    bool any_remote;                                  /* a delegate is reached over the network */
    pthread_mutex_t ordering;         /* locked while a write is collected, and while owner_of changes */
    atomic_uint changes;              /* of owner_of */
    bool behind_close;                /* the close does not wait until its bytes are written */
    bool collects;                    /* small writes to delegates elsewhere may be collected */
    struct {                          /* mpiox_forwarded_behind.c */
        atomic_bool listed;           /* the file is in the list of files whose writes may be collected */
        struct mpiox_forwarded *next; /* in that list */
        int (*rewrite)(struct mpiox_forwarded *, const mpiox_link_access *, mpiox_error *); /* repeats a lost write */
    } behind;
    struct mpiox_forwarded *replica; /* acknowledgement level replica: the copies of dirty pages; else NULL */
    int32_t shift;                   /* of the copies: pages of owner i are copied to delegate (i + shift) mod owners */
    atomic_bool *lost;               /* [owners] this rank has found the delegate dead and acted on it */
    atomic_bool in_file[MPIOX_FILE_RANGES]; /* its owner is dead, and no delegate owns it or ever will */
    /* The rank that moves ranges uses these under mpiox_forwarded_migrate_lock(): */
    bool *idle; /* [owners] not of this job now */
    /* Owner by range, as far as it knows. Accessing threads change owner_of: writes that they have collected for an old
     * owner go first. */
    int16_t placed[MPIOX_FILE_RANGES];
    struct mpiox_forwarded *remapped_next; /* in the list of files whose ranges move with the arbiter's map */
    mpiox_forwarded_trace *traces;         /* [owners] where this rank has written at each delegate elsewhere */
    mpiox_stats_delegated stats;           /* counters of what this rank has accessed through the delegates */
    mpiox_independent_counters direct;     /* of what went straight to the file; not added to the file's own */
    atomic_bool used;                      /* accessed through the delegates since the last flush barrier */
    atomic_bool bypassed;                  /* this rank has written by other means; what is cached may be old */
    mpiox_error unreported;                /* known to this rank only; mpiox_forwarded_flush_barrier.c locks it */
    pthread_mutex_t refreshing;            /* locked while a thread of this rank drops old pages */
    mpiox_forwarded_reader reader;         /* where this rank reads; the pages ahead are requested from it */
};

static inline mpiox_process *mpiox_forwarded_owner(const mpiox_forwarded *forwarded, int32_t owner)
{
    return &forwarded->service->delegates[owner];
}

static inline int32_t mpiox_forwarded_range_of(const mpiox_forwarded *forwarded, int64_t offset)
{
    return (int32_t)(offset / forwarded->unit_bytes % forwarded->ranges);
}

static inline void mpiox_forwarded_count_up(atomic_int_least64_t *counter, int64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* ---- mpiox_forwarded_request.c ----------------------------------------------------------------------------------- */

/* A request without data to one delegate, local or not; answers are in *slot. MPIOX_E_UNSUPPORTED: it does not serve.
 * */
int mpiox_forwarded_request(const mpiox_forwarded *forwarded, int32_t owner, mpiox_slot *slot);
/* The same to any delegate; slot->file is the caller's. */
int mpiox_forwarded_request_of(mpiox_process *delegate, mpiox_slot *slot);

/* ---- mpiox_forwarded_migrate.c ----------------------------------------------------------------------------------- */

/* Move a page range. False: it could not be moved and stays where it is, or its old owner is dead, or has not owned it.
 * least: the move's least version, 0 if unknown; more than 0: both delegates claim the range, and `to` must still own
 * it. Between mpiox_forwarded_migrate_lock() and _unlock(), or before the file is open. Local, blocking. */
bool mpiox_forwarded_migrate_range(mpiox_forwarded *forwarded, int32_t range, int32_t from, int32_t to, int64_t least);
/* The range is moving at `from`. If its mover is dead, make the missing steps. Local, blocking, any thread. */
bool mpiox_forwarded_take_over(const mpiox_forwarded *forwarded, int32_t range, int32_t from);
/* MPIOX_OP_COMMIT of a range without owner. */
int mpiox_forwarded_commit(const mpiox_forwarded *forwarded, int32_t range, int32_t to, int64_t version);
/* One thread of the process moves ranges at a time. */
void mpiox_forwarded_migrate_lock(void);
void mpiox_forwarded_migrate_unlock(void);

/* ---- mpiox_forwarded_owners.c ------------------------------------------------------------------------------------ */

typedef struct mpiox_range_state { /* a delegate's answer about a range */
    int16_t owner;                 /* or MPIOX_RANGE_MOVING */
    int64_t version;
} mpiox_range_state;

/* MPIOX_OP_OWNER, `never`: with its promise. */
int mpiox_forwarded_ask_range(const mpiox_forwarded *forwarded, int32_t range, int32_t owner, bool never,
                              mpiox_range_state *out);
/* owner_of may change for ranges of this owner until end_change(): no write is collected for it. False: the owner does
 * not accept collected writes; call mpiox_forwarded_settle() first, since they must not overwrite later writes at
 * another owner. Local, blocking, any thread. */
bool mpiox_forwarded_begin_change(mpiox_forwarded *forwarded, int32_t owner);
void mpiox_forwarded_end_change(mpiox_forwarded *forwarded);
/* Query an owner for the ranges that it has given away, and update owner_of. take_over: finish moves whose mover is
 * dead. If the owner is dead, or begin_change() fails, owner_of stays: the next request shows why. Local, blocking, any
 * thread. */
void mpiox_forwarded_learn(mpiox_forwarded *forwarded, int32_t owner, bool take_over);
/* The same for `placed`, for the thread that moves ranges. */
void mpiox_forwarded_ask_owner(mpiox_forwarded *forwarded, int32_t owner);
/* Rank 0 has opened the file at all delegates: fill `placed`; a range without owner, or with two, gets one. False: a
 * delegate is dead. Local, blocking. */
bool mpiox_forwarded_find_owners(mpiox_forwarded *forwarded);

/* ---- mpiox_forwarded_failover.c ---------------------------------------------------------------------------------- */

/* The last known owner of some ranges is dead: set owner_of to the present owner, or set in_file. False: not yet, see
 * mpiox_forwarded_begin_change(). Local, blocking, any thread. */
bool mpiox_forwarded_failover(mpiox_forwarded *forwarded, int32_t owner);

/* ---- mpiox_forwarded_file.c -------------------------------------------------------------------------------------- */

/* This rank has found the delegate dead and marks it failed: when this returns, its bytes, and the copies at its
 * replica delegate, are in the file. */
void mpiox_forwarded_mark_failed(mpiox_forwarded *forwarded, int32_t owner);

/* The size of a file that this process may write (RLIMIT_FSIZE); a delegate has a limit of its own. Local. */
int64_t mpiox_forwarded_size_limit(void);

/* ---- mpiox_forwarded_hold.c -------------------------------------------------------------------------------------- */

/* The delegate is dead, and its bytes are in the file: end its part of a hidden name in its place. Local, blocking. */
void mpiox_forwarded_end_hidden(mpiox_forwarded *forwarded, int32_t owner);

/* ---- mpiox_forwarded_flush_barrier.c ----------------------------------------------------------------------------- */

/* Drop pages that may be old (mpiox_forwarded_bypass()). Local, blocking, any thread. A deferred error is the result.
 */
int mpiox_forwarded_refresh(mpiox_forwarded *forwarded, mpiox_error *error);

/* ---- mpiox_forwarded_errors.c ------------------------------------------------------------------------------------ */

/* The errors of this rank's share of the delegates in one flush barrier; start from {.path = of the file}. */
typedef struct mpiox_forwarded_late {
    const char *path;
    int64_t count;       /* ranges that could not be written */
    mpiox_error lowest;  /* count > 0: that at the lowest offset */
    int64_t past;        /* one past the last byte of all of them */
    mpiox_error request; /* a flush, an fsync, a close or a collective before that failed as a whole */
} mpiox_forwarded_late;

void mpiox_forwarded_late_add(mpiox_forwarded_late *late, const mpiox_error *error);
/* Take the errors of the file from one delegate, and print the first ones on standard error. Local, blocking. */
void mpiox_forwarded_late_take(mpiox_forwarded *forwarded, int32_t owner, mpiox_forwarded_late *late);
/* After the last one: print the number of errors that were not printed. */
void mpiox_forwarded_late_end(const mpiox_forwarded_late *late);
/* The errors of all ranks as one; MPIOX_OK: there are none. Collective; the same on all ranks. */
void mpiox_forwarded_late_agree(mpiox_forwarded *forwarded, const mpiox_forwarded_late *late, mpiox_error *error);
/* The errors of this rank alone. Local. */
mpiox_error mpiox_forwarded_late_alone(mpiox_forwarded *forwarded, const mpiox_forwarded_late *late);

/* ---- mpiox_forwarded_behind.c ------------------------------------------------------------------------------------ */

/* Repeats a write that a link has returned, at the present owners. Local, blocking. 0, or a code with *error. */
typedef int mpiox_forwarded_rewrite(mpiox_forwarded *forwarded, const mpiox_link_access *lost, mpiox_error *error);

/* Before the first write of the file that may be collected; calling it again is harmless. Local, any thread. */
void mpiox_forwarded_enlist(mpiox_forwarded *forwarded, mpiox_forwarded_rewrite *rewrite);
/* No write of the file is collected any more. Local, any thread. */
void mpiox_forwarded_delist(mpiox_forwarded *forwarded);
/* Repeat the writes, of any file, that the link to this delegate has collected and not delivered. *found: there were
 * some. 0, or the first failure's code with *error. Local, blocking, any thread. */
int mpiox_forwarded_settle(mpiox_forwarded *forwarded, int32_t owner, bool *found, mpiox_error *error);

/* ---- mpiox_forwarded_replica.c ----------------------------------------------------------------------------------- */

/* The shift that puts most copies on another node than their originals. 0: there is one owner, and no replica delegate.
 */
int32_t mpiox_replica_shift(const mpiox_service *service, int32_t owners);
/* Can copies outlive the close: is each on another node than its original, and does its delegate detect the original's
 * death? Local. */
bool mpiox_replica_lasts(const mpiox_service *service, int32_t owners);
/* Send the addresses of the originals' delegates to the replica delegates. Rank 0. False: one did not get them. */
bool mpiox_replica_introduce(const mpiox_forwarded *forwarded);
/* The replica delegate of this owner keeps the copies until the originals are in the file. Local, blocking. False: it
 * is dead. */
bool mpiox_replica_keep(const mpiox_forwarded *forwarded, int32_t owner);
/* The copies at one delegate fill their share of its memory: discard those whose originals are in the file. Local,
 * blocking. */
int mpiox_replica_trim(const mpiox_forwarded *forwarded, int32_t replica, mpiox_error *error);
/* The delegate is dead and, if possible, rescued: write the copies at its replica delegate to the file. Once for each
 * delegate. Local, blocking. False: there is no living replica delegate, or it could not write all of them. */
bool mpiox_replica_restore(mpiox_forwarded *forwarded, int32_t owner);
/* After a flush barrier, when all bytes are in the file: discard this rank's share of the copies. */
void mpiox_replica_discard(mpiox_forwarded *forwarded);

/* ---- mpiox_forwarded_trace.c ------------------------------------------------------------------------------------- */

/* File bytes within [first, past) are with a delegate elsewhere. Local, any thread. */
void mpiox_forwarded_trace_add(mpiox_forwarded *forwarded, int32_t owner, int64_t first, int64_t past);
/* All bytes are in the file, or have been reported. */
void mpiox_forwarded_trace_clear(mpiox_forwarded *forwarded);
/* Does this rank know of a delegate that has died? */
bool mpiox_forwarded_trace_knows_dead(const mpiox_forwarded *forwarded);

typedef enum mpiox_fate { /* of a delegate's bytes; of two ranks' answers the greater one is right */
                          MPIOX_FATE_ALIVE = 0, /* no rank knows that the delegate has died */
                          MPIOX_FATE_LOST,
                          MPIOX_FATE_IN_FILE,
                          MPIOX_FATE_DAMAGED /* some could not be written: their errors were taken just now */
} mpiox_fate;

/* At the end of a flush barrier, when the fate of each owner's bytes is known: *error names the range of the lost
 * bytes, or is MPIOX_OK if no rank had written there. Collective; the same on all ranks. */
void mpiox_forwarded_trace_report(const mpiox_forwarded *forwarded, const unsigned char fates[MPIOX_FILE_RANGES],
                                  mpiox_error *error);

/* ---- mpiox_forwarded_ahead.c ------------------------------------------------------------------------------------- */

/* The first pages of a delegate among stream bytes [from, to), which the same access reads next: their number, at most
 * MPIOX_OP_AHEAD. Local. */
int32_t mpiox_forwarded_rest(const mpiox_forwarded *forwarded, int64_t origin, int64_t from, int64_t to, int32_t owner,
                             int64_t *pages);
/* After a read of this rank: if there is a stride, name the pages that will be read next to the delegates. Local; does
 * not wait. */
void mpiox_forwarded_read_ahead(mpiox_forwarded *forwarded, int64_t origin, int64_t position, int64_t length);

#endif
