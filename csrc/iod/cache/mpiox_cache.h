/*
 * mpiox_cache.h - the page cache of one delegate, in memory that the delegate shares with the clients of its node.
 *
 * Problem. Small independent accesses are slow because each is a request to the file system. A delegate collects them
 *          in pages. Sending every access to the delegate would cost a round trip and a second copy of each byte.
 * Form.    One shared segment (mpiox_segment) per delegate contains the frames with the pages' bytes, the map from page
 *          to frame, the marks of dirty bytes, the records of the files, the request slots and the counters. A client
 *          of the node looks a page up, pins its frame, copies straight into it and marks the bytes as dirty, without a
 *          message; only for a missing page does it send the delegate a request (mpiox_ring.h). Clients of other nodes
 *          send their accesses over the network to a thread of the delegate, which acts like a client here.
 * Memory.  The cap is the size of the one segment: data in flight (being filled, being flushed, waiting) is always in a
 *          frame. No other memory grows.
 * Roles.   "delegate": the one process (or, in thread mode, the threads) that serves the segment. "client": any process
 *          or thread that reads and writes pages. "survivor": a client that finds the delegate dead.
 *
 *   mpiox_cache.c          files, life and death
 *   mpiox_cache_layout.c   layout of the segment, attaching
 *   mpiox_frame.c          the map from page to frame; pins; exclusive use
 *   mpiox_dirty.c          the dirty bytes of a frame
 *   mpiox_ring.c           requests from clients to the delegate
 *   mpiox_cache_page.c     a client's access to the bytes of one page
 *   mpiox_cache_errors.c   deferred errors of a file
 *   mpiox_cache_waiting.c  clients that wait for the delegate
 *   mpiox_cache_rescue.c   a survivor writes the pages of a dead delegate
 *   mpiox_cache_hidden.c   files with a hidden name
 *   mpiox_cache_kept.c     caches on a disk whose processes are all gone
 *   mpiox_cache_family.c   the last writer of a file, for a recovery after all are dead
 *
 * Rules of a frame (the reasons why no byte is lost):
 *   - `key` (file, page) of a frame changes only under exclusive use.
 *   - A client pins a frame, copies, marks, raises `writes`, unpins. It pins at most one frame at a time and waits for
 *     nothing while it has one pinned: so exclusive use is always reached, also with a cache of one page.
 *   - Dirty marks are cleared only after the bytes are in the file, and only if no client wrote meanwhile (`writes` is
 *     unchanged, seen under exclusive use). A delegate that dies in between leaves bytes dirty that are in the
 *     file already; it never leaves bytes clean that are not in the file.
 *   - One thread of the delegate at a time works on a frame (flush, fill or eviction): `busy`, private to the delegate.
 *   - A byte that is not dirty and lies in a frame that is not FILLED has no meaning.
 */
#ifndef MPIOX_CACHE_H
#define MPIOX_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_wait.h"

struct stat;

enum {
    MPIOX_CACHE_MAX_FILES = 64,    /* open at once per delegate; the next one is refused (stays without delegates) */
    MPIOX_CACHE_PATH_BYTES = 1024, /* of a file's absolute path, with its NUL */
    MPIOX_CACHE_MAX_THREADS = 16,  /* of a delegate: the service thread and its I/O threads */
    MPIOX_CACHE_WAITERS = 64,      /* clients that are shown as waiting at most */
    MPIOX_CACHE_SHARDS = 64,       /* of the counters that every access raises; a power of two */
    MPIOX_CACHE_REFUSED = 256,     /* ranges of errors that are only counted, of all files together */
    MPIOX_CACHE_ERRORS = 14,       /* deferred errors kept per file; more are only counted */
    MPIOX_CACHE_ERROR_BYTES = 96,  /* kept of each: its text is the name of a file-system call, which is short */
    MPIOX_FILE_RANGES = 576,       /* page ranges of a file that can change hands one by one, and owners, at most */
    MPIOX_FILE_RANGES_USUAL = 240  /* at most with fewer owners: each one that moves takes time */
};

#define MPIOX_CACHE_NO_FRAME UINT32_MAX

