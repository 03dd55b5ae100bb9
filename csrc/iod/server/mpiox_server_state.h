/*
 * mpiox_server_state.h - the state that the files of a delegate share. Private to csrc/iod/server.
 *
 * One lock protects everything here. It is locked for bookkeeping only, never during a file-system call or a wait for
 * clients. A thread that moves bytes of a frame marks it busy first, so that no other works on it, and unlocks. Others
 * may request more work on the frame meanwhile; mpiox_server_put_down() queues it again for that.
 *
 *   Residence  every frame is in one list: free, recent, frequent, ahead, reusable or leaving (mpiox_server_pages.c)
 *   Work       a frame that needs work and is not busy is in the tree of its file (flush, drop, cut) or in a queue
 *              (fill), or in both
 *   Barriers   a flush barrier counts the frames that it waits for; a frame has bits for the barriers that wait for it
 */
#ifndef MPIOX_SERVER_STATE_H
#define MPIOX_SERVER_STATE_H

#include <errno.h>
#include <pthread.h>

#include "mpiox_ring.h"
#include "mpiox_schedule.h"
#include "mpiox_treap.h"
#include "mpiox_server.h"
#include "mpiox_server_target.h"
#include "mpiox_storage.h"

#define MPIOX_NO_REQUEST UINT32_MAX

enum {
    MPIOX_FLUSH_BARRIERS = 64, /* at once; more wait */
    MPIOX_RUN_FRAMES = 256,    /* pages of one piece of work, at most */
    MPIOX_SCRATCH = 1 << 16,   /* bytes of a thread's buffer */
    MPIOX_LOST = 64,           /* untaken errors, for mpiox_server_run() */
    MPIOX_RETIRED = 4          /* older handles of a file, kept until it is closed */
};

enum mpiox_residence {
    MPIOX_FREE,     /* no page */
    MPIOX_RECENT,   /* pages that came once: first in, first out */
    MPIOX_FREQUENT, /* pages that came back soon after they had left: clock */
    MPIOX_AHEAD,    /* read ahead, and not found to be used yet */
    MPIOX_REUSABLE, /* still there, but next to go: clean when they came here */
    MPIOX_LEAVING,  /* an I/O thread makes them reusable or free */
    MPIOX_RESIDENCES
};

enum mpiox_want {
    MPIOX_WANT_FLUSH = 1,
    MPIOX_WANT_DROP = 2, /* flush, then take the page out of the cache */
    MPIOX_WANT_CUT = 4,  /* drop the bytes that a flush barrier discards */
    MPIOX_WANT_FILL = 8,
    MPIOX_WANT_AHEAD = 16 /* fill, when there is nothing else to do */
};

enum mpiox_link_kind { MPIOX_LINK_RESIDENCE, MPIOX_LINK_FILE, MPIOX_LINK_FILL, MPIOX_LINKS };

typedef struct mpiox_frame_list { /* doubly linked, by frame numbers */
    uint32_t first, last;         /* MPIOX_CACHE_NO_FRAME: it is empty */
    int32_t count;                /* frames */
    enum mpiox_link_kind kind;    /* which links of a frame it uses */
} mpiox_frame_list;

typedef struct mpiox_requests { /* slots, first in first out, singly linked by numbers */
    uint32_t first, last;       /* numbers of slots; without meaning while count is 0 */
    int32_t count;              /* slots */
} mpiox_requests;

