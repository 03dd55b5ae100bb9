/*
 * mpiox_messages.h - the state of the transport between nodes; private to this folder. See mpiox_transport_messages.c.
 *
 *   exchange round      a round with work to do; the same on all nodes
 *   destination buffer  the bytes of a node's ranks in one exchange round for one aggregator of another node: a
 *                       sequence of entries (counted, never one piece of memory)
 *   share               one rank's part of a destination buffer
 *   chunk               an entry with its data: never cut
 *   step                as many chunks of an exchange round as fit one half of the node's pool
 *   channel             the rank of a node that sends the messages of an aggregator's destination buffers
 */
#ifndef MPIOX_MESSAGES_H
#define MPIOX_MESSAGES_H

#include "mpiox_integer.h"
#include "mpiox_transport.h"
#include "mpiox_wait.h"

enum {
    MPIOX_EXCHANGE_ROUNDS = 5, /* in memory: counted ahead two, worked on, and left by slow ranks */
    MPIOX_COUNTED_AHEAD = 2    /* exchange rounds */
};

/* The owner or kind of an entry, if it is not a rank whose view all nodes know. */
enum {
    MPIOX_ENTRY_END = -1,    /* nothing more of this node in this exchange round */
    MPIOX_ENTRY_RUNS = -2,   /* its pieces are listed (mpiox_typemap_runs.h) */
    MPIOX_ENTRY_EXTENT = -3, /* one extent of the file; reads only */
    MPIOX_ENTRY_FAILED = -4  /* its data could not be copied from a GPU; writes only */
};

/* Followed by run_bytes bytes of runs, then, if it carries data, by `length` bytes of data, padded to 8. */
typedef struct mpiox_message_entry {
    int32_t rank, run_bytes; /* owner of the data, or MPIOX_ENTRY_*; bytes of runs, 0 unless MPIOX_ENTRY_RUNS */
    int64_t position; /* in the rank's view; MPIOX_ENTRY_RUNS and MPIOX_ENTRY_EXTENT: file offset of the first byte */
    int64_t length;   /* data bytes; in a reply those that lie before the end of the file */
} mpiox_message_entry;

/* In shared memory, one for every exchange round in memory and every aggregator. All zeros between its uses. */
typedef struct mpiox_destination_buffer {
    _Alignas(MPIOX_LINE) _Atomic int64_t bytes; /* of all chunks, the end's not counted */
    _Atomic int64_t sooner;    /* INT64_MAX - the first later round in which a rank of the node may have something */
    _Atomic int64_t before[2]; /* of a step, by half: half_bytes - where its first chunk begins... */
    _Atomic int64_t last[2];   /* ...and where its last one ends; 0 and 0: none */
} mpiox_destination_buffer;

/* In shared memory, one for every rank of the file. */
typedef struct mpiox_known_view {
    int64_t at;           /* in the store; -1: not known on other nodes, or without data */
    int64_t displacement; /* of the stored description */
} mpiox_known_view;

typedef struct mpiox_exchange { /* at the start of b->transport_memory; the rest follows */
    _Alignas(MPIOX_LINE) mpiox_futex
        counted[MPIOX_EXCHANGE_ROUNDS];           /* ranks that have counted an exchange round; these words count on */
    _Alignas(MPIOX_LINE) mpiox_futex packed[2];   /* by half: ranks that have packed a step */
    _Alignas(MPIOX_LINE) mpiox_futex arrived[2];  /* reads: ranks whose replies of a step are there */
    _Alignas(MPIOX_LINE) mpiox_futex released[2]; /* ranks that need a step's half no longer */
    int32_t whole;                                /* reads: nodes request extents, not every rank's pieces */
    int32_t disjoint;                             /* the views of all ranks are proven to share no byte */
} mpiox_exchange;

typedef struct mpiox_exchange_share { /* a destination buffer of an exchange round, as this rank sees it */
    int aggregator, due;              /* index in due[] */
    int64_t at, bytes;                /* this rank's chunks in the destination buffer */
    int64_t base;                     /* among all destination buffers of the exchange round */
    int64_t destination_bytes;        /* all chunks of the node in it, the end's entry not counted */
} mpiox_exchange_share;

typedef struct mpiox_exchange_round {
    int64_t round;                /* of the call: the number of its windows */
    mpiox_exchange_share *shares; /* [n_due]: destination buffers of the exchange round, ascending aggregators */
    int n_shares;                 /* shares in use */
    bool counted;                 /* this rank has added its chunks */
    int64_t first_step, n_steps;  /* once laid out */
} mpiox_exchange_round;

