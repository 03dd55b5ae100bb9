/* mpiox_lock_model_state.h - the state that the parts of the lock model share. Private to csrc/tools/lock_model. */
#ifndef MPIOX_LOCK_MODEL_STATE_H
#define MPIOX_LOCK_MODEL_STATE_H

#include "mpiox_lock_model_types.h"
#include "mpiox_lockset.h"
#include "mpiox_partition.h"

typedef struct locks_request { /* one file-system request of a step */
    int64_t offset, length;    /* in the file, bytes */
    int64_t first_piece;       /* index of its first piece in the step */
    int32_t pieces;            /* neighbours in the array of pieces, in file order */
    int32_t aggregator;        /* that issues it */
    double issued, locked;     /* when it starts; when all its locks are held */
    double stored;             /* when all its data is on the servers */
} locks_request;

typedef struct locks_piece { /* a request's bytes on one server: contiguous there */
    int64_t from, to;        /* bytes of the server's object */
    int64_t request;         /* index in the step */
    int64_t next;            /* the next piece of the step on this server, or -1 */
    double arrives;          /* when its data (a write) or its request (a read) is at the server */
    double stored;           /* when its client knows that it is on the server */
    int32_t server;          /* that has the bytes */
    int32_t number;          /* in its request, from 0 */
    bool first_visit;        /* of its aggregator to this server */
} locks_piece;

typedef struct locks_dirty { /* a write that may still be in its client's cache (mpiox_lock_model_cache.c) */
    int64_t from, bytes;     /* from: bytes of the list's earlier writes */
    double stored;           /* when it and all earlier ones are on the servers */
    int32_t next;            /* of the last: the first */
} locks_dirty;

typedef struct locks_cache { /* one limit: lists of what counts for it */
    int64_t limit;           /* bytes; 0: no such limit, no lists */
    int32_t *lasts;          /* by list: its newest entry, or 0 */
    locks_dirty *entries;    /* [0] is none */
    int64_t n, capacity;     /* entries; room for them */
    int32_t unused;          /* the first entry that was taken out, linked by `next`; 0: none */
} locks_cache;

typedef struct locks_range { /* the units that a piece needs */
    int64_t first, last;     /* half-open */
    int64_t piece;           /* index in the step */
    bool matched;            /* its aggregator has the lock already */
} locks_range;

typedef struct locks_shared { /* units that no single access covers: their aggregators (mpiox_lock_model_static.c) */
    struct locks_shared_entry *entries;
    int64_t n, capacity; /* capacity: 0 or a power of two */
} locks_shared;

typedef struct locks_state {
    const mpiox_lock_model_system *system; /* borrowed */
    const mpiox_lock_model_run *run;       /* borrowed */
    mpiox_geometry geometry;               /* of the collective at hand */
    int64_t unit;                          /* bytes */
    int32_t aggregators;                   /* used by the method */
    mpiox_lock_model_outcome *outcome;     /* the caller's */

    mpiox_lockset *sets;                    /* SERVER: one for each server; TOKEN: one */
    int32_t n_sets;                         /* sets in `sets` */
    uint64_t *seen;                         /* bit a * servers + s: aggregator a has accessed server s */
    uint64_t *readers;                      /* TOKEN, reads: bit a: it has a token */
    double *clocks;                         /* by aggregator: when it issues its next request */
    double *written;                        /* by aggregator: when all its data of this round is on the servers */
    double *links;                          /* by aggregator: when all that it has in its cache has left it */
    bool caching;                           /* writes return when their data is in the cache */
    locks_cache server_cache, client_cache; /* lists: a * servers + s; a */
    double *lock_clocks;                    /* by server (TOKEN: [0]): when the lock service is free */
    double *data_clocks;                    /* by server */
    int64_t *positions;                     /* TOKEN, by aggregator: unit where it is or was last */
    locks_shared shared;                    /* of the static count */
    int32_t *last_owners;                   /* by server, of the static count */

    int32_t *order;  /* of the aggregators */
    uint64_t random; /* state of the generator, from run->seed */

    locks_request *requests;          /* of the step */
    int64_t n_requests;               /* requests of the step */
    locks_piece *pieces;              /* of all requests of the step */
    int64_t n_pieces, piece_capacity; /* pieces; room for them */
    int64_t *heads, *tails;           /* by server: pieces of the step, or -1 */
    int32_t *touched;                 /* servers that have any */
    int32_t n_touched;                /* servers in `touched` */
    locks_range *ranges, *sorted;     /* of one server: room for one range of each aggregator */
} locks_state;

/* Take the locks of the step's pieces on one server; ranges: the units they need, in the step's order. */
int mpiox_lock_model_server_step(locks_state *state, int32_t server, int64_t n);
/* The same for reads: an aggregator's first lock at a server is shared and never called back. */
void mpiox_lock_model_server_read(locks_state *state, int32_t server);
/* Take the tokens of the step's requests. */
int mpiox_lock_model_token_step(locks_state *state);
/* Serve the data of the step and set the aggregators' clocks. */
int mpiox_lock_model_data_step(locks_state *state);
/* Note under the locks of the step when what was written under them is on the servers. */
void mpiox_lock_model_server_stored(locks_state *state);
void mpiox_lock_model_token_stored(locks_state *state);

int mpiox_lock_model_cache_set_up(locks_cache *cache, int64_t limit, size_t lists);
void mpiox_lock_model_cache_free(locks_cache *cache);
/* When a write of so many bytes that is made at `at` has room in the cache; >= at. Of a list, `at` never descends. */
double mpiox_lock_model_cache_room(locks_cache *cache, size_t list, double at, int64_t bytes);
/* Note a write that is on the servers at `stored`. */
int mpiox_lock_model_cache_add(locks_cache *cache, size_t list, int64_t bytes, double stored);
/* Count owner changes of the region at hand. MPIOX_E_STOPPED. */
int mpiox_lock_model_owner_changes(locks_state *state, const mpiox_plan *plan);
/* Note that an aggregator writes bytes [from, to) of an object (or of the file); server: whose count it is. */
int mpiox_lock_model_share(locks_state *state, int32_t object, int32_t aggregator, int64_t from, int64_t to);

static inline double locks_later(double a, double b)
{
    return a > b ? a : b;
}

static inline int64_t locks_divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Has another thread requested the end? */
static inline bool locks_stopped(const locks_state *state)
{
    return state->run->stop != NULL && __atomic_load_n(state->run->stop, __ATOMIC_RELAXED) != 0;
}

/* Seconds that a server needs for the data of a piece. */
static inline double locks_data_time(const mpiox_lock_model_system *system, int64_t bytes)
{
    return (double)locks_divide_up(bytes, system->rpc_bytes) * system->request_overhead +
           (double)bytes / system->server_bandwidth;
}

static inline bool locks_test_and_set(uint64_t *bits, uint64_t bit)
{
    const uint64_t mask = UINT64_C(1) << (bit & 63);
    const bool was = (bits[bit >> 6] & mask) != 0;
    bits[bit >> 6] |= mask;
    return was;
}

#endif