typedef struct mpiox_frame_info { /* the delegate's own state of a frame */
    struct {
        uint32_t previous, next; /* frames; MPIOX_CACHE_NO_FRAME: none */
    } links[MPIOX_LINKS];        /* by mpiox_link_kind */
    mpiox_treap_node node;       /* in the tree of the file */
    mpiox_requests waiting;      /* for this page */
    uint64_t flush_barriers;     /* bits of the flush barriers that wait for it */
    double pinned_since;         /* since when a client keeps it pinned; 0: none does */
    double seen_at;              /* when `writes` of the frame was first seen to be `seen_writes` */
    uint32_t seen_writes;        /* the number of writes that was seen at `seen_at` */
    bool incomplete;             /* it left before all of it was dirty */
    uint8_t suspect;             /* it was pinned when a client was found dead: so often it has to be had alone yet */
    uint8_t residence;           /* enum mpiox_residence */
    uint8_t wants;               /* bits of enum mpiox_want */
    uint8_t tries;               /* flushes during which clients wrote */
    bool marked;                 /* a replica's frame, remembered by MPIOX_OP_REPLICA_MARK when `writes` was... */
    uint32_t marked_writes;      /* ...this */
    bool busy, in_tree;          /* a thread works on it; it is in the tree of its file */
    bool frequent;               /* came from MPIOX_FREQUENT */
    int8_t fill_queue;           /* 0 none, 1 on demand, 2 ahead */
    uint32_t ordered[2];         /* its requests with the scheduler: to be filled, and to be flushed, dropped or cut */
    int32_t reader;              /* client + 1 that requested the fill first; 0: not known */
} mpiox_frame_info;

typedef struct mpiox_ahead_record { /* how useful it was to read a file ahead */
    double usefulness;              /* average share of pages that were used, 0 .. 1 */
    int32_t issued, used;           /* since the average was last renewed */
    int32_t misses;                 /* since a page was last tried, while reading ahead is stopped */
} mpiox_ahead_record;

typedef struct mpiox_server_migration { /* of one page range, see mpiox_server_ranges.h */
    uint32_t version;                   /* the newest that this delegate knows */
    uint32_t committed;      /* that with which it became this delegate's; 0: it never did, or from the start */
    int64_t committed_stamp; /* of that move */
    int64_t stamp;           /* it is moving: the move's, see mpiox_server_ranges.h, */
    int32_t client;          /* its mover, -1: not known, */
    uint32_t join;           /* as mpiox_ring_join_of() has it, */
    int16_t to;              /* and to whom */
} mpiox_server_migration;

typedef struct mpiox_server_drain { /* writing the file behind its close, mpiox_server_drain.c */
    int64_t number;                 /* of the close, among those of all files */
    int64_t *pages, count, next;    /* dirty pages when the list was made, and the next of them */
    int64_t rate;                   /* bytes a second; 0: no limit */
    bool even;                      /* no faster than it takes to be ready for the next close */
    double patience;                /* seconds that an ended job waits while it fails */
    double pause, again;            /* after a failure: until when */
    double touched;                 /* while it is open: the last page was complete then; 0: none since a pass */
    double failing_since;           /* 0: it does not */
    double unnamed_since;           /* copies: all parts have ended, and the file has no name yet; 0: not so */
    bool clashes, reported;         /* all is written, but another file has its name; that was reported */
    bool named, removed;            /* since its close it has had a name; it has none any more, which was reported */
    bool refused;                   /* all is written, but an opener keeps it from its name */
    bool soon;                      /* a client waits until it is complete */
    bool left;                      /* given up: its bytes stay in the segment */
    bool orphaned, restores;        /* copies: a client has reported the originals' delegate dead; they are written */
    atomic_bool ending;             /* a thread brings it to stable storage, or gives it its name */
} mpiox_server_drain;

typedef struct mpiox_server_file {
    mpiox_storage *storage;                /* NULL: not open */
    bool readable, writable;               /* the handle */
    bool read;                             /* a page was to be filled */
    int32_t servers, weight;               /* see MPIOX_OP_OPEN */
    mpiox_server_targets targets;          /* servers of the file's units, for the scheduler */
    mpiox_storage *retired[MPIOX_RETIRED]; /* NULL: an unused entry */
    mpiox_frame_list frames;               /* of the file's pages */
    uint32_t tree;                         /* frames that wait to be flushed, dropped or cut, by page */
    int64_t position;                      /* page where the I/O threads go on */
    int32_t syncing;                       /* flush barriers whose fsync has not ended */
    int32_t writers;                       /* threads that write it */
    int32_t holds;                         /* of its openers: MPIOX_OP_HOLD */
    double called;            /* when one of these, or of drain.ending, has last begun or ended a call on it */
    int guard;                /* > 0: its lock shows that the hidden name is in use (mpiox_server_hidden.h) */
    int folder;               /* > 0: the folder of that name (mpiox_server_hidden.h) */
    mpiox_ahead_record ahead; /* whether it pays to read this file ahead */
    int64_t stamp;            /* no other record of any delegate has it; above 0 */
    mpiox_server_drain drain; /* of its bytes behind its close */
    mpiox_server_migration moves[MPIOX_FILE_RANGES]; /* by page range */
} mpiox_server_file;

