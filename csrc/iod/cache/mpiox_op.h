/*
 * mpiox_op.h - the questions of a client to a delegate, by operation, and the delegate's answers.
 *
 * Problem.   A request has the same few words in shared memory and between nodes, whatever its operation. A type has to
 *            define the meaning of each word, and the receiver must check the limits of a word from another node before
 *            it uses the word.
 * Form.      Each operation has a struct for its question, and one for its answer if that has more than a result. All
 *            fields have 8 bytes: there are no holes, and a question of one node has the same form on another.
 * Guarantee. mpiox_op_is_legal() knows every limit that this file states, from one table.
 */
#ifndef MPIOX_OP_H
#define MPIOX_OP_H

#include <stdbool.h>
#include <stdint.h>

enum mpiox_op {
    MPIOX_OP_NONE = 0,
    /* Open the file of an absolute path (text). A file that is open already (same device, inode and REPLICA flag) keeps
     * all that the question has but the flags, which are added; direct I/O is that of the handle in use. -> file =
     * index; result MPIOX_E_FULL; MPIOX_E_IO, with ESTALE if the path leads to another file */
    MPIOX_OP_OPEN,
    /* The opening is over. Flushes (never fails for lack of memory); after the last opener drops the pages. Each close
     * of a file with a hidden name answers at once: after a flush there is little to write. -> errors as
     * MPIOX_OP_FLUSH */
    MPIOX_OP_CLOSE,
    /* A page that is not cached. -> frame, pinned for the client, which unpins it; result MPIOX_PAGE_MOVED
     * (mpiox_cache_page.h), also while the page's range moves: a client that waits for that must not keep a slot, or a
     * connection, that the mover needs; MPIOX_E_FULL: a replica has no room for more copies */
    MPIOX_OP_PAGE,
    /* Flush barrier: write pages to the file system. -> the result; deferred errors stay in the record for
     * mpiox_cache_take_errors(). Clients may write meanwhile; these bytes may be included or not */
    MPIOX_OP_FLUSH,
    /* Discard pages, dirty or not: the file is being truncated, or is to be deleted */
    MPIOX_OP_DISCARD,
    /* For a replica (MPIOX_FILE_REPLICA): mark its frames; later discard those that were not written since. Between the
     * two the owner flushes: bytes that are discarded are in the file by then */
    MPIOX_OP_REPLICA_MARK,
    MPIOX_OP_REPLICA_TRIM,
    MPIOX_OP_AHEAD_ONLY, /* pages that are likely to be read next. No answer */
    MPIOX_OP_PING,       /* answers at once */
    /* A page range changes owners, in three steps of one client: MIGRATE at the old owner (MPIOX_MIGRATE_BEGIN: from
     * now on no client accesses its pages; the owner writes and drops them), COMMIT at the new one, MIGRATE at the old
     * one (MPIOX_MIGRATE_END: it redirects clients). Each move has a version; that of a range only rises */
    MPIOX_OP_MIGRATE,
    /* This delegate becomes the owner. The old owner has flushed and dropped the range; older pages here are dropped.
     * Repeating the request has no effect. A version that is not new is refused, and later every version up to it; then
     * the answer has the version here */
    MPIOX_OP_COMMIT,
    MPIOX_OP_OWNER, /* the owner of a range that this delegate knows */
    /* Is the file of an absolute path (text) still to be written behind its close, or open under a hidden name? If it
     * is open, the request opens it once more until MPIOX_OP_CLOSE; MPIOX_HOLD_TO_LOOK does not. A closed one is
     * written before others; MPIOX_HOLD_TO_DELETE opens it once more, too. -> file = index */
    MPIOX_OP_HOLD,
    /* The liveness service (mpiox_process_liveness.h) of a delegate of whose files this one will keep copies; text =
     * addresses, with blanks between */
    MPIOX_OP_PEER,
    MPIOX_OP_DETACH /* this client (process) is done. The delegate ends after the last one */
};

enum {
    MPIOX_CLOSING_FLUSHES = 0,
    MPIOX_CLOSING_BEHIND /* answers at once, and flushes behind the answer (MPIOX_FILE_DRAINING), or keeps copies until
                          * the originals are in the file */
};
enum {
    MPIOX_FLUSH_CACHES = 0, /* the pages stay */
    MPIOX_FLUSH_DROPS,      /* and drops the pages: no stale byte stays */
    MPIOX_FLUSH_KEEPS       /* bytes that cannot be written stay dirty, and the result is their error */
};
enum {
    MPIOX_MIGRATE_BEGIN = 0,
    MPIOX_MIGRATE_END,
    MPIOX_MIGRATE_TAKE_OVER, /* the client that began is dead, and another continues; the answer has the new owner */
    MPIOX_MIGRATE_REPAIR     /* BEGIN if two delegates own the range: the other one only keeps it */
};
enum { MPIOX_HOLD_TO_OPEN = 0, MPIOX_HOLD_TO_LOOK, MPIOX_HOLD_TO_DELETE };
enum {
    MPIOX_HOLD_NONE = 0,
    MPIOX_HOLD_HELD,
    MPIOX_HOLD_SOON,  /* it was closed, and gets its name when all is written: repeat the request */
    MPIOX_HOLD_FAILED /* the file system refuses its bytes */
};
enum {
    MPIOX_HOLD_WRITING = 0,
    MPIOX_HOLD_NAMING /* with SOON and FAILED: all is written, and it is getting its name */
};
#define MPIOX_VERSION_NEVER UINT32_MAX /* of a range that is not taken over any more */

