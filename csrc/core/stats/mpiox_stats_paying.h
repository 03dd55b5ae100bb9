/*
 * mpiox_stats_paying.h - would delegates pay for a file? An estimate from its ranks' accesses.
 *
 * Problem.   Users of many small accesses do not know that delegates would combine them into few large requests, while
 *            on a file system in memory delegates are slower.
 * Algorithm. The estimated time with delegates is the time of copying into pages plus the time of requests of whole
 *            pages. A program without large requests does not show their cost, so the estimate is a range, for storage
 *            that moves 1 MiB in 10 ms and in 1 ms.
 * Guarantee. There is an estimate only under three conditions. Small accesses took nearly all the time. They blocked in
 *            the file system (memory, a page cache or a busy machine do not block there). Together they fill their
 *            range of the file, which each rank passes in steps shorter than a page. Pure, but for mpiox_stats_waits().
 */
#ifndef MPIOX_STATS_PAYING_H
#define MPIOX_STATS_PAYING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct mpiox_stats_trail { /* where accesses of one direction went; any thread may raise it; begins as zeros */
    atomic_int_least64_t highest, lowest_from_top; /* end of the last byte; INT64_MAX - offset of the first one */
    atomic_int_least64_t previous, near;           /* offset of the last access; accesses a page or less from it */
    atomic_int_least64_t nanoseconds;              /* inside the accesses */
} mpiox_stats_trail;

typedef struct mpiox_stats_paying_way { /* of reads or of writes, over all ranks */
    double accesses, bytes, near;
    double first, last; /* the range of the file that the accesses lie in */
    double seconds;     /* summed over ranks */
} mpiox_stats_paying_way;

typedef struct mpiox_stats_paying {
    double ranks;                   /* number of ranks that made any access */
    double waits;                   /* waits that an access caused, of the rank with the fewest */
    mpiox_stats_paying_way ways[2]; /* reads, writes */
} mpiox_stats_paying;

/* An access of [first, last) has ended. */
void mpiox_stats_trail_add(mpiox_stats_trail *trail, int64_t first, int64_t last, int64_t nanoseconds);

/* How often this process has had to wait so far, for any reason. */
int64_t mpiox_stats_waits(void);

/* By which factor delegates would speed the accesses up: the least and the most. False: no evidence that they pay. */
bool mpiox_stats_paying_times(const mpiox_stats_paying *seen, double *least, double *most);

/* The same as a sentence with its evidence; empty without evidence. */
void mpiox_stats_paying_text(const mpiox_stats_paying *seen, char *text, int64_t text_bytes);

#endif