typedef struct mpiox_flush_barrier {
    bool used;                                 /* the entry has a barrier */
    int32_t file;                              /* -1: all */
    int32_t range;                             /* only pages of this range; -1: of all */
    int64_t first, end;                        /* pages */
    int64_t cut;                               /* discard from this byte on; -1: no discarding */
    bool stable, drop, closing;                /* then to stable storage; pages are dropped; an opening ends */
    bool keeps;                                /* bytes that cannot be written stay dirty, and fail the barrier */
    int64_t pending;                           /* frames */
    mpiox_slot *slot;                          /* to be answered, or NULL */
    mpiox_futex *done;                         /* to be set, or NULL */
    mpiox_storage *handles[1 + MPIOX_RETIRED]; /* to be closed */
    mpiox_error error;                         /* of the fsync or close */
} mpiox_flush_barrier;

typedef struct mpiox_ghost { /* a page that has left the cache */
    int64_t page;            /* index in the file */
    int32_t file;            /* index of the file record */
    uint32_t number;         /* of its leaving */
    bool incomplete;         /* it was written before all of it was dirty */
} mpiox_ghost;

struct mpiox_server {
    mpiox_server_options options;  /* constant while it serves */
    mpiox_segment segment;         /* contains the cache; owned */
    mpiox_segment_address address; /* by which clients attach to the segment */
    mpiox_cache cache;             /* pointers into the segment */
    pthread_mutex_t lock;          /* protects all that is not atomic, but `options` and the segment */
    pthread_cond_t work;           /* there is some for an I/O thread */
    atomic_bool stop;              /* mpiox_server_stop() */
    bool keeps;                    /* bytes are left in the segment, which keeps its name */
    bool ending;                   /* no page comes into the cache any more */
    atomic_bool hurry;             /* mpiox_server_hurry() */
    int64_t closings;              /* files that were to be written behind their close, so far */
    bool open_touched;             /* a file has had complete pages while it was open */
    mpiox_server_peers peers;      /* other delegates; constant while it serves */
    mpiox_server_reports reports;  /* constant while it serves */
    struct {
        double begun;            /* when the first file of the last checkpoint was closed; 0: none was */
        double interval, before; /* from the one before to it, and once more; 0: not known */
    } checkpoints;
    double drain_at; /* when the next run of pages may begin, where there is a rate */
    bool finish;     /* I/O threads: end when nothing is left to do */

    mpiox_schedule
        *schedule; /* chooses the next page: files[].tree and `fills` in another order; NULL: the built-in order */
    int64_t order_until;       /* ns: it serves nothing before; MPIOX_SCHEDULE_NEVER: it does not wait */
    int32_t barriers_used;     /* entries of flush_barriers[] in use */
    double *share, share_time; /* [1 + MPIOX_RING_CLIENTS] wfq: see mpiox_server_share.c; NULL: another scheduler */

    mpiox_frame_info *info;                   /* [frames] */
    mpiox_frame_list lists[MPIOX_RESIDENCES]; /* frames, by enum mpiox_residence */
    mpiox_frame_list fills, aheads;           /* frames to be filled */
    int32_t wanted;                           /* frames that are busy or of which something is wanted */
    int32_t writing;                          /* frames that are to be flushed, dropped or cut */
    mpiox_ghost *ghosts;                      /* [ghost_count] by hash */
    uint32_t ghost_count, ghost_number;       /* size of `ghosts`; pages that have left so far */