typedef struct mpiox_cache_geometry {
    int64_t page_bytes; /* multiple of 4096 */
    int64_t cap_bytes;  /* of the whole segment */
    int32_t slots;      /* request slots, >= 1 */
    int32_t frames;     /* filled in by mpiox_cache_plan() */
} mpiox_cache_geometry;

/* ---- the contents of the segment --------------------------------------------------------------------------------- */

enum mpiox_cache_state { /* of the delegate, in header.state */
                         MPIOX_CACHE_STARTING = 0,
                         MPIOX_CACHE_SERVING,
                         MPIOX_CACHE_ENDED, /* ended as it should: everything is flushed; clients go to the file */
                         /* it died; a survivor is flushing: clients wait (mpiox_cache_rescue) */
                         MPIOX_CACHE_DEAD,
                         /* all bytes that could be rescued are in the file; clients access the file */
                         MPIOX_CACHE_RESCUED
};

enum mpiox_frame_flags {
    MPIOX_FRAME_FILLED = 1,     /* every byte below `known_end` is valid, dirty or not */
    MPIOX_FRAME_QUEUED = 2,     /* its token is in the ring: fully dirty, to be flushed */
    MPIOX_FRAME_REFERENCED = 4, /* used since the last check of the eviction */
    MPIOX_FRAME_PREFETCHED = 8, /* filled ahead of any request, and not used yet */
    MPIOX_FRAME_URGENT = 16     /* a flush barrier waits for it */
};

/* The worst failure that a process has met, of a cache on a failed disk or in a file that was cut. */
enum mpiox_cache_tear {
    MPIOX_TORN_NOT = 0,
    MPIOX_TORN_PAGES, /* pages of files: the delegate ends, what can be read is rescued */
    MPIOX_TORN_TABLES /* it is unknown which bytes are dirty, or right */
};

#define MPIOX_FRAME_EXCLUSIVE (UINT32_C(1) << 31)

typedef struct mpiox_frame { /* 64 bytes: a cache line of its own */
    _Atomic uint32_t pins;  /* clients that have it pinned; MPIOX_FRAME_EXCLUSIVE: the delegate wants or has it alone */
    _Atomic uint32_t next;  /* frame of the same bucket, or MPIOX_CACHE_NO_FRAME */
    _Atomic uint32_t flags; /* mpiox_frame_flags */
    _Atomic int32_t file;   /* index of the file record, or -1: free */
    _Atomic int64_t page;   /* page index in the file: byte offset / page_bytes */
    _Atomic int64_t dirty;  /* bytes that are dirty, exact when no client has the frame pinned */
    _Atomic uint32_t writes;   /* raised by each access that wrote, before it unpins the frame */
    _Atomic uint32_t busy;     /* delegate: a thread works on it */
    _Atomic int64_t known_end; /* bytes of the page, from its start, that are known to exist in the file or dirty */
    _Atomic int32_t client;    /* id + 1 of the last writer; 0: not known */
    int32_t spare_word;        /* not used */
    int64_t spare;             /* not used: fills the cache line */
} mpiox_frame;

typedef struct mpiox_file_record {
    _Atomic int32_t openers;           /* openings (collective ones, not ranks) that use it; 0: free */
    _Atomic int32_t flags;             /* MPIOX_FILE_* */
    uint64_t device, inode;            /* as the delegate sees the file */
    char path[MPIOX_CACHE_PATH_BYTES]; /* absolute */
    /* mpiox_cache_family.h: the time of the file's last change, the greatest so far, and its size then; > 0: a write
     * began then, and the delegate has not checked since. Nanoseconds of CLOCK_REALTIME. */
    _Atomic int64_t seen_ns, seen_bytes, begun_ns;
    _Atomic int64_t end;         /* one past the last byte ever deposited since the file was opened; 0: none */
    _Atomic int32_t error_count; /* changed under error_lock: those in errors[], and error_more */
    _Atomic int32_t drain_errno; /* why writing behind the close does not go on, 0: it does */
    _Atomic int64_t collectives; /* accesses of this node's ranks in collectives that did not use the delegates */
    /* The owners of the pages. The file is cut into units (stripes) of unit_pages pages; unit u belongs to range u mod
     * ranges, and range r to delegate owner_of[r], as this delegate knows it. It serves a page only if it is the owner
     * itself; MPIOX_RANGE_MOVING: wait. At first owner_of[r] = r mod owners, and ranges is a multiple of owners, so
     * that this is the static-cyclic file domain of unit u: u mod owners. */
    int32_t unit_pages, owners, ranges;
    int32_t part; /* the delegate whose pages these are; of a REPLICA another one: whose originals they are copies of */
    _Atomic int16_t owner_of[MPIOX_FILE_RANGES];
    pthread_mutex_t error_lock;         /* robust, shared */
    int32_t error_more;                 /* under the lock: of error_count, those that are only counted */
    bool refused_beyond;                /* under the lock: there was no room for a range of these */
    int64_t refused_first, refused_end; /* under the lock: all of these lie between */
    /* Deferred, not yet reported; the beginning of each mpiox_error. */
    char errors[MPIOX_CACHE_ERRORS][MPIOX_CACHE_ERROR_BYTES];
} mpiox_file_record;

