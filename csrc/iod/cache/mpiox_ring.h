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

enum mpiox_op {
    MPIOX_OP_NONE = 0,
    /* text = absolute path; arg[0] = MPIOX_FILE_* flags; arg[1] = unit_pages; arg[2] = owners; arg[3] = shift: range r
     * belongs to delegate (r + shift) mod owners (0, but for replicas). ahead[0] = servers that the file's units lie on
     * in turn, 0: not known; ahead[1] = weight of its requests, 0: 1; ahead[2], [3], [4] = bytes a second, seconds of
     * failures and 1: evenly, for writing behind the close; ahead[5], [6] = device and inode, where they are known: if
     * the path leads to another file, MPIOX_E_IO with ESTALE. A file that is open already (same device, inode
     * and REPLICA flag) keeps all of these but the flags, which are added; direct I/O is that of the handle in use.
     * -> file = index; arg[1], arg[2] = those in force; result MPIOX_E_FULL, MPIOX_E_IO */
    MPIOX_OP_OPEN,
    /* The opening is over. Flushes (never fails for lack of memory); after the last opener drops the pages. -> errors
     * as MPIOX_OP_FLUSH. arg[0] = 1: answers at once, and flushes behind the answer (MPIOX_FILE_DRAINING), or keeps
     * copies until the originals are in the file; 2: the same before other files and at full speed, and a scratch file
     * that no client has open is written. arg[1] = 1: of a MPIOX_OP_HOLD. Each close of a file with a hidden name does
     * so: after a flush there is little to write */
    MPIOX_OP_CLOSE,
    /* A page that is not cached: file, page; arg[0] = 1: its bytes will be read (it must be filled), 0: only written;
     * arg[1] = n <= MPIOX_OP_AHEAD pages in ahead[] that are likely to be read next; arg[2] = client + 1, for the order
     * of requests, 0: not known. -> frame, pinned for the client, which unpins it; result MPIOX_PAGE_MOVED
     * (mpiox_cache_page.h), also while the page's range moves: a client that waits for that must not keep a slot, or a
     * connection, that the mover needs. MPIOX_E_FULL: a read of a scratch file finds no room, and the page's bytes, if
     * any, are in the file */
    MPIOX_OP_PAGE,
    /* Flush barrier: write pages [arg[0], arg[1]) of the file to the file system; arg[2] = 1: to stable storage as
     * well; arg[3] = 1: drop the pages afterwards (no stale byte stays); 2: bytes that cannot be written stay dirty,
     * and the result is their error. -> the result; deferred errors stay in the record for mpiox_cache_take_errors().
     * Clients may write meanwhile; these bytes may be included or not */
    MPIOX_OP_FLUSH,
    /* Discard pages from byte arg[0] on, dirty or not (the file is being truncated, or is to be deleted:
     * arg[1] = 1). */
    MPIOX_OP_DISCARD,
    /* For a replica (MPIOX_FILE_REPLICA): mark its frames; later discard those that were not written since. Between the
     * two the owner flushes: bytes that are discarded are in the file by then. */
    MPIOX_OP_REPLICA_MARK,
    MPIOX_OP_REPLICA_TRIM,
    MPIOX_OP_AHEAD_ONLY, /* no answer: only ahead[] */
    MPIOX_OP_PING,       /* answers at once */
    /* A page range changes owners, in three steps of one client: MIGRATE at the old owner with arg[0] = range, arg[1] =
     * the new owner, arg[2] = MPIOX_MIGRATE_BEGIN (from now on no client accesses its pages; the owner writes and drops
     * them); COMMIT at the new one; MIGRATE with arg[2] = MPIOX_MIGRATE_END at the old one (which redirects clients to
     * arg[1]). Each move has a version; that of a range only rises. BEGIN: arg[3] = the least -> arg[3] = the move's,
     * arg[2] = its stamp. MPIOX_MIGRATE_REPAIR is a BEGIN if two delegates own the range: the other one only keeps it.
     * MPIOX_MIGRATE_CLAIM is a BEGIN if the range has no page there, and the cache of the new owner, which has `page`
     * dirty pages, is not fuller, except for a part of its room; refused -> arg[1] = the last known owner.
     * MPIOX_MIGRATE_TAKE_OVER: the client that began is dead, and another continues -> arg[1] = the new owner, arg[3],
     * arg[2]. */
    MPIOX_OP_MIGRATE,
    /* arg[0] = range, arg[1] = version of the move, arg[2] = its stamp (0: the range had no owner): this delegate
     * becomes the owner. The old owner has flushed and dropped the range; older pages here are dropped. A stamp below
     * 0, of a repair: only if it is the owner already. Repeating the request has no effect. A version that is not new
     * is refused, and later every version up to it -> arg[3] = the version here */
    MPIOX_OP_COMMIT,
    /* arg[0] = range -> arg[1] = the owner that this delegate knows, arg[3] = version. arg[2] = 1: this delegate
     * promises never to own it, unless it does, or the range is moving */
    MPIOX_OP_OWNER,
    /* text = absolute path: is this file still to be written behind its close, or open under a hidden name? If it is
     * open, or never written, the request opens it once more until MPIOX_OP_CLOSE; not for MPIOX_HOLD_TO_LOOK in
     * arg[1]. A closed one is written before others; MPIOX_HOLD_TO_DELETE opens it once more, too. -> arg[0] =
     * MPIOX_HOLD_*, arg[1] = 1: it is never written; 2, with SOON and FAILED: all is written, and it is getting its
     * name; arg[2] = errno of FAILED (EAGAIN: all is written, and a client has it open), arg[3] = milliseconds that a
     * call of the delegate on it has lasted so far (0: none is under way; INT64_MAX with file = -1: the leftovers of an
     * earlier job are being written), file = index. arg[0] = n > 0: the same for copies of the pages of delegate n - 1,
     * which is dead, so that they are written now -> SOON until they are (with file and arg[3]), NONE, or FAILED */
    MPIOX_OP_HOLD,
    /* Address of the liveness service (mpiox_process_liveness.h) of delegate number `page`, of whose files this one
     * will keep copies: arg[0], arg[1] = its secret, arg[2] = port, text = addresses, with blanks between */
    MPIOX_OP_PEER,
    MPIOX_OP_DETACH /* this client (process) is done; arg[0] = its id. The delegate ends after the last one */
};

