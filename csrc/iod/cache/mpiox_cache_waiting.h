/*
 * mpiox_cache_waiting.h - clients that wait for a delegate: shown in its memory, and reported to the user.
 *
 * Problem.   A delegate that is alive and does not answer (stopped, its file system hangs, an error of this library)
 *            makes its clients wait, and the user would not know which process waits for which.
 * Algorithm. A client counts the slow steps of its wait. After a second it fills in an entry of the delegate's memory,
 *            which the status shows. After the seconds that the user has set, it calls the function that the process
 *            has set for reports: once for a wait, and for one wait of the process at a time.
 * Guarantee. Only time in which this process polls counts: a process that was stopped itself has not waited meanwhile.
 *            Nothing here ends a wait.
 */
#ifndef MPIOX_CACHE_WAITING_H
#define MPIOX_CACHE_WAITING_H

#include "mpiox_cache.h"

enum { /* waits that are not for the answer to a request (enum mpiox_op, above 0) */
       MPIOX_WAITS_FOR_SLOT = -1,
       MPIOX_WAITS_FOR_FRAME = -2,  /* a page on which the delegate works */
       MPIOX_WAITS_FOR_NAME = -3,   /* that of a file that was closed */
       MPIOX_WAITS_FOR_EARLIER = -4 /* the leftovers of an earlier job */
};

typedef struct mpiox_cache_wait { /* start from {0} */
    double last, seconds;         /* of the monotonic clock; polled so far */
    uint32_t beat;                /* of the delegate when the wait began */
    int32_t entry;                /* of waiters[], + 1; 0: none */
    bool reported;                /* the report of this wait has been made */
    const char *path;             /* of a file that is not known by its number, or NULL */
} mpiox_cache_wait;

/* How a process reports its waits. Plain data. */
typedef struct mpiox_cache_patience {
    double seconds; /* after which a wait is reported; 0: never */
    int32_t rank;   /* of the program; -1: not known */
    /* runs: the delegate has raised its beat since the wait began. path: "" where it is about no file. Any thread; does
     * not wait for the delegate. */
    void (*report)(const mpiox_cache *cache, int32_t op, const char *path, int64_t page, double seconds, bool runs);
} mpiox_cache_patience;

/* From now on in this process. Before threads use delegates. */
void mpiox_cache_set_patience(const mpiox_cache_patience *patience);
/* A slow step of a loop that polls, 1 ms or less after the one before: mpiox_cache_watch(), and the above. */
void mpiox_cache_wait_step(const mpiox_cache *cache, mpiox_cache_wait *wait, int32_t op, int32_t file, int64_t page);
/* The wait is over; also for one that never began. */
void mpiox_cache_wait_end(const mpiox_cache *cache, mpiox_cache_wait *wait);

#endif
