/*
 * mpiox_lockset.h - the granted locks of one object (or of one file): disjoint ranges in order, found and changed fast.
 *
 * Problem.   16,384 aggregators may own 10^7 locks, thousands of them on one object or all of them in one token space,
 *            and every request searches, removes some and inserts one.
 * Algorithm. A tree of three fixed levels, the last of them blocks of up to MPIOX_LOCKSET_BLOCK locks; a step costs
 *            three binary searches and moves at most one block. Positions are lock units, half-open [start, end). Locks
 *            of a set never overlap: that is the caller's duty. No MPI.
 */
#ifndef MPIOX_LOCKSET_H
#define MPIOX_LOCKSET_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

#define MPIOX_LOCKSET_BLOCK 32  /* locks of a block */
#define MPIOX_LOCKSET_GROUP 256 /* blocks of a group */
#define MPIOX_LOCKSET_WARM 16   /* searches at once */

typedef struct mpiox_lockset_lock {
    int64_t start, end; /* units; end may be INT64_MAX: to the end of file, wherever that will be */
    double free_at;     /* seconds: all data that its holder wrote under it is on the server */
    int32_t owner;      /* aggregator */
} mpiox_lockset_lock;

typedef struct mpiox_lockset {           /* zero-filled: an empty set */
    struct mpiox_lockset_group **groups; /* [n_groups], ascending; owned */
    int64_t *firsts;                     /* [n_groups] start of each group's first lock; owned */
    int32_t n_groups, capacity;          /* groups; room for them */
    int64_t count;                       /* locks */
} mpiox_lockset;

typedef struct mpiox_lockset_cursor { /* where a lock is; not valid any more after any other change of the set */
    int32_t group, block, slot;
} mpiox_lockset_cursor;

/* The first lock that ends behind `position`, or the end of the set. */
mpiox_lockset_cursor mpiox_lockset_seek(const mpiox_lockset *set, int64_t position);
/* Bring what searches for n <= MPIOX_LOCKSET_WARM positions will read into the processor's cache. Changes nothing. */
void mpiox_lockset_warm(const mpiox_lockset *set, const int64_t *positions, int32_t n);
/* The lock at a cursor; NULL at the end of the set. Its end, owner and time may be changed, its start only upwards and
 * by mpiox_lockset_raise(). */
mpiox_lockset_lock *mpiox_lockset_at(const mpiox_lockset *set, mpiox_lockset_cursor at);
mpiox_lockset_cursor mpiox_lockset_next(const mpiox_lockset *set, mpiox_lockset_cursor at); /* not from the end */
/* Step back in *at; false (and no step) at the first lock of the set. */
bool mpiox_lockset_back(const mpiox_lockset *set, mpiox_lockset_cursor *at);
void mpiox_lockset_raise(mpiox_lockset *set, mpiox_lockset_cursor at, int64_t start); /* start < the lock's end */
/* Take the lock at a cursor out; returns where the next one is now. */
mpiox_lockset_cursor mpiox_lockset_erase(mpiox_lockset *set, mpiox_lockset_cursor at);
/* Put a lock in before the one at the cursor (where its place is); 0 or MPIOX_E_NOMEM, the set as before. */
int mpiox_lockset_insert(mpiox_lockset *set, mpiox_lockset_cursor at, const mpiox_lockset_lock *lock);
void mpiox_lockset_free(mpiox_lockset *set); /* leaves it empty */

#endif
