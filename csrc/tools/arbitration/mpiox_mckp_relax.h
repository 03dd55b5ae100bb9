/*
 * mpiox_mckp_relax.h - the linear relaxation of a multiple-choice knapsack: its multiplier, and a solution near it.
 *
 * Problem.    The dynamic programming is small when most options can be excluded beforehand. That takes the price of a
 *             unit of capacity at which the relaxation fills the knapsack, and a good solution.
 * Algorithm.  Steps from corner to corner of every class's hull, by gain per weight, best first (radix sort of the
 *             slopes, then a pass of insertion); take steps until one does not fit: its slope is the multiplier. Steps
 *             behind it that still fit improve the solution. The steps stay sorted while classes come and go: those of
 *             one class are merged in or left out in one pass.
 * Guarantees. Steps of one class stand in their order, so that every prefix is a choice of one corner per class.
 * Source.     Sinha and Zoltners (1979); Kellerer, Pferschy, Pisinger, "Knapsack Problems" (2004), Section 11.2.
 */
#ifndef MPIOX_MCKP_RELAX_H
#define MPIOX_MCKP_RELAX_H

#include "mpiox_mckp_table.h"

typedef struct mpiox_mckp_step {
    double slope;   /* gain per unit of weight */
    int32_t slot;   /* class */
    int32_t corner; /* from this corner to the next one */
    int32_t weight; /* that the step adds */
    int32_t unused; /* zero: 24 bytes without padding */
} mpiox_mckp_step;

typedef struct mpiox_mckp_relax {
    mpiox_mckp_step *steps, *spare;
    uint64_t *sorting; /* twice as many as steps */
    int64_t n, room;
    int32_t *corner; /* by slot: the corner that the solution takes */
    int64_t corner_room;
    double multiplier; /* price of a unit of capacity; 0 when every class gets its best option */
} mpiox_mckp_relax;

void mpiox_mckp_relax_clear(mpiox_mckp_relax *relax);

/* The steps of all classes; and of one that has come, or that has left `slot`. */
int mpiox_mckp_relax_build(mpiox_mckp_relax *relax, const mpiox_mckp_table *table);
int mpiox_mckp_relax_add(mpiox_mckp_relax *relax, const mpiox_mckp_table *table, int32_t slot);
void mpiox_mckp_relax_remove(mpiox_mckp_relax *relax, int32_t slot);

/* Find the multiplier and the solution. `lightest`: weight of the lightest options of all classes, <= capacity. */
int mpiox_mckp_relax_solve(mpiox_mckp_relax *relax, const mpiox_mckp_table *table, int64_t lightest);

#endif
