/*
 * mpiox_buffers.h - the collective buffers of a node, and the windows of the file that pass through them.
 *
 *   mpiox_buffers_memory.c  sizes, addresses and placement in the node's shared memory
 *   mpiox_windows.c         the window of a round, and its extents of the file
 *   mpiox_call_copy.c       copies between this rank's memory and a buffer
 *   mpiox_slots.c           the window in each buffer: filling, loading, arriving, waiting
 *   mpiox_window_io.c       file-system requests of one window
 *
 * An aggregator's file domain is cut into windows of window_bytes bytes, one for each round. Window by window, its
 * extents lie one behind the other in a collective buffer of that aggregator; a slot describes its content. All ranks
 * of the node copy to and from the buffers, and the transport (transport/mpiox_transport.h) does so for other nodes.
 */
#ifndef MPIOX_BUFFERS_H
#define MPIOX_BUFFERS_H

#include "mpiox_collective_memory.h"
#include "mpiox_copy.h"
#include "mpiox_file.h"
#include "mpiox_integer.h"
#include "mpiox_partition.h"

/* A contribution's period, which accesses of the same length from the same place of a tile of the view have. */
typedef struct mpiox_known_period {
    int64_t place, length; /* stream bytes; length 0: none is known */
    int64_t period;        /* of the pieces, as in mpiox_contribution */
} mpiox_known_period;

typedef struct mpiox_buffers {
    mpiox_file *file; /* borrowed */

    int n_aggregators;    /* of the file; the same on every rank */
    int *aggregators;     /* [n_aggregators] ranks, in the order of the file domains of the call; owned */
    int n_local;          /* aggregators of this node... */
    int *local;           /* ...their indices, ascending; owned */
    int64_t window_bytes; /* size of one collective buffer */
    int per_aggregator;   /* collective buffers of an aggregator */

    mpiox_call_state *state; /* NULL until mpiox_buffers_attach(); everything from here on lies in topology->segment */
    mpiox_contribution *contributions; /* [node_size] */
    mpiox_node_access *nodes;          /* [n_nodes] */
    mpiox_buffer_slot *slots;          /* [n_local * per_aggregator] */
    char *buffers;                     /* [n_local * per_aggregator][window_bytes] */
    unsigned char *maps;               /* coverage, as large as the buffers; all zeros between windows */
    void *transport_memory;            /* the bytes that the transport has requested */

    mpiox_plan *plan;                /* file domains of the last call; owned */
    mpiox_extent *extents[2];        /* scratch for one window: [0] while copying, [1] while doing I/O; owned */
    int64_t extents_max;             /* room in each of the two lists */
    mpiox_known_period known_period; /* of this rank's last access whose pieces were searched for it */
} mpiox_buffers;

/* How far this rank has come with one local aggregator's windows. */
typedef struct mpiox_progress {
    uint32_t begun; /* windows with data begun so far: the next one's sequence number */
    int64_t next;   /* the window after the last one that this rank has checked */
} mpiox_progress;

/* One collective in progress, on this rank. */
typedef struct mpiox_call {
    mpiox_buffers *b;             /* of the file; borrowed */
    const mpiox_request *request; /* its position counts from file->displacement */
    mpiox_reduction reduction;    /* of all ranks */
    mpiox_progress *progress;     /* [n_local] */
    int64_t round;                /* windows of this number are being worked on */
    int64_t rounds;               /* windows of the busiest aggregator */
    int64_t turn;                 /* windows after which the same nodes access the file; see mpiox_windows_turn() */
    int64_t exchange_round; /* rounds worked on before this one: those in which no window can hold data are left out */
    mpiox_interval *used;   /* [n_used] the others, ascending, half-open; n_used 0: all of them */
    int64_t n_used;         /* intervals in `used` */
    int64_t first, last;    /* this rank's file range */
    bool write;             /* false: the call reads */
    bool mark;              /* coverage is marked and scanned (writes) */
    bool stripe_size_io;    /* no request of a window is larger than a stripe, or crosses the end of one */
    /* index among local aggregators of the one whose windows this rank's arrival at is the transport's to make; -1 */
    int held;
    int64_t granule;        /* file bytes that one byte of the coverage map stands for */
    int participants;       /* arrivals that complete a window */
    int64_t done;           /* bytes that this rank has moved by itself; -1: it has still to */
    mpiox_device device;    /* in whose memory this rank's buffer is; zeros: the host's */
    mpiox_staging *staging; /* where this rank's memory is a GPU's, from its first copy on; given back by its owner */
} mpiox_call;

/* ---- memory (mpiox_buffers_memory.c) ----------------------------------------------------------------------------- */

/* Is the memory that a file before this one had just what this one needs? Local, the same on all ranks of the node. */
bool mpiox_buffers_are_there(const mpiox_buffers *b, int64_t transport_bytes);
/* Set state..transport_memory up, `transport_bytes` bytes of it for the transport. Local where it is `there` on every
 * node; else collective over the file and agreed by all ranks. 0 or an error. */
