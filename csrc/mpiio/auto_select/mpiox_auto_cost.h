/*
 * mpiox_auto_cost.h - a closed-form estimate of how long a collective takes under a method. Pure: no MPI, no I/O.
 *
 * In O(log servers) per method, whatever the numbers of stripes and aggregators. It finds the candidates among
 * methods; the lock model decides between them (mpiox_auto_trial.h), and predicts times.
 */
#ifndef MPIOX_AUTO_COST_H
#define MPIOX_AUTO_COST_H

#include "mpiox_lock_model_types.h"
#include "mpiox_partition.h"

typedef struct mpiox_auto_cost_case {
    const mpiox_geometry *geometry;        /* of a region that is not empty */
    const mpiox_lock_model_system *system; /* who locks, and how fast all is */
    int64_t window_bytes;
    bool write;
} mpiox_auto_cost_case;

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

/* Is a domain one part of the file, or a few, so that its requests may span stripes? */
bool mpiox_auto_is_contiguous(const mpiox_partition_method *method, const mpiox_geometry *geometry);

/* Seconds, in the order of magnitude. stripe_size_io: with requests of one stripe at most. */
double mpiox_auto_cost(const mpiox_auto_cost_case *c, const mpiox_partition_method *method, bool stripe_size_io);

/* Seconds until those who hold locks and pages under another method have given them back, `unwritten` bytes of the
 * region first being written. An upper bound: pages may have been written long ago. */
double mpiox_auto_cost_of_change(const mpiox_auto_cost_case *c, const mpiox_partition_method *held, int64_t unwritten);

#endif