/* Rounds of an aggregator, [first, last). */
typedef struct mpiox_due {
    int aggregator;      /* index among all */
    int64_t first, last; /* half-open */
    int64_t counted;     /* the last exchange round that it has a destination buffer in; -1: none yet */
    int64_t announced;   /* its channel: the round of the next message, as the aggregator knows it */
} mpiox_due;

typedef struct mpiox_reply {  /* of an aggregator, under way */
    MPI_Request request;      /* of the send */
    char *bytes;              /* the message; owned */
    int64_t length;           /* bytes of the message */
    struct mpiox_reply *next; /* of the inbox; NULL: the last one */
} mpiox_reply;

/* An aggregator and what other nodes send it. */
typedef struct mpiox_inbox {
    int aggregator, local; /* index among all and among those of this node; -1: this rank is none */
    int64_t *next, *last;  /* [n_nodes] round of a node's next message, and round from which on it sends none */
    int64_t expected;      /* ends of nodes that are still to come in this exchange round */
    bool open;             /* this exchange round's messages may be received */
    MPI_Request request;   /* of the message that is being received */
    int source;            /* rank that has sent the message in `buffer` */
    int64_t bytes;         /* length of the message in `buffer` */
    char *buffer;          /* [half_bytes]; only used pages take memory */
    mpiox_extent *extents; /* of the window, and where they lie in its collective buffer */
    int64_t *offsets;      /* [n_extents] bytes from the start of the collective buffer */
    int64_t n_extents, extents_max; /* extents of the window; room for them */
    mpiox_buffer_slot *slot;        /* of the window of this exchange round; in shared memory */
    mpiox_reply *replies;           /* under way; owned */
    int64_t reply_bytes;            /* of all replies under way */
} mpiox_inbox;

typedef struct mpiox_sends { /* messages of a step under way, or replies that are awaited */
    MPI_Request *requests;   /* [n]; owned */
    char **copies;           /* requests to read, compacted: to be freed */
    int n, max;              /* messages; room for them */
    bool reported;           /* the node knows of this rank that they are done; or not all have been begun */
} mpiox_sends;

typedef struct mpiox_messages {
    mpiox_transport base;                       /* its head, by which the rounds know it */
    mpiox_call *call;                           /* in progress */
    mpiox_idle idle;                            /* the work of a rank while it waits (mpiox_message_wait.h) */
    int64_t chunk_data, half_bytes, step_bytes; /* most data bytes of a chunk; bytes of half the pool; of a step */
    mpiox_exchange *exchange;                   /* in shared memory, like the following */
    mpiox_destination_buffer *destinations;     /* [MPIOX_EXCHANGE_ROUNDS][n_aggregators] */
    mpiox_known_view *known;                    /* [size] */
    char *store, *halves;                       /* the stored views (MPIOX_STORE_BYTES); both halves of the pool */
    mpiox_due *due; /* [n_due] aggregators of other nodes that this node may access in this call, ascending */
    int n_due;      /* aggregators in `due` */
    mpiox_exchange_round rounds[MPIOX_EXCHANGE_ROUNDS]; /* number n at n % MPIOX_EXCHANGE_ROUNDS */
    mpiox_exchange_share *shares;                       /* of all rounds[]; owned */
    int64_t next_count;                                 /* exchange round to be counted next... */
    int64_t count_round;                                /* ...and its round; call->rounds: there are no more */
    int64_t next_step;                                  /* first step of the next exchange round that is laid out */
    int64_t n_laid;                                     /* exchange rounds laid out */
    int64_t n_issued;                                   /* reads: steps that were requested */
    mpiox_sends sends[2], receives[2]; /* by half of the pool: messages; replies that are awaited (reads) */
    mpiox_inbox inbox;                 /* of this rank, if it is an aggregator */
    bool views_spread;                 /* the store has the present views of all ranks; the same on every rank */
} mpiox_messages;

static inline int64_t mpiox_entry_padded(int64_t length)
{
    return mpiox_round_up(length, 8);
}
static inline int mpiox_messages_channel(const mpiox_messages *m, int aggregator)
{
    return aggregator % m->base.b->file->topology->node_size;
}
static inline mpiox_destination_buffer *mpiox_messages_destination(const mpiox_messages *m, int64_t number,
                                                                   int aggregator)
{
    return &m->destinations[number % MPIOX_EXCHANGE_ROUNDS * m->base.b->n_aggregators + aggregator];
}
static inline char *mpiox_messages_half(const mpiox_messages *m, int64_t step)
{
    return m->halves + (step & 1) * m->half_bytes;
}

#endif
