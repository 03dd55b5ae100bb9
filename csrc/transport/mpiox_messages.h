/*
 * mpiox_messages.h - the state of the transport between nodes; private to this folder. See mpiox_transport_messages.c.
 */
#ifndef MPIOX_MESSAGES_H
#define MPIOX_MESSAGES_H

#include "mpiox_transport.h"
#include "mpiox_wait.h"

typedef struct mpiox_entry { /* followed by `length` bytes of data, padded to 8 */
    int32_t rank, aggregator;
    int64_t position, length;
} mpiox_entry;

typedef struct mpiox_rank_access { /* what leaders know of a rank in this call */
    int64_t position, length, first, last, displacement;
} mpiox_rank_access;

/* Shared by the ranks of a node: message areas for one other node, by the parity of the round. */
typedef struct mpiox_area {
    _Alignas(MPIOX_LINE) _Atomic int64_t used; /* bytes of it in use */
} mpiox_area;

typedef struct mpiox_area_state {               /* at the start of b->transport_memory; areas and their bytes follow */
    _Alignas(MPIOX_LINE) mpiox_word packed[2];  /* ranks that packed a round (write) or copied out (read), counted on */
    _Alignas(MPIOX_LINE) mpiox_word shipped[2]; /* rounds whose areas may be used again (write) or are filled (read) */
} mpiox_area_state;

typedef struct mpiox_messages {
    mpiox_transport base;
    int64_t area_bytes;       /* of one area */
    mpiox_rank_access *ranks; /* [size], by rank */
    mpiox_typemap **views;    /* [size], by rank; NULL = unusable */
    mpiox_interval *nodes;    /* [n_nodes] file range of a node's ranks */
    char **outgoing;          /* [n_nodes] read: messages under way */
    int64_t *room;            /* [n_nodes] bytes allocated in outgoing */
    char *incoming;        /* write: one received message; as large as an area, of which only used pages take memory */
    MPI_Request *requests; /* [n_nodes] */
    mpiox_rank_access *by_node; /* [size] scratch, ranks in node order */
    int *sizes;                 /* [size] scratch */
    int *counts;                /* [2 * n_nodes] scratch */
    mpiox_interval *windows;    /* [n_aggregators] from first to last byte of every window of the round */
    int64_t *buffer_offsets;    /* [offsets_max] where extents[0] of the window being placed lie in the buffer */
    int64_t offsets_max;
    bool views_spread;  /* leaders know the present views of all ranks; the same on every rank */
    int views_disjoint; /* proven when the views were spread; alike on all ranks of the node */
} mpiox_messages;

static inline int64_t mpiox_entry_padded(int64_t length)
{
    return (length + 7) & ~(int64_t)7;
}

/* Leaders learn every rank's view (where one is new), position and range. Collective over the file.
 * mpiox_message_views.c */
void mpiox_messages_begin(mpiox_transport *transport, mpiox_call *call);

/* ---- mpiox_messages.c: used by both directions ------------------------------------------------------------------- */

int64_t mpiox_messages_areas_offset(const mpiox_messages *m); /* of the bytes of the areas in b->transport_memory */

void mpiox_messages_fail(mpiox_messages *m, int code, int64_t bytes, const char *what);
/* Leaders, once a round: the spans of all windows, so that deciding who sends costs O(aggregators) in all. */
void mpiox_messages_span_windows(mpiox_messages *m, mpiox_call *call);
/* Does a window of the round on node `owner` meet the range of node `other`? Leaders only. */
bool mpiox_messages_meet(const mpiox_messages *m, int owner, int other);
mpiox_area *mpiox_messages_area(mpiox_messages *m, int64_t turn, int node, char **bytes);
mpiox_area_state *mpiox_messages_state(mpiox_messages *m);
/* The slot that window call->round of local aggregator `local` was given, or NULL; leaves the window's extents in
 * extents[0]. */
mpiox_slot *mpiox_messages_slot(mpiox_call *call, int local);
/* Receive the message of `source` for this round into `buffer` of area_bytes bytes. Polls, so that this rank's
 * share of the I/O goes on. Returns its bytes, 0 after a failure. */
int64_t mpiox_messages_receive(mpiox_messages *m, mpiox_call *call, int source, char *buffer);
/* Send `length` bytes, or word that there is nothing to be used when this node could not put the message together. */
void mpiox_messages_send(mpiox_messages *m, mpiox_call *call, int node, const char *bytes, int64_t length,
                         bool complete);
void mpiox_messages_finish_sending(mpiox_messages *m, mpiox_call *call);

void mpiox_messages_deliver(mpiox_transport *transport, mpiox_call *call); /* mpiox_messages_write.c */
void mpiox_messages_fetch(mpiox_transport *transport, mpiox_call *call);   /* mpiox_messages_read.c */

#endif
