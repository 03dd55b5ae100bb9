/*
 * mpiox_mckp.h - exact multiple-choice knapsack for jobs that come and go: who gets how many I/O nodes.
 *
 * Problem.    One option of every job, I/O nodes within the pool, the largest sum of bandwidths, again whenever a job
 *             begins or ends, in microseconds.
 * Algorithm.  The table (mpiox_mckp_table.h) reduces classes, the relaxation (mpiox_mckp_relax.h) gives the price L
 *             of a unit of capacity. With it, sum over classes of max(value - L weight) + L capacity bounds every
 *             choice from above; an option whose own value - L weight lies below its class's best by more than the
 *             bound lies above a known solution is in no best choice. What is left, the core, goes through the
 *             dynamic programming (mpiox_mckp_dp.h), first with options of small loss only: its solution proves most
 *             of the others away. Between two solutions the reduced classes and the sorted steps stay: a job that
 *             comes or goes costs its own options, one pass over the classes and the core.
 * Guarantees. Exact for values rounded as the table says, and the result depends on the classes that are there only,
 *             not on how they came: least total weight among the best, then as in mpiox_mckp_dp.h, in the order of
 *             keys. Options are excluded only when they are in no best choice at all, so that ties are decided alike.
 *             Where no option can be excluded (all values proportional to weights) the time is that of the dynamic
 *             programming.
 * Source.     Section 3.1 of the arbitration paper; the bound: Dyer, Riha, Walker, "A hybrid dynamic
 *             programming/branch-and-bound algorithm for the multiple-choice knapsack problem" (1995); the core:
 *             Pisinger (1995).
 */
#ifndef MPIOX_MCKP_H
#define MPIOX_MCKP_H

#include <stdint.h>

#include "mpiox_error.h"

#define MPIOX_MCKP_INFEASIBLE 1 /* the lightest options do not fit together, or a class has none that fits */

typedef struct mpiox_mckp mpiox_mckp;

typedef struct mpiox_mckp_result {
    double value, bound; /* of the choice; of the linear relaxation: value <= bound */
    int64_t weight;      /* of the choice */
    int64_t classes;     /* of which choices were stored */
    int64_t core;        /* classes that the dynamic programming decided */
    int64_t operations;  /* of the dynamic programming */
} mpiox_mckp_result;

int mpiox_mckp_create(int64_t capacity, mpiox_mckp **solver);
void mpiox_mckp_free(mpiox_mckp *solver);

/* A class comes, or goes; see mpiox_mckp_table_add() and mpiox_mckp_table_remove(). */
int mpiox_mckp_add(mpiox_mckp *solver, int64_t key, int64_t n, const int32_t *weights, const double *values);
int mpiox_mckp_remove(mpiox_mckp *solver, int64_t key);

/* Make room for so many more options, where their number is known beforehand. */
int mpiox_mckp_expect(mpiox_mckp *solver, int64_t options);

/* All classes go; the memory stays for others: fresh memory costs the kernel more than a solution does. */
void mpiox_mckp_empty(mpiox_mckp *solver);

/* Another capacity: everything is reduced again. */
int mpiox_mckp_set_capacity(mpiox_mckp *solver, int64_t capacity);

/* Classes there are; their keys in order, up to `room` of them. */
int64_t mpiox_mckp_keys(const mpiox_mckp *solver, int64_t *keys, int64_t room);

/* Solve. choices[i]: the option, as given, of the i-th class in the order of keys; room for `room` of them.
 * MPIOX_MCKP_INFEASIBLE, and nothing is stored, where there is no choice; MPIOX_E_FULL: too little room. */
int mpiox_mckp_solve(mpiox_mckp *solver, int32_t *choices, int64_t room, mpiox_mckp_result *result);

#endif
