/*
 * mpiox_lock_model_types.h - input and output of the lock model. Plain data; times are seconds, sizes bytes.
 */
#ifndef MPIOX_LOCK_MODEL_TYPES_H
#define MPIOX_LOCK_MODEL_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

typedef enum mpiox_lock_model_protocol {
    MPIOX_LOCK_MODEL_NONE = 0, /* no locks: what bandwidth and latency alone allow */
    MPIOX_LOCK_MODEL_SERVER,   /* Lustre: each server grants the extent locks of its object */
    MPIOX_LOCK_MODEL_TOKEN     /* GPFS: one space of byte-range tokens for the file, negotiated between clients */
} mpiox_lock_model_protocol;

typedef struct mpiox_lock_model_system { /* a file system; all times and rates finite, rates > 0 */
    int32_t protocol;                    /* mpiox_lock_model_protocol */
    int64_t granularity;                 /* bytes of a lock unit; 0: the stripe size */
    int64_t growth_bytes;                /* SERVER: how far a lock may grow where many meet; 0: as far as it gets */
    int32_t growth_holders;  /* SERVER: ... that is, where more locks or requests than this are at the object */
    int32_t forward_holders; /* SERVER: with more than this a lock does not grow downwards */
    int64_t rpc_bytes;       /* largest data request on the wire, >= 1 */
    double round_trip;       /* of a small message, client to server or client to client */
    double enqueue;          /* client: to send one lock request */
    double lock_service;     /* server or token manager: to handle one lock request or one cancel */
    double request_overhead; /* server: for one data request of at most rpc_bytes */
    double server_bandwidth; /* bytes per second of one server */
    double client_bandwidth; /* bytes per second of one aggregator */
    double commit;           /* server: from a write's transfer to its answer, in which others may be served */
    int64_t dirty_server;    /* a client's written data that is not on one server yet, bytes; 0: no such limit */
    int64_t dirty_client;    /* ... on all servers; both 0: no cache, a round ends when its data is on the servers */
} mpiox_lock_model_system;

typedef struct mpiox_lock_model_run {
    int64_t window_bytes; /* collective buffer, 1 .. MPIOX_PARTITION_MAX_OFFSET */
    bool stripe_size_io;  /* no request larger than a stripe or across a stripe boundary */
    bool reads;           /* shared locks; else writes */
    bool synchronise;     /* aggregators wait for each other at the end of each round */
    int32_t collectives;  /* >= 1; each accesses the region behind the one before; locks stay */
    bool shuffle;         /* random order of the aggregators, another one in each step */
    uint64_t seed;        /* ... by this */
    const int64_t *stop;  /* NULL; or another thread sets it to end the run early, with MPIOX_E_STOPPED */
    int64_t *done_bytes;  /* NULL; or what has been accessed so far, for other threads to read */
} mpiox_lock_model_run;

typedef struct mpiox_lock_model_counts { /* of one server; TOKEN: of requests and tokens that begin there */
    int64_t lock_requests;               /* requests to the server or token manager */
    int64_t grants;                      /* locks granted: one for each request */
    int64_t matches;                     /* accesses under a lock that their aggregator owned already */
    int64_t conflicts;                   /* lock requests that met another aggregator's lock in their required range */
    int64_t revocations;                 /* locks cancelled (SERVER) or cut (TOKEN) for such a request */
    int64_t shared_units;                /* lock units that more than one aggregator writes: false sharing */
    int64_t data_requests;               /* parts of file-system requests that this server serves */
    int64_t data_bytes;                  /* bytes of those requests */
    int64_t owner_changes; /* static: stripes' owners in file order on this server, each change one; all collectives */
    int64_t aggregators;   /* distinct aggregators that access this server */
    int64_t smallest, largest; /* of its data requests, bytes; 0: it has none */
} mpiox_lock_model_counts;

#define MPIOX_LOCK_MODEL_SIZES 64

typedef struct mpiox_lock_model_outcome {
    mpiox_lock_model_counts *servers;      /* the caller's: geometry.servers of them, set by the simulation */
    int64_t sizes[MPIOX_LOCK_MODEL_SIZES]; /* file-system requests of [2^i, 2^(i+1)) bytes */
    int64_t rounds, steps;                 /* of all collectives; of all rounds */
    int32_t aggregators_used;              /* after the method's own adjustment */
    double time;                           /* seconds: when the last aggregator has finished */
    int64_t bytes;                         /* accessed */
} mpiox_lock_model_outcome;

#endif
