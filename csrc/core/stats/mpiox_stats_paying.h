/*
 * mpiox_stats_paying.h - would delegates pay for a file? What the accesses of its ranks tell of it.
 *
 * Problem.   Statistics of many small accesses do not say that delegates would make few large requests of them, and on
 *            a file system in memory delegates are slower.
 * Algorithm. Time with delegates is estimated as copying into pages plus requests of whole pages. What a large request
 *            costs is not seen by a program that makes none: the estimate is a range, for storage that moves 1 MiB in
 *            10 ms and in 1 ms.
 * Guarantee. Nothing is said unless nearly all of the time was spent in accesses that are small. They must have had the
 *            file system block the process (memory and a page cache do not, a busy machine does neither). Together they
 *            must fill the range of the file in which they lie, each rank going through it in steps shorter than a
 *            page. Pure, but for mpiox_stats_waits().
 */
#ifndef MPIOX_STATS_PAYING_H
#define MPIOX_STATS_PAYING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct mpiox_stats_trail { /* where accesses of one direction went; any thread may raise it; begins as zeros */
    atomic_int_least64_t highest, lowest_from_top; /* end of the last byte; INT64_MAX - offset of the first one */
    atomic_int_least64_t previous, near;           /* offset of the last access; accesses a page or less from it */
    atomic_int_least64_t nanoseconds;
} mpiox_stats_trail;

typedef struct mpiox_stats_paying_way { /* of reads or of writes, over all ranks */
    double accesses, bytes, near;
    double first, last; /* the range of the file in which they lie */
    double seconds;     /* summed over ranks */
} mpiox_stats_paying_way;

typedef struct mpiox_stats_paying {
    double ranks; /* that made any access */
    double waits; /* times that an access made its process wait: of the rank with the fewest */
    mpiox_stats_paying_way ways[2];
} mpiox_stats_paying;

/* An access of [first, last) has ended. */
void mpiox_stats_trail_add(mpiox_stats_trail *trail, int64_t first, int64_t last, int64_t nanoseconds);

/* How often this process has had to wait so far, for whatever. */
int64_t mpiox_stats_waits(void);

/* How many times as fast the accesses would be: the least and the most. False: there is no evidence that they pay. */
bool mpiox_stats_paying_times(const mpiox_stats_paying *seen, double *least, double *most);

/* The same as a sentence with what it rests on; empty where there is no evidence. */
void mpiox_stats_paying_say(const mpiox_stats_paying *seen, char *text, int64_t text_bytes);

#endif
