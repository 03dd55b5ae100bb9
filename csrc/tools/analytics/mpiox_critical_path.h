/*
 * mpiox_critical_path.h - the critical files of a job, and the exclusive time of each: the time in which the job waits
 * for that file alone.
 *
 * Problem.   A job accesses many files at overlapping times, with pauses between. Its critical path is the time in
 *            which at least one file is accessed. Its critical files are the smallest set of files whose times cover
 *            the critical path. The exclusive time of a critical file is its share of the path.
 * Algorithm. IOMiner's sweep line. A path begins with the file that starts first. When the current file ends, the line
 *            continues with that file, among those that have started (at that very time included), which ends last. If
 *            none of them ends later, the path has ended, and the next one begins with the next start. Ties: of files
 *            that end at the same time the one that started first, then the first in the input; of files that start a
 *            path at the same time the one that ends last. The paper's heap leaves the choice open; the farthest end
 *            makes the set minimal, as for every cover of a line by intervals.
 * Guarantee. The same input gives the same answer on every machine, and in every order of the input if no two intervals
 *            of a group are equal. O(n log m) for n intervals in groups of m; O(n) where groups are sorted by start.
 * Source.    Wang et al., "IOMiner", Section II-D, Figure 3, Algorithm 2.
 */
#ifndef MPIOX_CRITICAL_PATH_H
#define MPIOX_CRITICAL_PATH_H

#include <stdint.h>

enum {
    MPIOX_CRITICAL_PATH_COVERED = 0,  /* other files cover its time */
    MPIOX_CRITICAL_PATH_CRITICAL = 1, /* a critical file */
    MPIOX_CRITICAL_PATH_EMPTY = 2,    /* starts and ends at the same time: no time to account for */
    MPIOX_CRITICAL_PATH_UNKNOWN = 3,  /* start or end is NaN */
    MPIOX_CRITICAL_PATH_REVERSED = 4, /* ends before it starts: not counted */
    MPIOX_CRITICAL_PATH_ENDLESS = 5   /* start or end is infinite: not counted */
};

/* Sweep over n intervals [start[i], end[i]). group (may be NULL: one group): intervals of a group stand side by side;
 * the caller sees to it. exclusive[i]: length of the file's part of the critical path, 0 unless critical. since (may be
 * NULL): where that part begins, NaN unless critical; it goes to end[i]. state[i]: one of the above. All arrays have n
 * elements. Memory: 24 bytes for each interval of the largest group, freed before it returns. Reentrant. MPIOX_OK or
 * MPIOX_E_NOMEM. */
int mpiox_critical_path(const int64_t *group, const double *start, const double *end, int64_t n, double *exclusive,
                        double *since, int8_t *state);

#endif
