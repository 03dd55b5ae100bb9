/*
 * mpiox_partition_cost.h - a closed-form estimate of how long a collective takes under a method. Pure: no MPI, no I/O.
 *
 * In O(log servers) per method, whatever the numbers of stripes and aggregators. It is for comparing methods, not for
 * predicting times: mpiio_ext.partitioning.locks does that, and judges the decisions by this estimate
 * (tests/unit/test_partition_auto.py).
 */
#ifndef MPIOX_PARTITION_COST_H
#define MPIOX_PARTITION_COST_H

#include "mpiox_partition.h"

typedef struct mpiox_partition_speeds { /* of a file system; the defaults are data in mpiox_partition_rules.c */
    double round_trip;                  /* of a message, seconds */
    double lock;                        /* to handle one lock request, at the server or token manager, seconds */
    double request;                     /* of a server for one request of up to 1 MiB, besides the data, seconds */
    double server, aggregator;          /* bytes a second of one */
} mpiox_partition_speeds;

typedef struct mpiox_partition_cost_case {
    const mpiox_geometry *geometry; /* of a region that is not empty */
    mpiox_lock_protocol lock;
    const mpiox_partition_speeds *speeds;
    int64_t window_bytes;
    bool write;
} mpiox_partition_cost_case;

/* Seconds, in the order of magnitude. stripe_size_io: with requests of one stripe at most. */
double mpiox_partition_cost(const mpiox_partition_cost_case *c, const mpiox_partition_method *method,
                            bool stripe_size_io);

#endif