int mpiox_buffers_attach(mpiox_buffers *b, int64_t transport_bytes, bool there, mpiox_error *error);
void mpiox_buffers_reset(mpiox_buffers *b); /* one rank, inside a barrier: fresh slots and state */
void mpiox_buffers_free(mpiox_buffers *b);  /* what the struct owns, not the struct; zeros are fine */

/* The first error of the rounds on this node wins; after it windows pass without I/O. Local. */
void mpiox_buffers_fail(mpiox_buffers *b, const mpiox_error *error);
static inline bool mpiox_buffers_failed(const mpiox_buffers *b)
{
    return atomic_load_explicit(&b->state->failed, memory_order_relaxed) != 0;
}

/* ---- windows (mpiox_windows.c), local ---------------------------------------------------------------------------- */

/* Once per call, when its rounds are known: do aggregators begin with different windows? Sets call->turn; 0: no. */
enum { MPIOX_TURN_CYCLIC = -1 };
void mpiox_windows_turn(mpiox_call *call);
/* Extents of an aggregator's window of a round that some rank accesses, into list[extents_max]; returns their number
 * (0: nobody needs the window). They lie one behind the other in the collective buffer. */
int64_t mpiox_window_extents(const mpiox_call *call, int aggregator, int64_t round, mpiox_extent *list);
/* The rounds, from the first to the last, in which the windows are worked on that meet the bytes and set `set` of the
 * aggregator's domain; false: none does. Of those between some may not meet it where windows are turned. */
bool mpiox_window_rounds(const mpiox_call *call, int aggregator, int64_t set, mpiox_interval bytes,
                         mpiox_interval *rounds);
/* The first round after `round` in which this rank may have something in the aggregator's window, where its first byte
 * behind the window of `round` is at `next` (INT64_MAX: there is none); INT64_MAX: no round. The domain has one set. */
int64_t mpiox_window_round_after(const mpiox_call *call, int aggregator, int64_t round, int64_t next);
/* The first round from `round` on in which a window may hold data; call->rounds or more: there is none. */
int64_t mpiox_window_next_round(const mpiox_call *call, int64_t round);
/* Stream bytes [*from, *to) of this view access that lie in the extent; false when there are none. */
bool mpiox_window_overlap(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                          mpiox_extent extent, int64_t *from, int64_t *to);
/* Move this rank's pieces of a window between its memory and the collective buffer; n extents as from
 * mpiox_window_extents(). */
void mpiox_window_copy(mpiox_call *call, mpiox_buffer_slot *slot, const mpiox_extent *extents, int64_t n);

/* Copy the `length` stream bytes of this rank's access from position `from` on between its memory and a layout in host
 * memory: to the latter in a write. 0, or MPIOX_E_DEVICE or MPIOX_E_NOMEM, after mpiox_buffers_fail(): what was to be
 * written then is not to be used. Local. */
int mpiox_call_copy(mpiox_call *call, const mpiox_memory_layout *host, int64_t from, int64_t length);

/* ---- slots (mpiox_slots.c) --------------------------------------------------------------------------------------- */

static inline mpiox_buffer_slot *mpiox_slot_of(mpiox_buffers *b, int local, uint32_t sequence)
{
    return &b->slots[(int64_t)local * b->per_aggregator + sequence % (uint32_t)b->per_aggregator];
}
static inline int mpiox_slot_local(const mpiox_buffers *b, const mpiox_buffer_slot *slot)
{
    return (int)((slot - b->slots) / b->per_aggregator);
}
static inline char *mpiox_slot_buffer(mpiox_buffers *b, const mpiox_buffer_slot *slot)
{
    return b->buffers + (slot - b->slots) * b->window_bytes;
}
static inline unsigned char *mpiox_slot_map(mpiox_buffers *b, const mpiox_buffer_slot *slot)
{
    return b->maps + (slot - b->slots) * b->window_bytes;
}

/* Wait until the slot may be filled (write) or copied out (read) for this sequence number. */
void mpiox_slot_await(mpiox_call *call, mpiox_buffer_slot *slot, uint32_t sequence, int64_t window);
/* One participant is done with the slot's present use; the last one leaves it to be written (write) or frees it
 * (read). */
void mpiox_slot_arrive(mpiox_call *call, mpiox_buffer_slot *slot);
/* Write: write windows, and wait until all that this rank may write are written. */
void mpiox_slots_finish(mpiox_call *call);
/* Idle work of a waiting rank: I/O that it may do, and MPI progress. True when there was some I/O. */
bool mpiox_slots_idle(void *call);

/* ---- file-system requests (mpiox_window_io.c): local, blocking; errors go to mpiox_buffers_fail() ---------------- */

void mpiox_window_write(mpiox_call *call, mpiox_buffer_slot *slot); /* write what the slot's buffer holds */
void mpiox_window_read(mpiox_call *call, mpiox_buffer_slot *slot);  /* fill the slot's buffer, set its eof */

#endif