    double patience;                 /* seconds that a parked request waits while other clients write */
    double waiting_since;            /* one waits for that; 0: none does */
    double progress_at;              /* when the number of writes was first seen to be this: */
    int64_t progress;                /* number of writes */
    int32_t regrets, regrets_needed; /* while patience is 0 */

    uint32_t *request_next;          /* [slots] */
    mpiox_requests parked;           /* for a frame */
    mpiox_requests awaiting_barrier; /* for a free flush barrier */

    mpiox_server_file files[MPIOX_CACHE_MAX_FILES]; /* by index of the file record */
    int32_t next_record;                            /* where the search for a free one begins */
    int64_t records_made;                           /* file records that were made so far; their stamps come from it */
    int32_t file_turn;                              /* of the I/O threads */
    bool fill_turn; /* I/O threads toggle it; true: this time a thread tries to fill before it flushes */
    mpiox_flush_barrier flush_barriers[MPIOX_FLUSH_BARRIERS]; /* by number: a bit in mpiox_frame_info */
    uint32_t *operations; /* ring of [slots + MPIOX_FLUSH_BARRIERS]: slots (open), then flush barriers (sync, close) */
    uint32_t operations_head, operations_count; /* the oldest entry of `operations`; entries in use */

    int32_t idle_threads;               /* I/O threads that wait for work */
    _Atomic int32_t clients;            /* alive */
    _Atomic bool joined;                /* a client was seen */
    _Atomic int32_t dead;               /* clients that died, whose pins may be left */
    int32_t suspects;                   /* frames */
    mpiox_server_lost lost[MPIOX_LOST]; /* reported when it ends */
    int32_t lost_count, lost_rest;      /* number of its entries, and of those without room */
};

/* An I/O thread's own memory. */
typedef struct mpiox_io {
    mpiox_server *server;                         /* borrowed */
    pthread_t thread;                             /* the thread itself */
    int32_t file;                                 /* of the frames it works on */
    int32_t count;                                /* frames it works on */
    uint32_t frames[MPIOX_RUN_FRAMES];            /* their numbers, in file order */
    uint32_t writes[MPIOX_RUN_FRAMES];            /* of each frame, before its dirty bytes were read */
    uint64_t flush_barriers[MPIOX_RUN_FRAMES];    /* the same: that waited for it */
    uint8_t outcome[MPIOX_RUN_FRAMES];            /* of the flush of each frame (mpiox_server_flush.c) */
    mpiox_storage_piece pieces[MPIOX_RUN_FRAMES]; /* bytes of the frames that are read or written */
    int64_t names;                                /* of a file that was closed, before it was written; -1: not known */
    bool behind;                                  /* pages that cannot be written stay dirty, and their error is: */
    int failed;                                   /* the errno, 0: none; of a piece that was at: */
    int64_t failed_at;                            /* file offset */
    mpiox_error error;                            /* of neighbouring failed pieces, not added to the file yet */
    char *scratch;                                /* MPIOX_SCRATCH bytes; owned */
} mpiox_io;

static inline void mpiox_server_count(const mpiox_server *server, atomic_int_least64_t *counter, int64_t by)
{
    (void)server;
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}
#define MPIOX_COUNT(server, name, by) mpiox_server_count(server, &(server)->cache.header->counters.name, by)

static inline int64_t mpiox_server_page_of(const mpiox_server *server, uint32_t frame)
{
    return atomic_load_explicit(&server->cache.frames[frame].page, memory_order_relaxed);
}

static inline int32_t mpiox_server_file_of(const mpiox_server *server, uint32_t frame)
{
    return atomic_load_explicit(&server->cache.frames[frame].file, memory_order_relaxed);
}

static inline uint32_t mpiox_server_flags_of(const mpiox_server *server, uint32_t frame)
{
    return atomic_load_explicit(&server->cache.frames[frame].flags, memory_order_acquire);
}

static inline mpiox_file_record *mpiox_server_record(const mpiox_server *server, int32_t file)
{
    return &server->cache.header->files[file];
}

static inline bool mpiox_server_is_open(const mpiox_server *server, int32_t file)
{
    return file >= 0 && file < MPIOX_CACHE_MAX_FILES && server->files[file].storage != NULL;
}