enum {
    MPIOX_FILE_READABLE = 1,
    MPIOX_FILE_WRITABLE = 2,
    MPIOX_FILE_REPLICA = 4,
    MPIOX_FILE_DIRECT_READ = 8,   /* the delegate's reads of whole blocks go past the page cache, */
    MPIOX_FILE_DIRECT_WRITE = 16, /* and its writes: see the hints direct_read and direct_write */
    MPIOX_FILE_BEHIND = 32,       /* its pages are written when it is closed, or at rest, or when a client waits */
    MPIOX_FILE_HIDDEN = 64,       /* its path is not its own name yet (mpiox_cache_hidden.h) */
    /* Closed; the delegate, which counts as an opener, writes its remaining bytes. A REPLICA: the delegate keeps the
     * copies, and writes them if the originals are lost. */
    MPIOX_FILE_DRAINING = 128,   /* 256 is free once no cache of version 0.1.0 before December 2026 is left */
    MPIOX_FILE_COPIED = 512,     /* other delegates keep copies beyond its close; HIDDEN, too */
    MPIOX_FILE_CONTAINER = 1024, /* its path is an index (mpiox_storage_container.h), its inode the first part's */
    MPIOX_FILE_PAST = 2048       /* ranks may have written it past the delegates */
};
enum { MPIOX_RANGE_MOVING = -1 };

/* Number of ranges for so many owners, 1 to MPIOX_FILE_RANGES: the largest multiple of owners up to
 * MPIOX_FILE_RANGES_USUAL, but one for each owner at least. */
static inline int32_t mpiox_file_ranges(int32_t owners)
{
    return owners < MPIOX_FILE_RANGES_USUAL ? owners * (MPIOX_FILE_RANGES_USUAL / owners) : owners;
}

/* X(name, unit, meaning): totals of a delegate since it started; any thread or client may raise them. Read them by
 * mpiox_cache_sum(). */
#define MPIOX_CACHE_COUNTERS(X)                                                                                        \
    X(writes, "accesses", "accesses of pages that wrote")                                                              \
    X(reads, "accesses", "accesses of pages that read")                                                                \
    X(bytes_written, "bytes", "data bytes deposited")                                                                  \
    X(bytes_read, "bytes", "data bytes read by clients")                                                               \
    X(requests, "requests", "requests that the delegate answered")                                                     \
    X(messages, "messages", "requests received over the network")                                                      \
    X(hits, "pages", "page accesses that found the page in the cache")                                                 \
    X(misses, "pages", "page accesses that did not")                                                                   \
    X(fills, "pages", "pages read from the file on demand")                                                            \
    X(prefetched, "pages", "pages read ahead of any request")                                                          \
    X(prefetch_used, "pages", "of those, pages that were then accessed")                                               \
    X(prefetch_wasted, "pages", "of those, pages that were dropped unused")                                            \
    X(evictions, "pages", "clean pages dropped for others")                                                            \
    X(flushes, "pages", "pages written to the file")                                                                   \
    X(flush_requests, "requests", "file-system write requests")                                                        \
    X(flush_bytes, "bytes", "bytes of those")                                                                          \
    X(fill_requests, "requests", "file-system read requests")                                                          \
    X(fill_bytes, "bytes", "bytes of read requests, also beyond the end of the file")                                  \
    X(waits, "requests", "requests that waited for a frame: back-pressure")                                            \
    X(flush_barriers, "requests", "flushes requested by a sync, close or change of size")                              \
    X(errors, "errors", "file-system errors")                                                                          \
    X(reordered, "requests", "requests that were served before older ones, by a scheduler")                            \
    X(merged, "requests", "requests that joined another one's, by a scheduler")                                        \
    X(overdue, "requests", "requests that a scheduler served because they had waited too long")                        \
    X(windows, "waits", "times that a scheduler served nothing though requests waited")                                \
    X(queued_most, "requests", "most requests that waited for a scheduler at once, of each delegate")                  \
    X(moved_in, "pages", "page ranges taken over from another delegate")                                               \
    X(moved_out, "pages", "page ranges assigned to another delegate")                                                  \
    X(rescued_bytes, "bytes", "bytes of the delegate that others wrote to the file after its death")

