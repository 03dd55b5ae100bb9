/*
 * mpiox_server.h - a delegate: serves the page cache of its segment, and moves pages between it and the file system.
 *
 *   mpiox_server_run.c        creating, running, ending; the service thread and the I/O threads
 *   mpiox_server_files.c      the records of the files, their descriptors, flush barriers
 *   mpiox_server_pages.c      requests for pages: those that wait for a frame, and reading ahead
 *   mpiox_server_evict.c      a frame for a page: free ones, eviction (2Q: Johnson and Shasha, VLDB 1994), patience
 *   mpiox_server_flush.c      I/O threads: dirty pages to the file, in file order, neighbours merged
 *   mpiox_server_drain.c      I/O threads: files that are written behind their close
 *   mpiox_server_fill.c       I/O threads: pages from the file, on demand and ahead
 *   mpiox_server_order.c      I/O threads: the next page, if a scheduler chooses it
 *   mpiox_server_share.c      the client that gets the next frame, under weighted fair queueing
 *   mpiox_server_alone.c      exclusive use of a frame, even if a client that had pinned it has died
 *   mpiox_server_replica.c    copies of other delegates' pages
 *   mpiox_server_ranges.c     page ranges that change owners
 *   mpiox_server_hidden.c     files with a hidden name
 *   mpiox_server_target.c     the I/O server of a page
 *   mpiox_server_state.c      shared by these: lists of frames, queues, the work that waits
 *
 * Threads. One service thread takes requests (mpiox_ring.h) and never makes a file-system call that moves data; I/O
 *          threads flush and fill. The thread that runs mpiox_server_run() is the service thread. In thread mode
 *          several servers live in one process, beside the program: they have no global state, set no signal handler
 *          and print nothing. They do not call MPI: a delegate continues when the MPI library around it has ended.
 */
#ifndef MPIOX_SERVER_H
#define MPIOX_SERVER_H

#include "mpiox_ring.h"
#include "mpiox_segment.h"

typedef struct mpiox_server mpiox_server;

typedef struct mpiox_server_options {
    mpiox_cache_geometry geometry; /* page_bytes, cap_bytes, slots */
    char cache_dirs[256];          /* folders for the segment, as in the hint; "": it is in memory */
    bool keep;                     /* the file there keeps its name until all that is in it is in the files */
    bool early;                    /* memory is to be there before it is needed */
    int64_t memory_bytes;          /* the cap if none of them has room for it */
    int32_t delegate, delegates;   /* own index; delegates of the job */
    int32_t io_threads;            /* 1 .. MPIOX_CACHE_MAX_THREADS - 1 */
    int32_t prefetch_pages;        /* read ahead of each reader at most; 0: off */
    int32_t storage;               /* mpiox_storage_kind */
    /* The order in which requests are served: a policy of csrc/iod/schedule, or "" and "elevator" for the built-in one.
     * */
    char scheduler[16];
    int64_t quantum; /* bytes; 0: 4 MiB */
    /* of the scheduler: microseconds of a window; milliseconds of its patience */
    int32_t window_us, order_patience_ms;
    double patience_s; /* seconds after which the delegate ends if no client has joined; 0: 60 */
} mpiox_server_options;

/* Bytes of a file that could not be written, and were not reported. */
typedef struct mpiox_server_lost {
    mpiox_error error;                 /* names the bytes */
    int32_t more;                      /* of the last one of a file: ranges that are only counted */
    char path[MPIOX_CACHE_PATH_BYTES]; /* of the file */
} mpiox_server_lost;

/* Create the segment and format it; state STARTING. Clients of this node attach by *address. 0, MPIOX_E_ARG,
 * MPIOX_E_FULL, MPIOX_E_NOMEM. With 0 *error explains why the segment is in memory though a folder was named, or is
 * clear. */
int mpiox_server_create(const mpiox_server_options *options, mpiox_server **out, mpiox_segment_address *address,
                        mpiox_error *error);
/* Other delegates of the job, of whose files this one keeps copies. */
typedef struct mpiox_server_peers {
    void *context;                                      /* of both functions; the caller's */
    int (*name)(void *context, const mpiox_slot *slot); /* MPIOX_OP_PEER: the answer's result */
    double (*gone_s)(void *context, int32_t delegate);  /* for how many seconds one has been gone; 0: not known to be */
} mpiox_server_peers;
/* Before it runs; otherwise none is ever gone. */
void mpiox_server_set_peers(mpiox_server *server, const mpiox_server_peers *peers);
/* Functions that report, once for a file: a complete file does not get its name, because another file has it; the file
 * was removed while so many of its bytes were not written. Any thread. */
typedef struct mpiox_server_reports {
    void (*clash)(const char *path, int code);
    void (*removal)(const char *path, int64_t bytes);
} mpiox_server_reports;
/* Before it runs. */
void mpiox_server_set_reports(mpiox_server *server, const mpiox_server_reports *reports);
const mpiox_cache *mpiox_server_cache(const mpiox_server *server);
/* All clients have attached: remove the name of the segment. The descriptor stays, for `mpiio-ext delegates status`. */
void mpiox_server_seal(mpiox_server *server);
/* Serve until every client that joined has left or died (DETACH, or its life mutex), and closed files have been
 * written, or until mpiox_server_stop(). Then flush all pages; state ENDED. Blocking. Returns MPIOX_OK, or MPIOX_E_IO
 * if bytes could not be written at the end and no client was left to report them: *lost_count ranges, ordered by file,
 * in *lost, which belongs to the server, and *lost_rest further ranges; the caller prints them. */
int mpiox_server_run(mpiox_server *server, const mpiox_server_lost **lost, int *lost_count, int *lost_rest);
void mpiox_server_stop(mpiox_server *server); /* any thread */
/* Time is short: from now on write closed files at full speed. Any thread, also in a signal handler. */
void mpiox_server_hurry(mpiox_server *server);
/* All leftovers of earlier jobs in the folders have been written to their files. Until then, if the segment has a name
 * itself, clients that open a file wait. Any thread. */
void mpiox_server_adopted(mpiox_server *server);
void mpiox_server_free(mpiox_server *server); /* NULL-safe; not while it runs */

#endif
