/*
 * mpiox_exchange_impl.h - the exchange's own state and the steps of a collective, one file each:
 *
 *   mpiox_exchange.c      open, close, view, and the order of the steps
 *   mpiox_view.c          the view, and positions in it
 *   mpiox_aggregators.c   which ranks are aggregators
 *   mpiox_memory.c        the node's shared memory: sizes and addresses of board, buffers, boxes
 *   mpiox_agree.c         barrier, posts -> summary, error agreement
 *   mpiox_choose.c        direct or two-phase, which method: the measured rule and its reason
 *   mpiox_direct.c        no exchange: every rank moves its own pieces
 *   mpiox_shared_pointer.c the shared file pointer
 *   mpiox_rounds.c        two-phase rounds inside a node
 *   mpiox_messages.c      what rounds send to and receive from other nodes
 *   mpiox_window_io.c     file-system requests of one window
 */
#ifndef MPIOX_EXCHANGE_IMPL_H
#define MPIOX_EXCHANGE_IMPL_H

#include "mpiox_board.h"
#include "mpiox_copy.h"
#include "mpiox_exchange.h"
#include "mpiox_partition.h"
#include "mpiox_storage.h"
#include "mpiox_team.h"

typedef struct mpiox_messages mpiox_messages; /* leaders' state between nodes; NULL with one node */

struct mpiox_exchange {
    mpiox_team *team;
    mpiox_storage *storage;
    mpiox_hints hints;
    mpiox_layout layout;
    char *path, *real_path; /* as given; absolute (several nodes only, may be NULL) */
    int amode;
    const mpiox_partition_method *forced; /* method asked for by hint; NULL = choose */

    int n_aggregators;
    int *aggregators;     /* [n_aggregators] ranks */
    int n_local;          /* aggregators of this node... */
    int *local;           /* ...their indices, ascending */
    int64_t window_bytes; /* size of one collective buffer */
    int buffers;          /* per aggregator */

    mpiox_typemap *view; /* owned; NULL = not usable, or without data */
    bool empty_view;    /* without data: this rank takes part with nothing */
    bool atomic;        /* MPI's atomic mode; the same on every rank */
    mpiox_independent_counters independent;
    pthread_mutex_t threads_lock; /* of this process, where a file lock excludes only processes */
    uint64_t nonce; /* of this opening, the same on every rank */
    mpiox_storage *pointer_file; /* shared file pointer of several nodes; NULL before its first use */
    int64_t displacement;     /* in force in this collective (mpiox_view_shift) */
    int64_t set_displacement; /* as set */
    int64_t tile_extent;      /* of a file type whose tiles overlap: view then describes one tile; else 0 */
    bool new_view;     /* set since the last collective */
    int views_disjoint; /* several nodes: proven when the views were spread; alike on all ranks of the node */
    bool views_spread; /* the leaders know the present views of all ranks; the same on every rank */
    bool threads;       /* every rank's MPI library supports MPI_THREAD_MULTIPLE */
    bool foreground;    /* mpiox_exchange_offer's */
    bool in_background; /* the collective under way runs in a thread of ours */
    bool native_only;  /* no shared memory is to be had; the same on every rank */

    mpiox_board *board; /* everything from here to boxes lies in team->segment */
    mpiox_post *posts;  /* [node_size] */
    mpiox_slot *slots;  /* [n_local * buffers] */
    char *collective_buffers;
    unsigned char *maps;
    mpiox_box *boxes; /* [2 * n_nodes] */
    char *box_areas;
    int64_t box_bytes; /* of one area */

    mpiox_plan *plan; /* of the last call; reused while the geometry is the same */
    const mpiox_partition_method *plan_method;
    mpiox_extent *extents[2]; /* scratch for one window: [0] while copying, [1] while doing I/O */
    int64_t extents_max;

    mpiox_messages *messages;
    mpiox_stats stats;
};

/* How far this rank has walked one local aggregator's windows. */
typedef struct mpiox_progress {
    uint32_t begun; /* windows with data begun so far: the next one's sequence number */
    int64_t next;   /* the window after the last one looked at */
} mpiox_progress;

/* One collective in progress, on this rank. */
typedef struct mpiox_call {
    mpiox_exchange *x;
    const mpiox_request *request;  /* its position counts from x->displacement */
    const mpiox_request *original; /* its position counts from x->set_displacement */
    mpiox_summary summary;
    mpiox_progress *progress; /* [n_local] */
    int64_t round;
    int64_t first, last; /* this rank's file range */
    bool write;
    bool mark;       /* coverage is marked and scanned (writes) */
    int64_t granule; /* of the coverage map */
    int participants; /* arrivals that complete a window */
    int64_t rounds;
} mpiox_call;

/* Greatest common divisor, >= 0; 0 divides nothing and leaves the other as it is. */
static inline int64_t mpiox_common_divisor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static inline mpiox_independent_file mpiox_exchange_file(mpiox_exchange *x) {
    return (mpiox_independent_file) {x->storage, x->view, x->set_displacement, x->tile_extent, &x->layout,
                                     &x->hints, x->atomic, false, &x->independent, &x->threads_lock};
}

/* mpiox_view.c */
mpiox_request mpiox_view_shift(mpiox_exchange *x, const mpiox_request *request); /* sets x->displacement */
bool mpiox_view_across(const mpiox_exchange *x, const mpiox_request *request);   /* an access across overlapping tiles */