typedef struct mpiox_cache_counters {
#define X(name, unit, meaning) atomic_int_least64_t name;
    MPIOX_CACHE_COUNTERS(X)
#undef X
    atomic_int_least64_t flush_size_log2[48]; /* write requests of [2^k, 2^(k+1)) bytes */
} mpiox_cache_counters;

/* The counters that every access raises, apart from the rest and in several places: clients that write one cache line
 * take turns. */
typedef struct mpiox_cache_shard {
    atomic_int_least64_t writes, reads, bytes_written, bytes_read, misses, prefetch_used;
    int64_t spare[2]; /* not used: fills the cache line */
} mpiox_cache_shard;

enum mpiox_life_phase { MPIOX_LIFE_NONE = 0, MPIOX_LIFE_ALIVE, MPIOX_LIFE_ENDED, MPIOX_LIFE_DEAD };

typedef struct mpiox_life { /* of a thread of the delegate */
    _Atomic int32_t phase;  /* mpiox_life_phase; ALIVE: see the mutex */
    pthread_mutex_t mutex;  /* robust; owned by the thread while it is ALIVE */
} mpiox_life;

typedef struct mpiox_waiter { /* a client that has waited for more than a second: mpiox_cache_waiting.h */
    _Atomic int64_t pid;      /* 0: none; -1: being filled in */
    _Atomic int32_t rank;     /* of the program, -1: not known (a connection of another node) */
    _Atomic int32_t op, file; /* the request or event: enum mpiox_op, or below 0; file -1: none */
    _Atomic int64_t page;     /* -1: none */
    _Atomic int64_t since_us; /* microseconds of CLOCK_REALTIME */
} mpiox_waiter;

typedef struct mpiox_refused { /* bytes of an error that is only counted */
    int64_t first, end;        /* file bytes, half-open */
    int32_t file;              /* index of the file record */
} mpiox_refused;

typedef struct mpiox_cache_header {
    uint64_t magic, version;       /* of the format; mpiox_cache_attach() checks both */
    mpiox_cache_geometry geometry; /* as planned; constant */
    /* offsets from the segment's start */
    int64_t ring_at, buckets_at, frames_at, dirty_at, blocks_at, pages_at, total_bytes;
    uint32_t bucket_count;       /* a power of two */
    int32_t delegate, delegates; /* which one of how many */
    int64_t pid;                 /* the delegate's, on its host */
    char host[64];               /* name */
    char service[64], mode[16];  /* for the status: which job's delegates; "spawn", "split", "process", "thread" */
    char kept[256];       /* absolute name of the segment's file, for a recovery when all are dead; "": it has none */
    bool early;           /* frames are to be touched before they are needed */
    _Atomic int32_t torn; /* mpiox_cache_tear */
    double started;       /* seconds of CLOCK_REALTIME */
    mpiox_futex state;    /* mpiox_cache_state */
    _Atomic uint32_t table_changes; /* of the map from page to frame: odd while it changes (a sequence lock) */
    _Atomic uint32_t beat;          /* raised every 100 ms by the delegate, */
    _Atomic int64_t alive_ns;       /* which notes the time, of CLOCK_REALTIME */
    _Atomic int32_t together;       /* 1: it was found with the caches of all other delegates of its job */
    _Atomic int32_t threads;        /* life[] in use */
    mpiox_life life[MPIOX_CACHE_MAX_THREADS];   /* of the threads of the delegate; [0]: the service thread */
    pthread_mutex_t rescue_lock;                /* robust; owned by the survivor at work */
    _Atomic int32_t adopting;                   /* 1: what an earlier job has left is still brought to its files */
    _Atomic int32_t dirty_frames;               /* estimate, for the pace of even drains */
    pthread_mutex_t refused_lock;               /* robust; locked under an error_lock */
    int32_t refused_count;                      /* under refused_lock, as the next */
    mpiox_refused refused[MPIOX_CACHE_REFUSED]; /* the first refused_count are valid */
    mpiox_waiter waiters[MPIOX_CACHE_WAITERS];  /* for the status; each client writes its own entry */
    mpiox_cache_counters counters;              /* without the counts in shards[] */
    _Alignas(64) mpiox_cache_shard shards[MPIOX_CACHE_SHARDS];
    mpiox_file_record files[MPIOX_CACHE_MAX_FILES]; /* openers 0: a free record */
} mpiox_cache_header;

