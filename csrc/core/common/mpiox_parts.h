/*
 * mpiox_parts.h - the parts of a call's time: library, network, other ranks, file system.
 *
 *    const mpiox_part before = mpiox_parts_on(MPIOX_PART_WAITING);
 *    ...
 *    mpiox_parts_on(before);
 *
 * Problem.   A rank that waits for others also serves their requests and receives their messages. A clock around the
 *            wait would count that time twice.
 * Algorithm. A thread is in one part at any time. When the part changes, the thread reads the clock, and adds the time
 *            since the last change to the old part. If the tracer of PIONEER is in the process, it records waits and
 *            messages.
 * Guarantee. Parts do not overlap, and add up to the time between the first change and the last one.
 */
#ifndef MPIOX_PARTS_H
#define MPIOX_PARTS_H

#include <stdbool.h>

typedef enum mpiox_part {
    MPIOX_PART_OTHER,
    MPIOX_PART_PLANNING,
    MPIOX_PART_COPYING,
    MPIOX_PART_STORAGE,  /* requests to the file system */
    MPIOX_PART_WAITING,  /* until other ranks of the node have arrived, or all nodes agree */
    MPIOX_PART_MESSAGES, /* sending to other nodes, receiving, and waiting for these messages */
    MPIOX_PARTS
} mpiox_part;

typedef struct mpiox_parts {
    double seconds[MPIOX_PARTS]; /* by mpiox_part */
} mpiox_parts;

/* From now on the calling thread is in this part. Returns its old part, which the caller sets again later. */
mpiox_part mpiox_parts_on(mpiox_part part);
/* The calling thread's time in each part until its last change. */
const mpiox_parts *mpiox_parts_so_far(void);
/* Is there a tracer that records waits? */
bool mpiox_parts_are_recorded(void);
/* Report to the tracer that the library carries out the program's call. */
void mpiox_parts_own(void);

#endif