enum {
    MPIOX_HOLD_NONE = 0,
    MPIOX_HOLD_HELD,
    MPIOX_HOLD_SOON,  /* it was closed, and gets its name when all is written: repeat the request */
    MPIOX_HOLD_FAILED /* the file system refuses its bytes */
};
enum { MPIOX_HOLD_TO_OPEN = 0, MPIOX_HOLD_TO_LOOK, MPIOX_HOLD_TO_DELETE };
enum { MPIOX_MIGRATE_BEGIN = 0, MPIOX_MIGRATE_END, MPIOX_MIGRATE_TAKE_OVER, MPIOX_MIGRATE_REPAIR, MPIOX_MIGRATE_CLAIM };
#define MPIOX_VERSION_NEVER UINT32_MAX /* of a range that is not taken over any more */

enum { MPIOX_OP_AHEAD = 8, MPIOX_SLOT_TEXT = MPIOX_CACHE_PATH_BYTES };

typedef struct mpiox_slot {
    _Atomic uint32_t taken; /* 0: free, 1: a client's, 2: no answer is wanted */
    mpiox_futex done;       /* 0 until answered */
    int32_t op;
    int32_t client; /* id of the process, see mpiox_ring_join() */
    int32_t file;
    uint32_t frame; /* answer to MPIOX_OP_PAGE */
    int64_t page;
    int64_t arg[4];
    int64_t ahead[MPIOX_OP_AHEAD];
    int32_t result; /* MPIOX_OK or MPIOX_E_* */
    mpiox_error error;
    char text[MPIOX_SLOT_TEXT];
} mpiox_slot;

typedef struct mpiox_client_record { /* a process that uses the delegate */
    _Atomic int32_t state;           /* 0 free, 1 joined, 2 left */
    _Atomic uint32_t joins;          /* how often the record was used */
    int64_t pid;
    pthread_mutex_t life; /* robust; owned by a thread of the client that lives as long as the client is joined */
} mpiox_client_record;

enum { MPIOX_RING_CLIENTS = 1024 };

struct mpiox_ring_area {
    mpiox_futex bell;       /* raised with every token */
    uint32_t slots, tokens; /* tokens = slots + frames */
    uint32_t cursor;        /* delegate: where it continues to take tokens */
    uint32_t spare;
    int64_t slots_at, pending_at, summary_at; /* offsets from this struct */
    mpiox_client_record clients[MPIOX_RING_CLIENTS];
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
