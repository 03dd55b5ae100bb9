/*
 * mpiox_diff.h - the correspondence of two sequences: the smallest set of insertions and deletions.
 *
 * Problem.   The operations of the root process and of a child process are nearly the same, in the same order. The task
 *            is to find the operations that only one of them has (He, Du, Narasimhamurthy, "PIONEER", section V-B,
 *            which uses diff), for millions of operations, in memory that grows with their number and not with that of
 *            the differences.
 * Algorithm. Elements that do not occur in the other sequence cannot correspond to anything and are put aside; so are a
 *            common beginning and end. If one of the remaining sequences is a subsequence of the other, one pass along
 *            both finds it. Otherwise the middle of a shortest path is found from both ends at once, and the two halves
 *            are done in the same way. If the middle is further than `effort` differences from both ends, it is taken
 *            from the path that has come furthest by then.
 * Guarantee. The same input gives the same answer. *minimal reports whether it is the smallest one: always without a
 *            limit.
 * Source.    E. W. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1, 1986: section 4b.
 */
#ifndef MPIOX_DIFF_H
#define MPIOX_DIFF_H

#include <stdint.h>

/* One of the two sequences; the caller owns the arrays. */
typedef struct mpiox_diff_sequence {
    const int32_t *elements; /* numbers 0 .. symbols - 1 */
    int64_t count;           /* number of elements, at most 2^30 */
    uint8_t *common;         /* out, `count` bytes: 1 if the element has a counterpart, else 0 */
} mpiox_diff_sequence;

/* The k-th 1 of a->common corresponds to the k-th 1 of b->common. effort: 0 for no limit. Local. Memory: 16 (n + m) +
 * symbols bytes, with n and m elements, freed before it returns. Time: O(n + m) for a subsequence, else
 * O((n + m) + D min(D, effort)) as a rule, with D the differences that are left when elements of one sequence alone
 * have been put aside. MPIOX_OK, MPIOX_E_ARG (an element out of range, too many elements), MPIOX_E_NOMEM. */
int mpiox_diff(const mpiox_diff_sequence *a, const mpiox_diff_sequence *b, int32_t symbols, int32_t effort,
               int *minimal);

#endif
