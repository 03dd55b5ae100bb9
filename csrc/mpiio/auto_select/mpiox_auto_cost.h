/*
 * mpiox_auto_cost.h - an estimate of how long a collective takes under a method. Pure: no MPI, no I/O, no clock.
 */
#ifndef MPIOX_AUTO_COST_H
#define MPIOX_AUTO_COST_H

#include "mpiox_auto_rounds.h"
#include "mpiox_partition.h"

/* How many stripes a region that is not empty touches. */
static inline int64_t mpiox_auto_stripes(const mpiox_geometry *geometry)
{
    return (geometry->end - 1) / geometry->stripe_size - geometry->start / geometry->stripe_size + 1;
}

static inline int64_t mpiox_auto_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Is a domain one part of the file, or a few parts, so that its requests may span stripes? */
bool mpiox_auto_is_contiguous(const mpiox_partition_method *method, const mpiox_geometry *geometry);

/* *seconds = the estimate; stripe_size_io: with requests of one stripe at most. 0 or MPIOX_E_NOMEM. */
int mpiox_auto_cost(const mpiox_auto_cost_case *c, const mpiox_partition_method *method, bool stripe_size_io,
                    double *seconds);

/* Seconds until the owners of locks and pages under another method have released them, including the writing of
 * `unwritten` bytes of the region. An upper bound: pages may have been written long ago. */
double mpiox_auto_cost_of_change(const mpiox_auto_cost_case *c, const mpiox_partition_method *held, int64_t unwritten);

#endif
