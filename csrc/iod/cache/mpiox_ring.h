/*
 * mpiox_ring.h - requests from clients to the delegate of their node, through shared memory.
 *
 * Problem.   A request and its answer must take a few microseconds, with no system call when both sides run, and must
 *            not burn a core when they do not. Many clients, one delegate; a client may be killed at any moment.
 * Algorithm. A fixed set of slots. A client takes a free slot (compare and swap), fills it in, and sets the slot's bit
 *            in a set of pending tokens; the delegate takes tokens out, in turn round the set, works, and sets the
 *            slot's word. Frames that are fully dirty are tokens of the same set, with numbers from `slots` on. A
 *            second set marks the words of the first that are not empty.
 *            A token is announced by one atomic operation, and not by an entry in a queue: a client that is killed half
 *            way through entering a queue would block all behind it.
 *            Both sides wait with mpiox_wait (a few pauses and yields, then a futex).
 * Guarantee. An answer is visible after everything that the delegate did for it. The death of a client loses its slot,
 *            and nothing else. Every token has its turn: at most all others are taken out before it.
 */
#ifndef MPIOX_RING_H
#define MPIOX_RING_H

#include "mpiox_cache.h"
#include "mpiox_op.h"

enum { MPIOX_SLOT_TEXT = MPIOX_CACHE_PATH_BYTES };

typedef struct mpiox_slot {
    _Atomic uint32_t taken;     /* 0: free, 1: a client's, 2: no answer is wanted */
    mpiox_futex done;           /* 0 until answered */
    int32_t op;                 /* enum mpiox_op; the client writes all up to `question`, and text */
    int32_t client;             /* id of the process, see mpiox_ring_join() */
    int32_t file;               /* index of the file record; OPEN and HOLD: the answer */
    uint32_t frame;             /* answer to MPIOX_OP_PAGE */
    mpiox_op_question question; /* by op */
    mpiox_op_answer answer;     /* by op; the delegate writes it, result and error */
    int32_t result;             /* MPIOX_OK or MPIOX_E_* */
    mpiox_error error;          /* if result is below 0; code MPIOX_OK: it has no more than the result */
    char text[MPIOX_SLOT_TEXT]; /* a path or addresses, by op */
} mpiox_slot;

typedef struct mpiox_client_record { /* a process that uses the delegate */
    _Atomic int32_t state;           /* 0 free, 1 joined, 2 left */
    _Atomic uint32_t joins;          /* how often the record was used */
    int64_t pid;                     /* the client's, in its own process-id namespace */
    pthread_mutex_t life; /* robust; owned by a thread of the client that lives as long as the client is joined */
} mpiox_client_record;

enum { MPIOX_RING_CLIENTS = 1024 };

struct mpiox_ring_area {
    mpiox_futex bell;                                /* raised with every token */
    uint32_t slots, tokens;                          /* tokens = slots + frames */
    uint32_t cursor;                                 /* delegate: where it continues to take tokens */
    uint32_t spare;                                  /* not used */
    int64_t slots_at, pending_at, summary_at;        /* offsets from this struct */
    mpiox_client_record clients[MPIOX_RING_CLIENTS]; /* by the id that mpiox_ring_join() returns */
    /* then: slots; pending, one bit per token; summary, one bit per word of pending */
};

/* The name of a wait: of an mpiox_op, or of a number below 0 of mpiox_cache_waiting.h. Static text. */
const char *mpiox_ring_op_name(int32_t op);
int64_t mpiox_ring_bytes(int32_t slots, int32_t frames);
/* In zeroed memory. 0 or MPIOX_E_UNSUPPORTED (no robust mutexes). */
int mpiox_ring_format(mpiox_ring_area *ring, int32_t slots, int32_t frames);

/* Client: a free slot (waits while all are taken, watching the delegate's life), its plain fields zero and client -1.
 * NULL: the delegate no longer serves. */
mpiox_slot *mpiox_ring_take(const mpiox_cache *cache);
/* Send it, wait for the answer, watching the delegate's life (and with `idle`, which may be NULL, doing other work).
 * The slot stays the caller's until mpiox_ring_give_back(). 0 or the answer's result; MPIOX_E_UNSUPPORTED: the delegate
 * died or ended before it answered. */
int mpiox_ring_call(const mpiox_cache *cache, mpiox_slot *slot, const mpiox_idle *idle);
/* Send without waiting for an answer; the delegate gives the slot back. */
void mpiox_ring_post(const mpiox_cache *cache, mpiox_slot *slot);
void mpiox_ring_give_back(mpiox_slot *slot);
/* A frame has become fully dirty: notify the delegate, once (MPIOX_FRAME_QUEUED). */
void mpiox_ring_push_frame(const mpiox_cache *cache, uint32_t frame);

/* Delegate: the next token without waiting; false: none. *slot or *frame is set, the other is NULL / NO_FRAME. The
 * frame's MPIOX_FRAME_QUEUED is cleared here, so that from now on it can be queued again. */
bool mpiox_ring_next(const mpiox_cache *cache, mpiox_slot **slot, uint32_t *frame);
/* Delegate: sleep until the bell rings or `seconds` have passed. `seen`: the bell's value before the last
 * mpiox_ring_next() that returned false. */
void mpiox_ring_wait(const mpiox_cache *cache, uint32_t seen, double seconds);
/* Delegate: does a client wait for the answer? No: it posted the slot, or is dead. */
bool mpiox_ring_is_awaited(const mpiox_slot *slot);
/* Delegate: answer. A posted slot (no answer wanted) is given back instead. */
void mpiox_ring_answer(mpiox_slot *slot, int result);

/* Client process: join, from a thread that will live as long as the client is joined; its life mutex is taken. Returns
 * the id, or MPIOX_E_FULL. Leave: gives the life mutex back, state 2. Same thread. */
int mpiox_ring_join(const mpiox_cache *cache);
void mpiox_ring_leave(const mpiox_cache *cache, int client);
/* Delegate: distinguishes successive users of a client's id. 0: it is free. */
uint32_t mpiox_ring_join_of(const mpiox_cache *cache, int client);
/* Delegate: clients that have joined and are alive; *died = ones found dead since the last call (their state becomes
 * free, and so do their slots that have been answered; others are given back instead of an answer). */
int mpiox_ring_clients(const mpiox_cache *cache, int *died);
/* Anyone: requests of clients that are not answered yet. */
int mpiox_ring_queued(const mpiox_cache *cache);

#endif
