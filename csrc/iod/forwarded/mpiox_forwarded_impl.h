/*
 * mpiox_forwarded_impl.h - the struct behind mpiox_forwarded.h. Private to csrc/iod/forwarded.
 */
#ifndef MPIOX_FORWARDED_IMPL_H
#define MPIOX_FORWARDED_IMPL_H

#include "mpiox_cache_page.h"
#include "mpiox_forwarded.h"

/* Where this rank reads, for mpiox_forwarded_ahead.c. Guarded by `lock`, which is only tried: a second thread that
 * reads at the same moment leaves no trace. */
typedef struct mpiox_forwarded_reader {
    pthread_mutex_t lock;
    int64_t position, length; /* of the last read, stream bytes */
    int64_t stride;           /* from the one before it to the last one */
    int32_t streak;           /* reads in a row that kept the stride */
    int64_t asked;            /* pages up to this one (in the direction of the stride) have been asked for */
} mpiox_forwarded_reader;

/* Where this rank has written since the last flush barrier at a delegate elsewhere, for mpiox_forwarded_trace.c: file
 * bytes. */
typedef struct mpiox_forwarded_trace {
    atomic_int_least64_t first, past;
    atomic_bool lost; /* what the delegate held */
} mpiox_forwarded_trace;

struct mpiox_forwarded {
    mpiox_file *file;        /* borrowed */
    mpiox_service *service;  /* borrowed; the delegates in use are its first `owners` ones */
    mpiox_decision decision; /* of the openers */
    int32_t owners, ranges;
    int64_t page_bytes, unit_bytes;
    int32_t *index;                                   /* [owners] of the file record at each delegate */
    _Atomic int16_t owner_of[MPIOX_FILE_RANGES];      /* as far as this rank knows */
    atomic_int_least64_t accesses[MPIOX_FILE_RANGES]; /* of pages, by this rank, since the last balance */
    bool any_remote;
    pthread_mutex_t ordering; /* held while a write is collected, and while owner_of changes */
    atomic_uint changes;      /* of owner_of */
    bool behind_close;        /* closing does not wait until its bytes are written */
    bool collects;            /* small writes to delegates elsewhere may be collected */
    struct {                  /* mpiox_forwarded_behind.c */
        atomic_bool listed;
        struct mpiox_forwarded *next;
        int (*rewrite)(struct mpiox_forwarded *, const mpiox_link_access *, mpiox_error *);
    } behind;
    struct mpiox_forwarded *replica; /* acknowledgement level replica: the copies of dirty pages; else NULL */
    int32_t shift;                   /* of the copies: pages of owner i are copied to delegate (i + shift) mod owners */
    atomic_bool *lost;               /* [owners] this rank has found the delegate dead and acted on it */
    int32_t claimable;               /* the first so many ranges: mpiox_forwarded_claim.c */
    atomic_bool claimed[MPIOX_FILE_RANGES]; /* this rank has asked for it, or it cannot be given away */
    atomic_bool in_file[MPIOX_FILE_RANGES]; /* its owner is dead, and nobody has had it since, or ever will */
    /* Under mpiox_forwarded_migrate_lock(), of the rank that moves ranges: */
    bool *idle;                        /* [owners] not of this job now */
    int16_t placed[MPIOX_FILE_RANGES]; /* owner by range, as far as it knows. owner_of is left to those who access: what
                                          they have collected for an old owner goes before anything to the new one */
    struct mpiox_forwarded *remapped_next;
    mpiox_forwarded_trace *traces; /* [owners] */
    mpiox_stats_delegated stats;
    mpiox_independent_counters direct; /* of what went straight to the file; not added to the file's own */
    atomic_bool used;                  /* accessed through the delegates since the last flush barrier */
    atomic_bool bypassed;              /* this rank has written by other means; what is cached may be old */
    mpiox_error unreported;            /* which this rank alone knows of; mpiox_forwarded_flush_barrier.c locks it */
    pthread_mutex_t refreshing;        /* held while a thread of this rank drops that */
    mpiox_forwarded_reader reader;
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

/* A page range changes hands. False: it could not be moved; it stays where it is, or its old owner is dead, or has not
 * had it. least: of the move's version, 0 where nothing is known; more than 0: both say that they have it, and `to`
 * must have it still. Between the two below, or before the file is open. Local, blocking. */
bool mpiox_forwarded_migrate_range(mpiox_forwarded *forwarded, int32_t range, int32_t from, int32_t to, int64_t least);
/* The range is moving at `from`. If who moves it is gone, make the steps that are left. Local, blocking, any thread. */
bool mpiox_forwarded_take_over(const mpiox_forwarded *forwarded, int32_t range, int32_t from);
/* MPIOX_OP_COMMIT of a range that nobody has. */
int mpiox_forwarded_commit(const mpiox_forwarded *forwarded, int32_t range, int32_t to, int64_t version);
/* The first step of a move of a range that nobody has written to, to a delegate with so many dirty pages. MPIOX_E_ARG:
 * refused, begun->arg[1] is its owner as far as is known there. Between the two below, as those that follow. */
int mpiox_forwarded_begin_claim(const mpiox_forwarded *forwarded, int32_t range, int32_t from, int32_t to,
                                int64_t dirty, mpiox_slot *begun);
void mpiox_forwarded_end_claim(mpiox_forwarded *forwarded, int32_t from, mpiox_slot *begun); /* `placed`: who has it */
void mpiox_forwarded_give_up_claim(const mpiox_forwarded *forwarded, int32_t from, mpiox_slot *begun);
/* One thread of the process moves ranges at a time. */
void mpiox_forwarded_migrate_lock(void);
void mpiox_forwarded_migrate_unlock(void);

/* ---- mpiox_forwarded_claim.c ------------------------------------------------------------------------------------- */

/* Pages in a unit of a file that is never written. */
int32_t mpiox_forwarded_claim_unit(const mpiox_service *service, int32_t owners);
/* The file has just been opened: how many of its ranges, from the first on, are for who writes to them first. */
int32_t mpiox_forwarded_claimable(const mpiox_forwarded *forwarded);
/* This rank is about to write to the start of a unit: have its range moved here, if that can be. Local, blocking, any
 * thread. */
void mpiox_forwarded_claim(mpiox_forwarded *forwarded, int32_t range);

/* ---- mpiox_forwarded_owners.c ------------------------------------------------------------------------------------ */

typedef struct mpiox_range_state { /* what a delegate says of a range */
    int16_t owner;                 /* or MPIOX_RANGE_MOVING */
    int64_t version;
} mpiox_range_state;

/* MPIOX_OP_OWNER, `never`: with its promise. */
int mpiox_forwarded_ask_range(const mpiox_forwarded *forwarded, int32_t range, int32_t owner, bool never,
                              mpiox_range_state *out);
/* owner_of may be changed for ranges of this owner until end_change(): nothing is collected for it. False: something
 * was, and it does not take it; write it again first (mpiox_forwarded_settle()), since what follows may go to another
 * owner, and must not be overwritten by it. Local, blocking, any thread. */
bool mpiox_forwarded_begin_change(mpiox_forwarded *forwarded, int32_t owner);
void mpiox_forwarded_end_change(mpiox_forwarded *forwarded);
/* Take over, for accesses, to whom an owner has given ranges. take_over: those that move there, and whose mover is
 * gone, are moved on. Nothing changes when it is dead, or begin_change() fails: who asks it again sees why. Local,
 * blocking, any thread. */
void mpiox_forwarded_learn(mpiox_forwarded *forwarded, int32_t owner, bool take_over);
/* The same into `placed`, for who moves ranges. */
void mpiox_forwarded_ask_owner(mpiox_forwarded *forwarded, int32_t owner);
/* Rank 0 has opened the file at all delegates: fill `placed`; a range that nobody has, or two, is given to one.
 * False: a delegate is dead. Local, blocking. */
bool mpiox_forwarded_find_owners(mpiox_forwarded *forwarded);

/* ---- mpiox_forwarded_failover.c ---------------------------------------------------------------------------------- */

/* The owner, as far as this rank knows, of some ranges is dead: owner_of says afterwards who has them now, or in_file
 * is set. False: not yet, as mpiox_forwarded_begin_change() has it. Local, blocking, any thread. */
bool mpiox_forwarded_failover(mpiox_forwarded *forwarded, int32_t owner);

/* ---- mpiox_forwarded_file.c -------------------------------------------------------------------------------------- */

/* This rank has found the delegate dead and marks it failed: when this returns, what it held, and the copies at its
 * replica delegate, are in the file. */
void mpiox_forwarded_mark_failed(mpiox_forwarded *forwarded, int32_t owner);

/* ---- mpiox_forwarded_hold.c -------------------------------------------------------------------------------------- */

/* The delegate is dead, and what it held is in the file: nobody else says so of its part. Local, blocking. */
void mpiox_forwarded_end_hidden(mpiox_forwarded *forwarded, int32_t owner);

/* ---- mpiox_forwarded_flush_barrier.c ----------------------------------------------------------------------------- */

/* Drop what may be old (mpiox_forwarded_bypass()). Local, blocking, any thread. A deferred error that is found is
 * the result. */
int mpiox_forwarded_refresh(mpiox_forwarded *forwarded, mpiox_error *error);

/* ---- mpiox_forwarded_errors.c ------------------------------------------------------------------------------------ */

/* What went wrong at this rank's share of the delegates in one flush barrier; start from {.path = of the file}. */
typedef struct mpiox_forwarded_late {
    const char *path;
    int64_t count;       /* ranges that could not be written */
    mpiox_error lowest;  /* count > 0: that at the lowest offset */
    int64_t past;        /* one past the last byte of all of them */
    mpiox_error request; /* a flush, an fsync, a close or a collective before that failed as a whole */
} mpiox_forwarded_late;

void mpiox_forwarded_late_add(mpiox_forwarded_late *late, const mpiox_error *error);
/* Take the errors of the file from one delegate; the first ones are said on standard error. Local, blocking. */
void mpiox_forwarded_late_take(mpiox_forwarded *forwarded, int32_t owner, mpiox_forwarded_late *late);
/* All have been taken: say how many more there were. */
void mpiox_forwarded_late_end(const mpiox_forwarded_late *late);
/* Those of all ranks as one error; MPIOX_OK: there are none. Collective; the same on all ranks. */
void mpiox_forwarded_late_agree(mpiox_forwarded *forwarded, const mpiox_forwarded_late *late, mpiox_error *error);
/* Those of this rank alone. Local. */
mpiox_error mpiox_forwarded_late_alone(mpiox_forwarded *forwarded, const mpiox_forwarded_late *late);

/* ---- mpiox_forwarded_behind.c ------------------------------------------------------------------------------------ */

/* Makes a write again that a link has given back, to the owners of now. Local, blocking. 0, or a code with *error. */
typedef int mpiox_forwarded_rewrite(mpiox_forwarded *forwarded, const mpiox_link_access *lost, mpiox_error *error);

/* Before the first write of the file that may be collected; more than once does no harm. Local, any thread. */
void mpiox_forwarded_enlist(mpiox_forwarded *forwarded, mpiox_forwarded_rewrite *rewrite);
/* Nothing of the file is collected any more. Local, any thread. */
void mpiox_forwarded_delist(mpiox_forwarded *forwarded);
/* Writes, of any file, that the link to this delegate has collected and not delivered are made again. *found: there
 * were some. 0, or the first failure's code with *error. Local, blocking, any thread. */
int mpiox_forwarded_settle(mpiox_forwarded *forwarded, int32_t owner, bool *found, mpiox_error *error);

/* ---- mpiox_forwarded_replica.c ----------------------------------------------------------------------------------- */

/* Which shift puts most copies on another node than their originals. 0: one owner, hence nobody to hold copies. */
int32_t mpiox_replica_shift(const mpiox_service *service, int32_t owners);
/* Can copies outlive the close: is each on another node than its original, whose death is found out there? Local. */
bool mpiox_replica_lasts(const mpiox_service *service, int32_t owners);
/* The delegates that hold the copies are told where the originals' delegates are. Rank 0. False: one was not. */
bool mpiox_replica_introduce(const mpiox_forwarded *forwarded);
/* The replica delegate of this owner keeps the copies until the originals are in the file. Local, blocking. False: it
 * is dead. */
bool mpiox_replica_keep(const mpiox_forwarded *forwarded, int32_t owner);
/* The copies at one delegate fill its share of memory: discard those whose originals are in the file. Local, blocking.
 * */
int mpiox_replica_trim(const mpiox_forwarded *forwarded, int32_t replica, mpiox_error *error);
/* The delegate is dead and, if it could be, rescued: bring the copies at its replica delegate to the file. Once for
 * each delegate. Local, blocking. False: it has no replica delegate, or none any more, or not all could be written. */
bool mpiox_replica_restore(mpiox_forwarded *forwarded, int32_t owner);
/* A flush barrier is over: everything is in the file. This rank's share of the copies is discarded. */
void mpiox_replica_discard(mpiox_forwarded *forwarded);

/* ---- mpiox_forwarded_trace.c ------------------------------------------------------------------------------------- */

/* File bytes within [first, past) are with a delegate elsewhere. Local, any thread. */
void mpiox_forwarded_trace_add(mpiox_forwarded *forwarded, int32_t owner, int64_t first, int64_t past);
/* Everything is in the file, or has been reported. */
void mpiox_forwarded_trace_clear(mpiox_forwarded *forwarded);
/* Does this rank know of a delegate that has taken along what it held? */
bool mpiox_forwarded_trace_is_lost(const mpiox_forwarded *forwarded);
/* At the end of a flush barrier, when some rank knows of one: *error says where the bytes lay, or nothing had been
 * written there and it is MPIOX_OK. Collective; the same on all ranks. */
void mpiox_forwarded_trace_report(const mpiox_forwarded *forwarded, mpiox_error *error);

/* ---- mpiox_forwarded_ahead.c ------------------------------------------------------------------------------------- */

/* The first pages of a delegate among stream bytes [from, to), which the same access reads next: their number, at most
 * MPIOX_OP_AHEAD. Local. */
int32_t mpiox_forwarded_rest(const mpiox_forwarded *forwarded, int64_t origin, int64_t from, int64_t to, int32_t owner,
                             int64_t *pages);
/* After a read of this rank: tell the delegates which pages will be read next, if a stride shows. Local; waits for
 * nothing. */
void mpiox_forwarded_read_ahead(mpiox_forwarded *forwarded, int64_t origin, int64_t position, int64_t length);

#endif
