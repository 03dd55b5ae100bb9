/*
 * mpiox_auto_rounds.h - the time of a collective's rounds under a method, without waits for locks.
 *
 * Pure: no MPI, no I/O, no clock; every rank gets the same time from the same numbers. It allocates.
 */
#ifndef MPIOX_AUTO_ROUNDS_H
#define MPIOX_AUTO_ROUNDS_H

#include <stdint.h>

#include "mpiox_auto_systems.h"
#include "mpiox_partition.h"

typedef struct mpiox_auto_cost_case {
    const mpiox_geometry *geometry;  /* of a region that is not empty */
    const mpiox_auto_system *system; /* the lock protocol, and all speeds */
    int64_t window_bytes;            /* of one collective buffer */
    bool write;                      /* false: the collective reads */
} mpiox_auto_cost_case;

typedef struct mpiox_auto_rounds {
    double time;    /* seconds, of all rounds */
    int64_t rounds; /* of the busiest aggregator */
    int64_t meet;   /* requests at the busiest server, in the round with the most */
} mpiox_auto_rounds;

/* 0 or MPIOX_E_NOMEM. O(aggregators + servers + requests of a round), independent of the region's length. */
int mpiox_auto_rounds_count(const mpiox_auto_cost_case *c, const mpiox_partition_method *method, bool stripe_size_io,
                            mpiox_auto_rounds *out);

#endif
