/*
 * mpiox_plan_build.h - the functions with which a partition method builds its plan. Private to csrc/core/domains.
 *
 * A method reserves room for its sets once, then adds sets aggregator by aggregator, each in the order in which it is
 * processed. All arithmetic here stays inside int64_t for geometries within the limits of mpiox_partition.h.
 */
#ifndef MPIOX_PLAN_BUILD_H
#define MPIOX_PLAN_BUILD_H

#include <assert.h>

#include "mpiox_partition.h"

struct mpiox_plan_store {
    mpiox_stripe_set *sets;   /* of all domains; owned */
    int64_t n_sets, capacity; /* sets; room for them */
    bool overrun;             /* the method has added more sets than it reserved: a bug of the method */
    int64_t max_count;        /* largest count of any set, >= 1 */
    int64_t strided_length;   /* shortest piece of the sets with count > 1, or 0 when there is none */
    int64_t window_bytes;     /* the windows that window_base counts, or 0 */
    int64_t *window_base;     /* by set: number of windows in the earlier sets of the same domain */
};

/* Room for n_sets sets in all, before the first mpiox_plan_add(). 0 or MPIOX_E_NOMEM. */
int mpiox_plan_reserve(mpiox_plan *plan, int64_t n_sets);

/* Append `count` pieces of `length` bytes to the domain; aggregators in ascending order. Merges touching pieces. */
void mpiox_plan_add(mpiox_plan *plan, int32_t aggregator, int64_t offset, int64_t length, int64_t stride,
                    int64_t count);

/* Add the stripes s of [first, last] with s mod modulus == residue, as one set (nothing if no stripe is one). */
void mpiox_plan_add_cyclic(mpiox_plan *plan, int32_t aggregator, int64_t first, int64_t last, int64_t modulus,
                           int64_t residue);

/* First and last stripe that a region which is not empty touches. */
static inline int64_t mpiox_plan_first_stripe(const mpiox_geometry *geometry)
{
    return geometry->start / geometry->stripe_size;
}

static inline int64_t mpiox_plan_last_stripe(const mpiox_geometry *geometry)
{
    return (geometry->end - 1) / geometry->stripe_size;
}

/* Start of part i of n things in `parts` consecutive parts; sizes differ by one at most, the larger parts first. */
static inline int64_t mpiox_plan_part_start(int64_t n, int64_t parts, int64_t i)
{
    assert(n >= 0 && i >= 0 && i <= parts);
    int64_t remainder = n % parts;
    return n / parts * i + (i < remainder ? i : remainder);
}

/* The part that has thing k, 0 <= k < n, of the same parts. */
static inline int64_t mpiox_plan_part_of(int64_t n, int64_t parts, int64_t k)
{
    assert(k >= 0 && k < n);
    int64_t quotient = n / parts, remainder = n % parts;
    int64_t large = remainder * (quotient + 1); /* things in the larger parts */
    return k < large ? k / (quotient + 1) : remainder + (k - large) / quotient;
}

/* any_owner() of methods whose domains are one part of the region each. */
static inline bool mpiox_plan_any_owner(const mpiox_plan *plan)
{
    (void)plan;
    return true;
}

#endif