/* ---- this process's view of a segment ---------------------------------------------------------------------------- */

typedef struct mpiox_ring_area mpiox_ring_area; /* mpiox_ring.h */

typedef struct mpiox_cache { /* plain pointers into the mapping; copy freely */
    mpiox_cache_header *header;
    mpiox_ring_area *ring;     /* requests and clients */
    _Atomic uint32_t *buckets; /* [bucket_count] first frame of each chain; the delegate writes them */
    mpiox_frame *frames;       /* [frame_count] */
    _Atomic uint64_t *dirty;   /* page_bytes / 64 words per frame, see mpiox_dirty.c */
    _Atomic uint32_t *blocks;  /* page_bytes / 4096 words per frame */
    char *pages;               /* page-aligned */
    int64_t page_bytes;        /* these three: as in the header, read once */
    int32_t frame_count;       /* as geometry.frames */
    uint32_t bucket_count;     /* a power of two */
    int disk;                  /* a cache on a disk: a descriptor of its file, or -1 */
} mpiox_cache;

/* Set geometry->frames, and a smaller page_bytes if not even one page fits (down to 4096). MPIOX_E_ARG: the cap has no
 * room for a page of 4096 bytes (about 300 KiB with 16 slots). */
int mpiox_cache_plan(mpiox_cache_geometry *geometry);
/* The smallest cap with which that works, for this page size and number of slots. */
int64_t mpiox_cache_least_bytes(const mpiox_cache_geometry *geometry);
/* Creator, in zero-filled memory of geometry->cap_bytes bytes: lay the segment out. State STARTING. 0, MPIOX_E_ARG
 * (not a planned geometry) or MPIOX_E_UNSUPPORTED (no robust mutexes). */
int mpiox_cache_format(void *base, const mpiox_cache_geometry *geometry, int delegate, int delegates, mpiox_cache *out);
/* Anyone else: check magic, version and bounds. 0 or MPIOX_E_CORRUPT. */
int mpiox_cache_attach(void *base, int64_t bytes, mpiox_cache *out);

static inline char *mpiox_cache_bytes_of(const mpiox_cache *cache, uint32_t frame)
{
    return cache->pages + (int64_t)frame * cache->page_bytes;
}

/* ---- life and death (mpiox_cache.c) ------------------------------------------------------------------------------ */

/* A robust mutex for several processes, in zeroed memory. 0 or an errno. */
int mpiox_cache_make_mutex(pthread_mutex_t *mutex);
/* The state of a thread of the delegate: mpiox_life_phase. Does not wait. Any process. */
int mpiox_cache_look_at_life(mpiox_life *life);

/* Delegate: the calling thread's life begins (it takes the next life mutex) or ends. Returns its index, or
 * MPIOX_E_FULL. The service thread is the first to live, before the state becomes SERVING, and ends its life after it
 * is ENDED. */
int mpiox_cache_live(const mpiox_cache *cache);
void mpiox_cache_end_life(const mpiox_cache *cache, int index);
/* Is the delegate serving, or about to (STARTING: requests wait for it)? Cheap (one load) when it is; checks the life
 * mutex of the service thread only with `look` (a system call at most). When it finds that thread dead it sets the
 * state to DEAD. Any process. */
