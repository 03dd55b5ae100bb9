/*
 * mpiox_messages.h - the state of the transport between nodes; private to this folder. See mpiox_transport_messages.c.
 *
 *   turn     a round that is worked on; the same on all nodes
 *   area     what the ranks of a node bring in one turn for one aggregator of another node: entries, one behind
 *            the other
 *   portion  an entry with its data: never cut
 *   step     as many portions of a turn as fit one half of the node's pool
 *   channel  the rank of a node whose messages an aggregator's areas are
 */
#ifndef MPIOX_MESSAGES_H
#define MPIOX_MESSAGES_H

#include "mpiox_transport.h"
#include "mpiox_wait.h"

enum {
    MPIOX_TURNS = 5,        /* turns whose areas are in memory: counted ahead two, worked on, and left by slow ranks */
    MPIOX_COUNTED_AHEAD = 2 /* turns */
};

/* Who or what an entry is of, where it is not a rank whose view all nodes know. */
enum {
    MPIOX_ENTRY_END = -1,   /* nothing more of this node in this turn */
    MPIOX_ENTRY_RUNS = -2,  /* its pieces are listed (mpiox_typemap_runs.h) */
    MPIOX_ENTRY_EXTENT = -3 /* one extent of the file; reads only */
};

/* Followed by run_bytes bytes of runs, then, where it carries data, by `length` bytes of it, padded to 8. */
typedef struct mpiox_message_entry {
    int32_t rank, run_bytes;
    int64_t position; /* in the rank's view; MPIOX_ENTRY_RUNS and MPIOX_ENTRY_EXTENT: file offset of the first byte */
    int64_t length;   /* data bytes; in a reply those that lie before the end of the file */
} mpiox_message_entry;

/* In shared memory, one for every turn in memory and every aggregator. All zeros between its uses. */
typedef struct mpiox_area {
    _Alignas(MPIOX_LINE) _Atomic int64_t bytes; /* of all portions, the end's not counted */
    _Atomic int64_t sooner;    /* INT64_MAX - the first later round in which a rank of the node may have something */
    _Atomic int64_t before[2]; /* of a step, by half: half_bytes - where its first portion begins... */
    _Atomic int64_t last[2];   /* ...and where its last one ends; 0 and 0: none */
} mpiox_area;

/* In shared memory, one for every rank of the file. */
typedef struct mpiox_known_view {
    int64_t at;           /* in the store; -1: not known on other nodes, or without data */
    int64_t displacement; /* of the stored description */
} mpiox_known_view;

typedef struct mpiox_exchange {                            /* at the start of b->transport_memory; the rest follows */
    _Alignas(MPIOX_LINE) mpiox_futex counted[MPIOX_TURNS]; /* ranks that have counted a turn; these words count on */
    _Alignas(MPIOX_LINE) mpiox_futex packed[2];            /* by half: ranks that have packed a step */
    _Alignas(MPIOX_LINE) mpiox_futex arrived[2];           /* reads: ranks whose replies of a step are there */
    _Alignas(MPIOX_LINE) mpiox_futex released[2];          /* ranks that need a step's half no longer */
    int32_t whole;                                         /* reads: extents are asked for, not every rank's pieces */
    int32_t disjoint;                                      /* the views of all ranks are proven to share no byte */
} mpiox_exchange;

typedef struct mpiox_item { /* an area of a turn, as this rank sees it */
    int aggregator, due;    /* index in due[] */
    int64_t at, bytes;      /* this rank's portions in the area */
    int64_t base;           /* of the area among all areas of the turn */
    int64_t area_bytes;
} mpiox_item;

typedef struct mpiox_turn {
    int64_t round;
    mpiox_item *items; /* [n_due]: areas of the turn, ascending aggregators */
    int n_items;
    bool counted;
    int64_t first_step, n_steps; /* once laid out */
} mpiox_turn;

/* Windows of an aggregator, [first, last). */
typedef struct mpiox_due {
    int aggregator;
    int64_t first, last;
    int64_t counted;   /* the last turn that it has an area in; -1: none yet */
    int64_t announced; /* its channel: the round of the next message, as the aggregator was told */
} mpiox_due;

typedef struct mpiox_reply { /* of an aggregator, under way */
    MPI_Request request;
    char *bytes;
    int64_t length;
    struct mpiox_reply *next;
} mpiox_reply;

/* An aggregator and what other nodes send it. */
typedef struct mpiox_inbox {
    int aggregator, local; /* index among all and among those of this node; -1: this rank is none */
    int64_t *next, *last;  /* [n_nodes] round of a node's next message, and round from which on it sends none */
    int64_t expected;      /* ends of nodes that are still to come in this turn */
    bool open;             /* this turn's messages may be received */
    MPI_Request request;   /* of the message that is being received */
    int source;
    int64_t bytes;
    char *buffer;          /* [half_bytes]; only used pages take memory */
    mpiox_extent *extents; /* of the window, and where they lie in its collective buffer */
    int64_t *offsets;
    int64_t n_extents, extents_max;
    mpiox_buffer_slot *slot;
    mpiox_reply *replies;
    int64_t reply_bytes; /* of all replies under way */
} mpiox_inbox;

typedef struct mpiox_sends { /* messages of a step under way, or replies that are awaited */
    MPI_Request *requests;
    char **copies; /* requests to read, compacted: to be freed */
    int n, max;
    bool told; /* the node knows of this rank that they are done; or not all have been begun */
} mpiox_sends;

typedef struct mpiox_messages {
    mpiox_transport base;
    mpiox_call *call; /* in progress */
    mpiox_idle idle;  /* what a rank does while it waits (mpiox_message_wait.h) */
    int64_t portion_data, half_bytes, step_bytes;
    mpiox_exchange *exchange; /* in shared memory, as what follows */
    mpiox_area *areas;        /* [MPIOX_TURNS][n_aggregators] */
    mpiox_known_view *known;  /* [size] */
    char *store, *halves;
    mpiox_due *due; /* [n_due] aggregators of other nodes that this node may access in this call, ascending */
    int n_due;
    mpiox_turn turns[MPIOX_TURNS];
    mpiox_item *items;
    int64_t next_count;  /* turn to be counted next... */
    int64_t count_round; /* ...and its round; call->rounds: there are no more */
    int64_t next_step;
    int64_t n_laid;   /* turns laid out */
    int64_t n_issued; /* reads: steps asked for */
    mpiox_sends sends[2], receives[2];
    mpiox_inbox inbox;
    bool views_spread; /* the store holds the present views of all ranks; the same on every rank */
} mpiox_messages;

static inline int64_t mpiox_entry_padded(int64_t length)
{
    return (length + 7) & ~(int64_t)7;
}
static inline int mpiox_messages_channel(const mpiox_messages *m, int aggregator)
{
    return aggregator % m->base.b->file->topology->node_size;
}
static inline mpiox_area *mpiox_messages_area(const mpiox_messages *m, int64_t turn, int aggregator)
{
    return &m->areas[turn % MPIOX_TURNS * m->base.b->n_aggregators + aggregator];
}
static inline char *mpiox_messages_half(const mpiox_messages *m, int64_t step)
{
    return m->halves + (step & 1) * m->half_bytes;
}

#endif
