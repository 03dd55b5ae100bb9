/*
 * mpiox_segment_guard.h - shared memory whose disk fails does not end the processes that use it.
 *
 * Problem.   A segment may be a file on a disk. When the disk fails, or somebody cuts the file, whoever touches a page
 *            of it is ended by SIGBUS: a rank of a program that has done nothing wrong.
 * Algorithm. A handler of SIGBUS puts private memory in the place of the page that cannot be had, and notes it. Who has
 *            used the segment asks afterwards. Any other SIGBUS goes to whoever handled it before.
 * Guarantee. Where nothing is lost after an access it was one of the shared memory. System calls find such pages, too:
 *            they say EFAULT, and nothing is noted.
 * Limits.    So many segments of a process. A program that installs a handler of its own later has taken this one's
 *            place. A thread that blocks SIGBUS is ended as before. Where a file is cut inside a page, the kernel puts
 *            zeros there, and says nothing.
 */
#ifndef MPIOX_SEGMENT_GUARD_H
#define MPIOX_SEGMENT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What private memory holds: zeros, but for a range of ones, and a word. */
typedef struct mpiox_segment_empty {
    const void *ones;
    int64_t ones_bytes;
    _Atomic uint32_t *word;
    uint32_t value;
} mpiox_segment_empty;

/* Until mpiox_segment_unguard(). False: no room, and SIGBUS ends the process as before. Any thread. */
bool mpiox_segment_guard(void *base, int64_t bytes, const mpiox_segment_empty *empty);
void mpiox_segment_unguard(const void *base);
/* If any was: Python has taken the handler away when it calls MPI_Finalize. */
void mpiox_segment_guard_again(void);
/* Is a page of these bytes private memory now? Any thread. */
bool mpiox_segment_is_lost(const void *start, int64_t bytes);

extern atomic_bool mpiox_segment_lost_some; /* cheaper: false: no page of any segment is */

#endif