/* mpiox_aggregators.c */
int mpiox_aggregators_choose(mpiox_exchange *x);

/* mpiox_memory.c */
int mpiox_memory_attach(mpiox_exchange *x, mpiox_error *error); /* collective over the file the first time; agreed */
void mpiox_memory_reset(mpiox_exchange *x); /* one rank, inside a barrier: fresh slots and boxes */
static inline mpiox_slot *mpiox_slot_of(mpiox_exchange *x, int local, uint32_t sequence) {
    return &x->slots[(int64_t) local * x->buffers + sequence % (uint32_t) x->buffers];
}
static inline int mpiox_slot_local(const mpiox_exchange *x, const mpiox_slot *slot) {
    return (int) ((slot - x->slots) / x->buffers);
}
static inline char *mpiox_slot_buffer(mpiox_exchange *x, const mpiox_slot *slot) {
    return x->collective_buffers + (slot - x->slots) * x->window_bytes;
}
static inline unsigned char *mpiox_slot_map(mpiox_exchange *x, const mpiox_slot *slot) {
    return x->maps + (slot - x->slots) * x->window_bytes;
}

/* mpiox_agree.c */
void mpiox_agree_post(mpiox_call *call);    /* write this rank's post */
int mpiox_agree_summary(mpiox_call *call);  /* barrier; fills call->summary; MPIOX_E_MPI when leaders cannot talk */
void mpiox_agree_fail(mpiox_exchange *x, const mpiox_error *error); /* first error of the rounds on this node wins */
bool mpiox_agree_failed(mpiox_exchange *x);
void mpiox_agree_end(mpiox_call *call, mpiox_outcome *outcome); /* barrier; agreed error and end of file */
/* Wait for requests between nodes, doing `work` (may be NULL) meanwhile. MPI_Wait of some libraries spins, which starves
 * the very rank that it waits for when ranks outnumber cores. MPIOX_E_MPI when one of them has failed. */
int mpiox_agree_finish(int n, MPI_Request *requests, bool (*work)(void *), void *context);
/* Ends the job with a message: for where the others wait for what this rank cannot do, so that the only other end is a
 * hang. */
void mpiox_agree_give_up(mpiox_exchange *x, int code, int64_t offset, int64_t length, const char *what);
bool mpiox_agree_poke(void *exchange); /* idle work: lets MPI make progress; always false */

bool mpiox_agree_all(mpiox_exchange *x, bool mine); /* collective: true if every rank says so */
int mpiox_agree_lowest(mpiox_exchange *x, int mine); /* collective, while no other is under way in the background */

/* mpiox_shared_pointer.c */
void mpiox_shared_pointer_free(mpiox_exchange *x);
void mpiox_shared_pointer_clear_next(mpiox_exchange *x); /* before team->turn grows: zero for the next view */

/* mpiox_choose.c */
bool mpiox_choose_direct(mpiox_call *call);
int mpiox_choose_plan(mpiox_call *call); /* fills x->plan, extents, call->rounds */

/* mpiox_direct.c */
void mpiox_direct_run(mpiox_call *call, int64_t *done);

/* mpiox_rounds.c */
void mpiox_rounds_write(mpiox_call *call);
void mpiox_rounds_read(mpiox_call *call);
/* One participant is done with the use of the slot that window number `sequence` of a local aggregator took. */
void mpiox_rounds_arrive(mpiox_call *call, mpiox_slot *slot);
/* Wait until the slot may be filled (write) or copied out (read) for this sequence number. */
void mpiox_rounds_await(mpiox_call *call, mpiox_slot *slot, uint32_t sequence, int64_t window);
/* Extents of a window that some rank accesses, into list; returns their number (0: nobody needs the window). They lie
 * one behind the other in the collective buffer. */
int64_t mpiox_rounds_extents(const mpiox_call *call, int aggregator, int64_t window, mpiox_extent *list);
/* Stream bytes [*from, *to) of this view access that lie in the extent; false when there are none. */
bool mpiox_rounds_overlap(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                          mpiox_extent extent, int64_t *from, int64_t *to);
bool mpiox_rounds_idle(void *call); /* idle work: I/O that this rank may do, and MPI progress */

/* mpiox_window_io.c */
void mpiox_window_write(mpiox_call *call, mpiox_slot *slot); /* write what the slot's buffer holds */
void mpiox_window_read(mpiox_call *call, mpiox_slot *slot);  /* fill the slot's buffer, set its eof */

/* mpiox_messages.c: what a round sends to and receives from other nodes (several nodes only) */
int64_t mpiox_messages_area_bytes(const mpiox_exchange *x); /* local */
int mpiox_messages_create(mpiox_exchange *x);               /* local */
void mpiox_messages_free(mpiox_exchange *x);                /* NULL-safe */
void *mpiox_messages_scratch(mpiox_exchange *x); /* leaders: room for a summary of every node, in a barrier only */
/* After the summary, before the rounds: leaders learn every rank's view and range (collective over the leaders). */
void mpiox_messages_begin(mpiox_call *call);
/* Read: true on the leader, which keeps the slot until it has served the other nodes from it. */
bool mpiox_messages_hold(const mpiox_call *call);
void mpiox_messages_round(mpiox_call *call); /* after this rank's part of the local windows of call->round */

#endif
