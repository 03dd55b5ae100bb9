/*
 * mpiox_wait.h - waiting on a 32-bit word in shared memory. Local and blocking; nothing here fails or allocates.
 *
 * Problem.   Ranks may outnumber cores, so a spinning rank starves the one that it waits for; a rank that sleeps must
 *            still let the MPI library make progress, because MPI promises it to a caller of a blocking routine.
 * Algorithm. A few pauses, a few sched_yield(), then futex sleeps of growing length; an idle callback runs between the
 *            steps (it makes MPI progress and does useful work). A waker uses mpiox_futex_set() or mpiox_futex_add().
 * Limit.     A lost peer (a cut link, a process that hangs or has died) never wakes a waiter. A thread can have a limit
 *            on a single wait, after which it calls a function of the caller, one after which it reports the wait, and
 *            another function that checks each half second whether the peers live. Only time in which this process
 *            polls counts: one that was stopped, by a scheduler or a debugger, has not waited.
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
    _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} mpiox_futex;

/* Called while waiting; returns true when it did useful work (waiting then starts again from its cheap steps). */
typedef struct mpiox_idle {
    bool (*work)(void *context); /* may be NULL */
    void *context;
} mpiox_idle;

/* Return the first value seen that differs from `old`. */
uint32_t mpiox_wait_while(mpiox_futex *word, uint32_t old, const mpiox_idle *idle);
/* Return once the value has reached `target` in wrap-around order ((int32_t)(value - target) >= 0). */
void mpiox_wait_reach(mpiox_futex *word, uint32_t target, const mpiox_idle *idle);
/* As mpiox_wait_while() without a callback, for threads that only wait; `old` when `seconds` have passed. */
uint32_t mpiox_wait_at_most(mpiox_futex *word, uint32_t old, double seconds);
/* Store with release order and wake every sleeper. */
void mpiox_futex_set(mpiox_futex *word, uint32_t value);
/* Add one and wake every sleeper. */
void mpiox_futex_add(mpiox_futex *word);

static inline uint32_t mpiox_futex_get(mpiox_futex *word)
{
    return atomic_load_explicit(&word->value, memory_order_acquire);
}

/* How long something has been waited for. Start from {0}, and again when there was a sign of it. */
typedef struct mpiox_waited {
    double last;    /* seconds of the monotonic clock, of the last step; 0: none yet */
    double seconds; /* so far */
    double looked;  /* seconds of the last call of is_over() */
    bool over;      /* what it returned */
    bool reported;
} mpiox_waited;

/* One step of polling: yields the core, after 0.2 ms by sleeps of 20 to 200 microseconds. Start from {0}. */
typedef struct mpiox_backoff {
    double since;        /* seconds; 0: not waiting yet */
    mpiox_waited waited; /* for the thread's limit */
} mpiox_backoff;
void mpiox_wait_backoff(mpiox_backoff *backoff);

/* A condition variable with the clock of mpiox_now(). */
void mpiox_wait_make_condition(pthread_cond_t *condition);
/* With the lock: until the condition is signalled, or `until`, seconds of mpiox_now(); INFINITY: at any time. Returns
 * after a second in any case: the caller asks again for what it waits for, and a missed wake-up delays it but does not
 * hang it. */
void mpiox_wait_condition(pthread_cond_t *condition, pthread_mutex_t *lock, double until);

/* ---- a limit ----------------------------------------------------------------------------------------------------- */

typedef struct mpiox_wait_limit {
    double seconds; /* that one wait may take without a sign of what is waited for; 0: any time */
    /* Called when it has; does not return. `what` and `number`: see mpiox_wait_for(). */
    void (*expired)(void *context, const char *what, int64_t number, double seconds);
    void *context;
    /* NULL, or called after each half second of a wait: can nobody bring what is waited for any more? If this is so,
     * the waiter checks once more whether it is there, and the next call has `again` set and does not return. */
    bool (*is_over)(void *awaited, const char *what, bool again);
    void *awaited;
    double report_s; /* after so long the next one is called, once a wait; 0: never */
    void (*report)(void *context, double seconds);
} mpiox_wait_limit;

/* From now on mpiox_wait_while(), mpiox_wait_reach() and mpiox_wait_backoff() have this limit in the calling thread;
 * NULL: none. Borrowed. Returns the one before, for the caller to set again when it is done. */
const mpiox_wait_limit *mpiox_wait_set_limit(const mpiox_wait_limit *limit);
/* From now on the calling thread waits for this, which is reported if it reaches the limit: static text and a number
 * that belongs behind it (-1: none). NULL: other ranks, or unknown. */
void mpiox_wait_for(const char *what, int64_t number);

/* Seconds of the monotonic clock. */
double mpiox_now(void);
/* Nanoseconds since 1970-01-01 UTC, by the clock of this host. */
int64_t mpiox_wall_ns(void);
/* A number that no other process has: random, or, if the kernel refuses random numbers (getrandom(2)), made of clock
 * and process. Not secret. */
uint64_t mpiox_unique(void);

#endif
