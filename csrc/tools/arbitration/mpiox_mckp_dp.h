/*
 * mpiox_mckp_dp.h - the dynamic programming of a multiple-choice knapsack, and the best value of every capacity at
 * once.
 *
 * Problem.    Exactly one option of each class, weights within a capacity, the largest sum of values.
 * Algorithm.  Row i holds, for every capacity x, the best value of the first i classes: f_i(x) = max over the options
 *             of f_(i-1)(x - weight) + value. A row ends at the sum of the largest weights so far: behind it, it is
 *             level. Which options were taken is found by walking back through the rows; where all rows do not fit in
 *             the memory that is allowed for them, only every sqrt(n)-th is kept and the others are computed again, a
 *             block at a time.
 * Guarantees. Exact where sums of values are exact in doubles. Among the best choices, one of least total weight; among
 *             those, going through the classes from the last to the first, each takes its lightest option that leaves a
 *             best choice to the classes before it. Time O(capacity x options), memory O(capacity x sqrt(classes)).
 * Source.     The dynamic programming that Section 3.1 of the arbitration paper (mpiox_mckp_table.h) names; the walk
 *             back over checkpoints is Hirschberg's idea (1975).
 */
#ifndef MPIOX_MCKP_DP_H
#define MPIOX_MCKP_DP_H

#include <stdint.h>

#include "mpiox_error.h"

/* Classes of options: those of class i are [first[i], first[i + 1]) of weight and value, weights ascending. */
typedef struct mpiox_mckp_options {
    int64_t n;
    const int64_t *first;
    const int32_t *weight;
    const double *value;
} mpiox_mckp_options;

typedef struct mpiox_mckp_dp {
    double *rows; /* scratch memory, kept between calls */
    int64_t room;
    int64_t *reach;
    int64_t reach_room;
    int64_t operations; /* of the last call: additions and comparisons of one option at one capacity */
} mpiox_mckp_dp;

void mpiox_mckp_dp_clear(mpiox_mckp_dp *dp);

/* Solve; the lightest option of every class weighs 0. choice[i] is relative to first[i]. */
int mpiox_mckp_dp_solve(mpiox_mckp_dp *dp, const mpiox_mckp_options *options, int64_t capacity, int32_t *choice,
                        double *value);

/* best[x] = the largest value with capacity x, for x in 0..capacity; -INFINITY where no choice fits. Class k of `sets`
 * sets is class members[set * n + k] of the options; the result of a set is capacity + 1 numbers. */
int mpiox_mckp_dp_profiles(mpiox_mckp_dp *dp, const mpiox_mckp_options *options, int64_t sets, int64_t n,
                           const int32_t *members, int64_t capacity, double *best);

#endif
