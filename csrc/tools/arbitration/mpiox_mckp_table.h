/*
 * mpiox_mckp_table.h - the classes of a multiple-choice knapsack: one class a job, one option a number of I/O nodes.
 *
 * Problem.    A class is a list of (weight, value) in any order, most of which cannot be part of a best solution.
 *             Classes come and go one at a time, and only the class that came should cost work.
 * Algorithm.  Values are rounded to multiples of a power of two, so coarse that the sum over all classes is a whole
 *             number below 2^52: all sums of doubles are then exact, whatever their order. Of each class the
 *             options are kept that fit the capacity and are worth more than every lighter one (dominance), by weight;
 *             of those, the upper hull (LP dominance). The caller's options are kept too: they are needed when the
 *             unit of values changes.
 * Guarantees. The unit depends on the largest value and the number of classes only, not on how the table came to be.
 *             Rounding changes a value by less than 2^-52 of (largest value x number of classes, each taken up to the
 *             next power of two).
 * Source.     "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms" (IPDPS 2021), Section
 *             3.1, equation 1; dominance: Sinha and Zoltners, "The multiple-choice knapsack problem" (1979).
 */
#ifndef MPIOX_MCKP_TABLE_H
#define MPIOX_MCKP_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

/* Limits: a table of the dynamic programming fits in memory, and counts fit in 32 bits. */
#define MPIOX_MCKP_MAX_CAPACITY (INT64_C(1) << 24)
#define MPIOX_MCKP_MAX_CLASSES (INT64_C(1) << 20)
#define MPIOX_MCKP_MAX_OPTIONS (INT64_C(1) << 28) /* of all classes */

typedef struct mpiox_mckp_class {
    int64_t key;     /* the caller's name of the class; classes are taken in ascending order of keys */
    int64_t first;   /* place of its options in the pools */
    int32_t given;   /* options as given */
    int32_t count;   /* options that are kept, from `first` on; 0: none fits the capacity */
    int32_t corners; /* options on the hull */
    double largest;  /* largest magnitude of a given value */
} mpiox_mckp_class;

typedef struct mpiox_mckp_table {
    int64_t capacity;
    int64_t n, max_classes; /* classes, and how many have room */
    int32_t *order;         /* the slots of the classes, by key */
    int32_t *free_slots;
    int64_t n_free, n_slots;
    mpiox_mckp_class *classes; /* by slot: a class keeps its slot until it goes */
    int64_t used, room, live;  /* pool entries handed out, allocated, and of classes that are there */
    int32_t *given_weight;     /* pools: as given */
    double *given_value;
    int32_t *weight; /* pools: kept, ascending; `value` ascends strictly too, in units */
    double *value;
    int32_t *option; /* index of a kept option among the given ones */
    double *slope;   /* from the corner before to this one, gain per weight */
    int32_t *corner; /* indices, from the class's `first`, of the options on the hull, ascending */
    int exponent;    /* a unit is 2^-exponent */
    bool reduced;    /* false until the first mpiox_mckp_table_reduce(): classes that come are only kept */
} mpiox_mckp_table;

int mpiox_mckp_table_init(mpiox_mckp_table *table, int64_t capacity);
void mpiox_mckp_table_clear(mpiox_mckp_table *table);

/* The class's place in `order`, or where it would stand: -1 - place. */
int64_t mpiox_mckp_table_find(const mpiox_mckp_table *table, int64_t key);

/* Make room for so many more options, where their number is known beforehand. */
int mpiox_mckp_table_expect(mpiox_mckp_table *table, int64_t options);

/* Add a class of n >= 1 options, weights >= 0, finite values; reduced with the unit in force. MPIOX_E_ARG: bad options
 * or a key that is there already; MPIOX_E_FULL: beyond the limits. Nothing has changed then. */
int mpiox_mckp_table_add(mpiox_mckp_table *table, int64_t key, int64_t n, const int32_t *weights, const double *values,
                         int32_t *slot);
/* Take a class out: *slot is the one that it had. MPIOX_E_ARG: there is none of that key. */
int mpiox_mckp_table_remove(mpiox_mckp_table *table, int64_t key, int32_t *slot);

/* All classes go; the memory stays. What comes then is reduced as in a new table. */
void mpiox_mckp_table_empty(mpiox_mckp_table *table);

/* Whether the unit in force is the one that the classes ask for; and put that in force, reducing all classes again. */
bool mpiox_mckp_table_is_current(const mpiox_mckp_table *table);
void mpiox_mckp_table_reduce(mpiox_mckp_table *table);

#endif
