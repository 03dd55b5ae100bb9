/*
 * mpiox_process.h - one delegate, for a process of the program: its announcement after its start; attaching; whether
 * it serves.
 */
#ifndef MPIOX_PROCESS_H
#define MPIOX_PROCESS_H

#include "mpiox_cache.h"
#include "mpiox_link.h"
#include "mpiox_segment.h"

typedef struct mpiox_process {
    int32_t index, node;   /* node: as in the topology of MPI_COMM_WORLD (pretended nodes count); -1: outside the job */
    bool local;            /* this process maps its memory */
    mpiox_segment segment; /* local: its memory, mapped */
    mpiox_cache cache;     /* local: its cache, in `segment` */
    int client;            /* id by mpiox_ring_join() (local) */
    mpiox_link *link;      /* not local: connection for requests, owned; NULL: none */
    int liveness;          /* not local: to its liveness service (mpiox_process_liveness.h), or -1 */
    /* settled: this process has detected its end (local: only if its cache cannot be read); lost: it is unknown whether
     * all its pages are in the file */
    bool settled, lost;
    atomic_bool left; /* not local: this process has left it, and sends it no requests */
    bool reported;    /* not local: the watcher has reported the present wait for it; only the watcher uses this */
    char host[64];    /* its host name */
    int64_t pid;      /* its process, on its host */
    mpiox_rendezvous_address lives_at; /* its liveness service; port 0: there is none */
} mpiox_process;

/* What a delegate announces after its start. Plain data: it travels over MPI and through pipes. */
typedef struct mpiox_announcement {
    int32_t code;        /* MPIOX_OK: it runs; else *error explains why not */
    int32_t index, node; /* of the delegate, as in mpiox_process */
    int32_t listens;     /* 1: it accepts connections, `link` and `liveness` are valid; else 0 */
    /* its process on its host; of its cache: bytes of a page, bytes of the segment */
    int64_t pid, page_bytes, cap_bytes;
    int64_t spawned_pid;                     /* the process that MPI spawned for it; 0: none */
    char host[64];                           /* its host name */
    mpiox_segment_address segment;           /* by which processes of its node map its memory */
    mpiox_rendezvous_address link, liveness; /* for requests; of its liveness service, port 0: there is none */
    mpiox_error error; /* with MPIOX_OK: why its cache is in memory though a folder was named, or clear */
} mpiox_announcement;

/* Map the memory of a delegate of this process's node, or where that is not possible, and for those of other nodes,
 * connect to it within so many seconds. Local. 0 or MPIOX_E_*, with *error. */
int mpiox_process_attach(mpiox_process *delegate, const mpiox_announcement *announced, int node, double seconds,
                         mpiox_error *error);
/* Give up what connects this process to a delegate elsewhere. */
void mpiox_process_disconnect(mpiox_process *delegate);
/* Undo mpiox_process_attach(), which may have failed, or not have been called on zeroed memory. No part of *delegate
 * may be in use. */
void mpiox_process_detach(mpiox_process *delegate);
/* If the cache is marked `early`, touch the frames that are used first, so that this process does not wait for memory
 * then; `leaving` (may be NULL) ends it. Blocking, any thread. */
void mpiox_process_touch(const mpiox_cache *cache, bool (*leaving)(void));
/* A survivor has rescued the delegate's pages: print a line for each closed file of which bytes could not be written.
 */
void mpiox_process_report_left(const mpiox_cache *cache);
/* Print one line: a file is complete, but another file has its name. Any thread. */
void mpiox_process_report_clash(const char *path, int code);
/* Print one line: another process has removed a file of which so many bytes were not written. Any thread. */
void mpiox_process_report_removal(const char *path, int64_t bytes);
/* Is that delegate serving? If it has died, rescue its pages first (local) or wait until that is done (not local; then
 * delegate->lost may be set). Local; may block while pages are being rescued. */
bool mpiox_process_is_serving(mpiox_process *delegate);
/* Has this process detected the delegate's death? Local, cheap. */
bool mpiox_process_has_died(const mpiox_process *delegate);

#endif