bool mpiox_cache_is_serving(const mpiox_cache *cache, bool look);
/* A process that maps a cache on a disk: pages that cannot be read do not end it (mpiox_segment_guard.h). From then on
 * the delegate does not serve, for this process. Undone by mpiox_segment_unguard(). disk: a descriptor of its file, the
 * caller's, which stays open as long as the cache is used. */
void mpiox_cache_guard(mpiox_cache *cache, int disk);
/* The failure that this process has met, or another one has recorded in the cache. */
int mpiox_cache_torn(const mpiox_cache *cache);
/* This process has met it: have the delegate end itself, and wait until it has. */
void mpiox_cache_give_up(const mpiox_cache *cache);
/* An idle callback for mpiox_wait: context is a const mpiox_cache *; checks every few milliseconds; always false. */
bool mpiox_cache_watch(void *cache);

/* A survivor's work: called when the state is DEAD. Wait until every thread of the dead delegate is gone, then bring
 * the dirty bytes of every frame to their files (opened by path; device and inode are checked), in file order; what
 * cannot be written is added to the file's errors, and stays dirty where the segment has a name to be found by. Files
 * that were being written behind their close get their name. Then the state is RESCUED. One process does it, the others
 * wait until it is done; if that one dies, the next takes over. Blocking. Returns bytes rescued, which are counted; -1
 * when another did it. */
int64_t mpiox_cache_rescue(const mpiox_cache *cache);
/* The same for a segment whose processes are all gone, in any state: write its dirty bytes. -1: its delegate lives.
 * all_are_gone: the processes of the job's other nodes, too, so that copies of their pages are written. If the caches
 * of the family show a later foreign write, the file is not written, unless `force`: its error is MPIOX_CACHE_CHANGED.
 */
#define MPIOX_CACHE_RESCUE "rescue: " /* the first word of a survivor's errors */
#define MPIOX_CACHE_CHANGED MPIOX_CACHE_RESCUE "written since by others"
struct mpiox_cache_family;
int64_t mpiox_cache_recover(const mpiox_cache *cache, bool all_are_gone, bool force,
                            const struct mpiox_cache_family *family);

/* ---- errors of a file (mpiox_cache_errors.c) --------------------------------------------------------------------- */

/* Add a deferred error of a file (offset and length name the bytes), and count it. Any process. */
void mpiox_cache_add_error(const mpiox_cache *cache, int32_t file, const mpiox_error *error);
/* Take up to max errors out; *more = number that were only counted since the last call. Returns their number; those
 * beyond max stay. */
int mpiox_cache_take_errors(const mpiox_cache *cache, int32_t file, mpiox_error *out, int max, int *more);
/* Bytes [first, end) are in the file: they are part of no error any more. Any process. */
void mpiox_cache_mend_errors(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end);
/* Is there one, not taken yet, that concerns bytes [first, end)? It is not taken. Where there are more than are kept,
 * any byte between the first and the last of the others may be concerned. From 0 to INT64_MAX: any error. */
bool mpiox_cache_find_error(const mpiox_cache *cache, int32_t file, int64_t first, int64_t end, mpiox_error *out);
/* How many wait to be taken? */
static inline int32_t mpiox_cache_error_count(const mpiox_cache *cache, int32_t file)
{
    return atomic_load_explicit(&cache->header->files[file].error_count, memory_order_relaxed);
}
/* Are there any, of any file? */
bool mpiox_cache_has_errors(const mpiox_cache *cache);

/* ---- files and counters (mpiox_cache.c) -------------------------------------------------------------------------- */

/* All counters of the delegate, now. */
void mpiox_cache_sum(const mpiox_cache *cache, mpiox_cache_counters *out);
/* Raise record->end to at least `end`. */
void mpiox_cache_raise_end(const mpiox_cache *cache, int32_t file, int64_t end);
/* A write of the file begins. */
void mpiox_cache_begin_write(mpiox_file_record *record);
/* Record this state of the file. begun: record->begun_ns, read before the file's state, while no write was under way.
 */
void mpiox_cache_see(mpiox_file_record *record, const struct stat *status, int64_t begun);
int64_t mpiox_cache_changed_ns(const struct stat *status); /* when the file was changed last */

