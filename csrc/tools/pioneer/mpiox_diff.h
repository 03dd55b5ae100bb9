/*
 * mpiox_diff.h - the correspondence of two sequences: the smallest set of insertions and deletions.
 *
 * Problem.   The operations of the root process and of a child process are nearly the same, in the same order. The
 *            operations of one of them alone have to be found (He, Du, Narasimhamurthy, "PIONEER", section V-B, which
 *            uses diff), for millions of operations, in memory that grows with their number and not with that of the
 *            differences.
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

/* Elements are numbers 0 .. symbols - 1. common_a[i] and common_b[j] (the caller's, n and m bytes) become 1 where an
 * element has a counterpart, else 0: the k-th 1 of one corresponds to the k-th 1 of the other. *distance: number of
 * zeros in both. effort: 0 for no limit. Local. Memory: 16 (n + m) + symbols bytes, freed before it returns. Time:
 * O(n + m) for a subsequence, else O((n + m) + D min(D, effort)) as a rule, with D the differences that are left when
 * elements of one sequence alone have been put aside. MPIOX_OK, MPIOX_E_ARG (an element out of range, more than 2^30
 * elements), MPIOX_E_NOMEM. */
int mpiox_diff(const int32_t *a, int64_t n, const int32_t *b, int64_t m, int32_t symbols, int32_t effort,
               uint8_t *common_a, uint8_t *common_b, int64_t *distance, int *minimal);

#endif
