/*
 * mpiox_wait.h - waiting on a 32-bit word in shared memory. Local and blocking; nothing here fails or allocates.
 *
 * Problem.   Ranks may outnumber cores, so a spinning rank starves the rank that it waits for. A rank that sleeps must
 *            still let the MPI library make progress, because MPI promises it to a caller of a blocking routine.
 * Algorithm. A few pauses, a few sched_yield(), then futex sleeps of growing length; an idle callback runs between the
 *            steps (it makes MPI progress and does useful work). A waker uses mpiox_futex_set() or mpiox_futex_add().
 * Limit.     A lost peer (a cut link, a process that hangs or has died) never wakes a waiter. So a thread can have two
 *            limits on a single wait: one after which the waiter reports the wait, and one after which it calls a
 *            function of the caller. Another function checks each half second whether the peers live. Only time in
 *            which this process polls counts: a process that a scheduler or debugger has stopped has not waited.
 * Promise.   No lost wake-up (the futex compares the word); no sleep is longer than 1 ms without running the callback.
 * Source.    U. Drepper, "Futexes are tricky", 2011, section 4; futex(2).
 */
#ifndef MPIOX_WAIT_H
#define MPIOX_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A word that processes wait on, with the number of sleepers: waking costs no system call when there are none. */
typedef struct mpiox_futex {
    _Atomic uint32_t value;    /* the word */
    _Atomic uint32_t sleepers; /* processes and threads that sleep in the kernel */
} mpiox_futex;

/* Called while waiting; returns true when it did useful work (waiting then starts again from its cheap steps). */
typedef struct mpiox_idle {
    bool (*work)(void *context); /* may be NULL */
    void *context;               /* of work */
} mpiox_idle;

/* Return the first value of the word that differs from `old`. */
uint32_t mpiox_wait_while(mpiox_futex *word, uint32_t old, const mpiox_idle *idle);
/* Return once the value has reached `target` in wrap-around order ((int32_t)(value - target) >= 0). */
void mpiox_wait_reach(mpiox_futex *word, uint32_t target, const mpiox_idle *idle);
/* As mpiox_wait_while() without a callback, for threads that only wait; returns `old` after `seconds`. */
uint32_t mpiox_wait_at_most(mpiox_futex *word, uint32_t old, double seconds);
/* Store with release order and wake every sleeper. */
void mpiox_futex_set(mpiox_futex *word, uint32_t value);
/* Add one and wake every sleeper. */
void mpiox_futex_add(mpiox_futex *word);

static inline uint32_t mpiox_futex_get(mpiox_futex *word)
{
    return atomic_load_explicit(&word->value, memory_order_acquire);
}

/* The time of one wait. The caller starts from {0}, and again after a sign of life from its peers. */
typedef struct mpiox_waited {
    double last;    /* seconds of the monotonic clock at the last step; 0: none yet */
    double seconds; /* length of the wait so far */
    double looked;  /* seconds of the last call of is_over() */
    bool over;      /* the last result of is_over() */
    bool reported;  /* report() was called for this wait */
} mpiox_waited;

/* One step of polling: yields the core, after 0.2 ms by sleeps of 20 to 200 microseconds. Start from {0}. */
typedef struct mpiox_backoff {
    double since;        /* seconds; 0: not waiting yet */
    mpiox_waited waited; /* for the thread's limit */
} mpiox_backoff;
void mpiox_wait_backoff(mpiox_backoff *backoff);

/* A condition variable with the clock of mpiox_now(). */
void mpiox_wait_make_condition(pthread_cond_t *condition);
/* With the lock: wait until the condition is signalled, or `until`, seconds of mpiox_now(); INFINITY: at any time.
 * Returns after a second in any case, and the caller checks its condition again: a missed wake-up delays the caller but
 * does not hang it. */
void mpiox_wait_condition(pthread_cond_t *condition, pthread_mutex_t *lock, double until);

/* ---- a limit ----------------------------------------------------------------------------------------------------- */

typedef struct mpiox_wait_limit {
    double seconds; /* limit of one wait without a sign of life from the peers; 0: none */
    /* Called at the limit; does not return. `what` and `number`: see mpiox_wait_for(). */
    void (*expired)(void *context, const char *what, int64_t number, double seconds);
    void *context; /* of expired() and report() */
    /* NULL, or called after each half second of a wait: have all peers died that could end the wait? If so, the waiter
     * checks its condition once more; the next call has `again` set and does not return. */
    bool (*is_over)(void *awaited, const char *what, bool again);
    void *awaited;                                 /* of is_over() */
    double report_s;                               /* after so long the wait is reported, once a wait; 0: never */
    void (*report)(void *context, double seconds); /* the report after report_s seconds; returns */
} mpiox_wait_limit;

/* From now on mpiox_wait_while(), mpiox_wait_reach() and mpiox_wait_backoff() have this limit in the calling thread;
 * NULL: none. Borrowed. Returns the old limit, which the caller sets again later. */
const mpiox_wait_limit *mpiox_wait_set_limit(const mpiox_wait_limit *limit);
/* From now on the calling thread waits for this: a report or an error at the limit names it. `what`: static text,
 * `number`: printed behind it (-1: none). NULL: other ranks, or unknown. */
void mpiox_wait_for(const char *what, int64_t number);

/* Seconds of the monotonic clock. */
double mpiox_now(void);
/* Nanoseconds since 1970-01-01 UTC, by the clock of this host. */
int64_t mpiox_wall_ns(void);
/* A number that no other process has: random, or made of clock and process if the kernel refuses random numbers
 * (getrandom(2)). Not secret. */
uint64_t mpiox_unique(void);

#endif