/* ---- frames (mpiox_frame.c) -------------------------------------------------------------------------------------- */

enum { /* results of mpiox_frame_pin() */
       MPIOX_FRAME_HIT = 0,
       MPIOX_FRAME_MISS = 1, /* exact: at one moment during the call the page was not in the map and the range was this
                               delegate's */
       MPIOX_FRAME_GONE = 2, /* the delegate no longer serves */
       MPIOX_FRAME_MOVED = 3 /* the page's range belongs to another delegate now: see the record's owner_of */
};

/* Client: pin the frame of a page. On HIT *frame is pinned. Checks the range's owner while the frame is pinned, or
 * after the miss. Waits (yielding, checking the delegate's life) while the delegate uses the frame exclusively or the
 * range moves; for a moving range only if `patient`, and half a second at most, else the result is MOVED. */
int mpiox_frame_pin(const mpiox_cache *cache, int32_t file, int64_t page, bool patient, uint32_t *frame);
void mpiox_frame_unpin(const mpiox_cache *cache, uint32_t frame);
/* As mpiox_frame_pin() without patience, but nothing is pinned: on HIT the page was in the map at some moment during
 * the call. */
int mpiox_frame_look(const mpiox_cache *cache, int32_t file, int64_t page);

/* Delegate only, one thread at a time (its own lock). */
uint32_t mpiox_frame_find(const mpiox_cache *cache, int32_t file, int64_t page); /* MPIOX_CACHE_NO_FRAME: none */
/* Put a free frame (file == -1, not in the map; exclusive or never used) into the map as (file, page): no byte dirty,
 * no flag but QUEUED (the frame's token is in the ring, whatever its page); ends the exclusive use, with one pin left
 * if `pin`. */
void mpiox_frame_insert(const mpiox_cache *cache, uint32_t frame, int32_t file, int64_t page, bool pin);
/* Take an exclusive frame out of the map: file = -1, still exclusive. Its dirty marks must be clear. */
void mpiox_frame_remove(const mpiox_cache *cache, uint32_t frame);
/* Exclusive use: try returns false if a client has pinned the frame. wait prevents new pins and waits until the frame
 * is unpinned; false (and no exclusive use): still pinned after `seconds`, which only a dead client explains. */
bool mpiox_frame_try_exclusive(const mpiox_cache *cache, uint32_t frame);
bool mpiox_frame_wait_exclusive(const mpiox_cache *cache, uint32_t frame, double seconds);
void mpiox_frame_end_exclusive(const mpiox_cache *cache, uint32_t frame);
static inline bool mpiox_frame_is_exclusive(const mpiox_cache *cache, uint32_t frame)
{
    return atomic_load_explicit(&cache->frames[frame].pins, memory_order_relaxed) & MPIOX_FRAME_EXCLUSIVE;
}

/* ---- dirty bytes (mpiox_dirty.c) --------------------------------------------------------------------------------- */

/* Mark count blocks of length bytes, the first at byte `offset` of the page, then every `stride` bytes. Concurrent
 * callers may mark one frame. Returns how many bytes were not dirty before. No system call. */
int64_t mpiox_dirty_mark(const mpiox_cache *cache, uint32_t frame, int64_t offset, int64_t length, int64_t stride,
                         int64_t count);
/* Are all bytes of those blocks dirty? */
bool mpiox_dirty_covers(const mpiox_cache *cache, uint32_t frame, int64_t offset, int64_t length, int64_t stride,
                        int64_t count);
bool mpiox_dirty_is_full(const mpiox_cache *cache, uint32_t frame); /* every byte of the page */
/* The first dirty run at or after byte `from` of the page: *offset, *length. False: none. */
bool mpiox_dirty_run(const mpiox_cache *cache, uint32_t frame, int64_t from, int64_t *offset, int64_t *length);
/* Under exclusive use, or by a survivor: no byte is dirty; frame->dirty is 0. */
void mpiox_dirty_clear(const mpiox_cache *cache, uint32_t frame);
/* Fill: copy the first `length` bytes of `from` to the page's bytes that are not dirty, and set the rest of these to
 * zero. Under exclusive use. */
void mpiox_dirty_fill(const mpiox_cache *cache, uint32_t frame, const void *from, int64_t length);

#endif
