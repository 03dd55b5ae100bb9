/*
 * mpiox_segment_guard.h - shared memory whose disk fails does not end the processes that use it.
 *
 * Problem.   A segment may be a file on a disk. When the disk fails, or the file is truncated, SIGBUS ends the process
 *            that touches a lost page: a rank of a program that has done nothing wrong.
 * Algorithm. A handler of SIGBUS replaces the lost page by private memory, and notes the loss. Users of the segment
 *            query the note afterwards. Any other SIGBUS goes to the handler that was installed before.
 * Guarantee. If no loss is noted after an access, the access was to shared memory. System calls on lost pages fail with
 *            EFAULT, and the handler notes nothing.
 * Limits.    A fixed number of segments in a process. A program that installs its own handler later replaces this one.
 *            SIGBUS ends a thread that blocks it, as before. If a file is truncated inside a page, the kernel fills the
 *            rest of the page with zeros and reports nothing.
 */
#ifndef MPIOX_SEGMENT_GUARD_H
#define MPIOX_SEGMENT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The contents of private memory: zeros, but for a range of ones, and a word. */
typedef struct mpiox_segment_empty {
    const void *ones;       /* start of the range of ones */
    int64_t ones_bytes;     /* length of that range; 0: none */
    _Atomic uint32_t *word; /* the word */
    uint32_t value;         /* of the word */
} mpiox_segment_empty;

/* Guard until mpiox_segment_unguard(). False: no room, and SIGBUS ends the process as before. Any thread. */
bool mpiox_segment_guard(void *base, int64_t bytes, const mpiox_segment_empty *empty);
void mpiox_segment_unguard(const void *base);
/* Install the handler again, if any segment is guarded: Python removes the handler when it calls MPI_Finalize. */
void mpiox_segment_guard_again(void);
/* Is a page of these bytes private memory now? Any thread. */
bool mpiox_segment_is_lost(const void *start, int64_t bytes);

extern atomic_bool mpiox_segment_lost_some; /* a cheaper test; false: no page of any segment is lost */

#endif