static inline void mpiox_server_answer(mpiox_server *server, mpiox_slot *slot, int result)
{
    MPIOX_COUNT(server, requests, 1);
    mpiox_ring_answer(slot, result);
}

static inline int64_t mpiox_server_dirty_of(const mpiox_server *server, uint32_t frame)
{
    return atomic_load_explicit(&server->cache.frames[frame].dirty, memory_order_acquire);
}

/* For assertions: does a thread own the lock? */
static inline bool mpiox_server_is_locked(mpiox_server *server)
{
    return pthread_mutex_trylock(&server->lock) == EBUSY;
}

/* ---- lists and requests (all functions from here on: with the lock) ---------------------------------------------- */

void mpiox_server_list_append(mpiox_server *server, mpiox_frame_list *list, uint32_t frame);
void mpiox_server_list_remove(mpiox_server *server, mpiox_frame_list *list, uint32_t frame);
/* Move a frame to the end of a residence. */
void mpiox_server_reside(mpiox_server *server, uint32_t frame, enum mpiox_residence residence);
void mpiox_server_reside_first(mpiox_server *server, uint32_t frame, enum mpiox_residence residence); /* to its start */

/* Copies of other delegates' pages, see mpiox_server_replica.h. May no further one come into the cache? */
bool mpiox_server_is_replica(const mpiox_server *server, int32_t file);
bool mpiox_server_replicas_are_full(const mpiox_server *server);

void mpiox_server_requests_append(mpiox_server *server, mpiox_requests *queue, mpiox_slot *slot);
mpiox_slot *mpiox_server_requests_first(const mpiox_server *server, const mpiox_requests *queue); /* NULL: none */
mpiox_slot *mpiox_server_requests_take(mpiox_server *server, mpiox_requests *queue); /* the first, NULL: none */
/* Move all of `from` behind `queue`. */
void mpiox_server_requests_move(mpiox_server *server, mpiox_requests *queue, mpiox_requests *from);

/* ---- work -------------------------------------------------------------------------------------------------------- */

/* Something is wanted of a frame that has a page. */
void mpiox_server_want(mpiox_server *server, uint32_t frame, uint8_t wants);
/* That is done, or wanted no more; by the thread that works on the frame. */
void mpiox_server_satisfy(mpiox_server *server, uint32_t frame, uint8_t wants);
/* The calling thread works on the frame: it is in no queue any more. */
void mpiox_server_take_up(mpiox_server *server, uint32_t frame);
/* It no longer does; the frame is queued again for what remains. */
void mpiox_server_put_down(mpiox_server *server, uint32_t frame);
/* With a scheduler: take its next batch out, which is to be read or written. Returns how many frames, in file order. */
int32_t mpiox_server_take_batch(mpiox_server *server, uint32_t *frames, bool *write);
/* A frame of the batch is not carried out: it waits again. */
void mpiox_server_order_again(mpiox_server *server, uint32_t frame);
/* The next frame of a file that waits to be flushed, in file order from the file's position on, then from its start;
 * NO_FRAME: none. */
uint32_t mpiox_server_next_in_file(const mpiox_server *server, int32_t file);
void mpiox_server_add_operation(mpiox_server *server, uint32_t operation);
void mpiox_server_wake(mpiox_server *server); /* an I/O thread */
/* The file's last opener is the delegate, which writes it behind its close: nothing else sets MPIOX_FILE_DRAINING. */
void mpiox_server_begin_drain(mpiox_server *server, int32_t file);
/* For processes that are no clients: whether this delegate writes the file, which was closed. By a lock on the file of
 * parts; not while the file system refuses the bytes. */
void mpiox_server_show_closed(const mpiox_server *server, int32_t file);
/* The cache cannot be read any more: ends the process as touching such a page does. Any thread. */
_Noreturn void mpiox_server_tear(void);
/* The same if the cache is a file, and bytes read from it since the last check may be wrong. */
void mpiox_server_look_at_disk(const mpiox_server *server);

#endif