enum { MPIOX_OP_AHEAD = 8 };
/* Bytes of the largest file, and its last page if pages are smallest (4 KiB). A delegate with larger pages leaves out
 * pages that begin beyond these bytes. */
#define MPIOX_OP_MAX_OFFSET (INT64_C(1) << 60)
#define MPIOX_OP_MAX_PAGE (MPIOX_OP_MAX_OFFSET >> 12)

typedef struct mpiox_op_ahead {   /* pages that are likely to be read next */
    int64_t count;                /* 0 .. MPIOX_OP_AHEAD */
    int64_t page[MPIOX_OP_AHEAD]; /* 0 .. MPIOX_OP_MAX_PAGE */
} mpiox_op_ahead;

typedef union mpiox_op_question {
    struct mpiox_op_open {
        int64_t flags;      /* MPIOX_FILE_*, but for DRAINING, which is the delegate's own */
        int64_t unit_pages; /* >= 1 */
        int64_t owners;     /* 1 .. MPIOX_FILE_RANGES */
        int64_t shift;      /* range r belongs to delegate (r + shift) mod owners; 0, but for replicas; < FILE_RANGES */
        int64_t servers;    /* that the file's units lie on in turn; 0: not known; <= INT32_MAX */
        int64_t weight;     /* of its requests; 0: 1; <= INT32_MAX */
        int64_t drain_rate; /* bytes/s, behind the close; 0: no limit; >= 0 */
        int64_t drain_patience; /* seconds of failures; >= 0 */
        int64_t drain_even;     /* 1: evenly, 0: not */
        int64_t device, inode;  /* 0: not known */
    } open;
    struct {
        int64_t how;     /* MPIOX_CLOSING_* */
        int64_t of_hold; /* 1: of a MPIOX_OP_HOLD, 0: not */
    } close;
    struct {
        int64_t page;   /* index in the file */
        int64_t reads;  /* 1: its bytes will be read (it must be filled), 0: it is only written */
        int64_t client; /* + 1, for the order of requests; 0: not known */
        mpiox_op_ahead ahead;
    } page;
    mpiox_op_ahead ahead_only;
    struct {
        int64_t first, end; /* pages; 0 <= first <= end */
        int64_t stable;     /* 1: to stable storage as well, 0: not */
        int64_t then;       /* MPIOX_FLUSH_* */
    } flush;
    struct {
        int64_t byte; /* from this one on; >= 0 */
    } discard;
    int64_t range; /* 0 .. MPIOX_FILE_RANGES - 1: of MIGRATE, COMMIT and OWNER, whose first field it is */
    struct {
        int64_t range;
        int64_t to;            /* the new owner; 0 .. MPIOX_FILE_RANGES - 1 */
        int64_t step;          /* MPIOX_MIGRATE_* */
        int64_t least_version; /* of a BEGIN; 0 .. MPIOX_VERSION_NEVER */
    } migrate;
    struct {
        int64_t range;
        int64_t version; /* of the move; 1 .. MPIOX_VERSION_NEVER */
        int64_t stamp;   /* of the move; 0: the range had no owner; below 0, of a repair: only if this delegate is the
                          * owner already */
    } commit;
    struct {
        int64_t range;
        int64_t never; /* 1: this delegate promises never to own it, unless it does, or the range is moving; 0, 1 */
    } owner;
    struct {
        int64_t how;       /* MPIOX_HOLD_TO_* */
        int64_t copies_of; /* n > 0: the same for copies of the pages of delegate n - 1, which is dead, so that they are
                            * written now -> SOON until they are (with file and lasts_ms), NONE, or FAILED */
    } hold;
    struct {
        int64_t delegate;  /* >= 0 */
        int64_t secret[2]; /* of its liveness service; masked between nodes */
        int64_t port;      /* of its liveness service; 1 .. UINT16_MAX */
    } peer;
    struct {
        int64_t client; /* id of the process that leaves */
    } detach;
} mpiox_op_question;

typedef union mpiox_op_answer {
    struct {
        int64_t unit_pages, owners; /* those in force */
    } open;
    struct {                    /* MIGRATE, COMMIT and OWNER */
        int64_t owner;          /* of the range, as this delegate knows it */
        int64_t version, stamp; /* of the move */
    } range;
    struct {
        int64_t state; /* MPIOX_HOLD_* */
        int64_t stage; /* MPIOX_HOLD_WRITING, _NAMING */
        int64_t error; /* errno of FAILED (EAGAIN: all is written, and a client has it open) */
        /* How long a call of the delegate on the file has lasted so far; 0: none is under way; INT64_MAX with file =
         * -1: the leftovers of an earlier job are being written */
        int64_t lasts_ms;
    } hold;
} mpiox_op_answer;

enum mpiox_op_text { MPIOX_OP_NO_TEXT = 0, MPIOX_OP_SOME_TEXT, MPIOX_OP_PATH }; /* PATH: absolute */

/* Is a question of another node within the limits above? PAGE, which leaves a frame pinned, and DETACH, which is the
 * connection's own, are not, nor is an operation that does not exist. */
bool mpiox_op_is_legal(int32_t op, const mpiox_op_question *question);
/* Which text the question of an operation needs. */
enum mpiox_op_text mpiox_op_text_of(int32_t op);
/* Does the question name a file by its index? */
bool mpiox_op_names_file(int32_t op);

#endif
