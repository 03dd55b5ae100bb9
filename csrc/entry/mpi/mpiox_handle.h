/*
 * mpiox_handle.h - the open MPI files of this process, keyed by their handles.
 *
 * PMPI_File_open opens every file, so a call that is left to the MPI library works on the same handle. Beside it the
 * library opens the file for itself (file/mpiox_file.h). Rank 0 of the communicator resolves the hints and broadcasts
 * them: they agree on all ranks, and one process reads the hints files.
 *
 * Threads: a lock guards the table. Independent accesses of several threads may use an entry at once: what they change
 * is atomic or guarded by pointer_lock. Everything else belongs to the file's collectives, of which one runs at a time.
 */
#ifndef MPIOX_HANDLE_H
#define MPIOX_HANDLE_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_typemap.h"
#include "mpiox_collective.h"
#include "mpiox_forwarded.h"
#include "mpiox_hints.h"
#include "mpiox_live.h"
#include "mpiox_opener.h"
#include "mpiox_route.h"
#include "mpiox_stats.h"
#include "mpiox_stats_identity.h"
#include "mpiox_wait.h"
#include "mpiox_worker.h"

/* Where in the file a data access begins. */
typedef enum mpiox_positioning {
    MPIOX_EXPLICIT_OFFSET,
    MPIOX_INDIVIDUAL_POINTER,
    MPIOX_SHARED_POINTER
} mpiox_positioning;

typedef struct mpiox_split { /* the one split collective that may be under way */
    bool active, write; /* active: the library has carried one out, its end is still to come; write: its direction */
    bool native;        /* the MPI library has begun one */
    mpiox_positioning positioning; /* of its begin; its end must have the same */
    MPI_Status status;             /* of its access; its end returns this */
} mpiox_split;

typedef enum mpiox_spent { MPIOX_SPENT_READ, MPIOX_SPENT_WRITE, MPIOX_SPENT_SYNC, MPIOX_SPENT } mpiox_spent;

/* Error classes of failed calls that are counted one by one. */
typedef enum mpiox_failure { MPIOX_FAILED_NO_SPACE, MPIOX_FAILED_QUOTA, MPIOX_FAILED_IO, MPIOX_FAILURES } mpiox_failure;

typedef struct mpiox_handle {
    struct mpiox_handle *next; /* in the table's bucket */
    MPI_File fh;               /* the MPI library's handle: the key of the table */
    MPI_Comm comm;             /* for summing the statistics; MPI_COMM_NULL when they are off */
    bool owns_comm;            /* else it is the topology's */
    int rank, ranks, amode;    /* rank in the communicator of the opening, and size of that communicator; MPI_MODE_* */
    char *path;                /* without ROMIO's file-system prefix; owned */
    mpiox_hints hints;         /* in force; the same on all ranks, unless without_library */
    mpiox_file *file;          /* the library's own path to the file; NULL: every data access is native... */
    mpiox_collective *collective; /* NULL as `file` is */
    mpiox_forwarded *forwarded;   /* NULL: accesses do not go through delegates... */
    const mpiox_opener *opener; /* the MPI library gets no access: whose the file is; NULL: it does (mpiox_opener.h) */
    void *opened_as;            /* rank 0: that opener's state of the file; else NULL */
    const char *why_no_delegates; /* ...for this reason (static text); NULL: none were requested */
    bool path_unknown;            /* `path` may name another file than the MPI library has opened: mpiox_mpi_path.h */
    const char *why_native;       /* ...for this reason (static text); NULL: no particular one */
    bool without_library;         /* no message to other ranks: some lack the library (mpiox_preload_check.h) */
    bool reports_alone;           /* then: this rank reports on the file, without the others */
    bool all_ours;                /* the library carries out every access (see shares_views); the same on all ranks */
    bool view_handed_over;        /* the MPI library has the view in force; always, unless all_ours */
    /* of the view in force: themselves if predefined, else kept types (mpiox_mpi_view.c) */
    MPI_Datatype etype, filetype;
    MPI_Offset displacement; /* bytes */
    bool native_view;        /* the view's data representation is "native"; the same on all ranks */
    bool has_view;           /* managed, `file` has this rank's view, and etype_bytes > 0 */
    int64_t etype_bytes;     /* unit of offsets and positions */
    bool alone_was_dear; /* this rank's part of nonblocking collectives was many small pieces (mpiox_mpi_access.c)... */
    bool shares_views;   /* ...on some rank: they are the MPI library's, which gets every view; the same on all ranks */
    bool waits_hidden;   /* a tool keeps MPI_Wait from the library: nonblocking accesses are the MPI library's */
    mpiox_split split;   /* of this file */
    pthread_mutex_t pointer_lock; /* guards the next two, and the creation of the workers */
    bool owns_pointer;            /* the library, not MPI, has the individual file pointer (mpiox_mpi_pointer.h) */
    MPI_Offset pointer;           /* in etypes */
    /* They run nonblocking accesses; NULL before the first one. Two, because collectives keep their order and wait
     * for other ranks, and independent accesses must not wait behind them. */
    mpiox_worker *collective_worker, *independent_worker;
    int64_t views_set; /* calls of MPI_File_set_view since the opening */
    /* accesses of the MPI library; nonblocking accesses of a worker */
    atomic_int_least64_t native_calls, nonblocking_calls;
    atomic_int_least64_t failed[MPIOX_SPENT], failed_with[MPIOX_FAILURES]; /* calls of this rank */
    mpiox_live_counters *live;                                             /* NULL until the file is in the table */
    bool recorded; /* a tracer records where the time of the run goes; the same on all ranks */
    bool timed;    /* statistics of the file or of the run are requested; the following is for them alone */
    atomic_int_least64_t spent_ns[MPIOX_SPENT]; /* inside calls */
    double opened;                              /* mpiox_stats_now() */
    int64_t waits;                              /* mpiox_stats_waits() at the opening */
    /* First begin and last end of an access, of reads and of writes, in ns since 1970; 0: none. */
    atomic_int_least64_t first_ns[2], last_ns[2];
    atomic_bool end_unknown[2]; /* the MPI library carried one out, whose end is unknown */
} mpiox_handle;

/* When something begins that mpiox_handle_spent() ends. NULL-safe; nothing without statistics. */
static inline double mpiox_handle_now(const mpiox_handle *handle)
{
    return handle && handle->timed ? mpiox_now() : 0.0;
}

static inline void mpiox_handle_spent(mpiox_handle *handle, mpiox_spent what, double begun)
{
    if (handle && handle->timed)
        atomic_fetch_add_explicit(&handle->spent_ns[what], (int_least64_t)(1e9 * (mpiox_now() - begun)),
                                  memory_order_relaxed);
}

/* An access begins; returns mpiox_handle_now(). */
static inline double mpiox_handle_note_begin(mpiox_handle *handle, bool write)
{
    int_least64_t none = 0;

    if (handle && handle->timed && atomic_load_explicit(&handle->first_ns[write], memory_order_relaxed) == 0)
        atomic_compare_exchange_strong(&handle->first_ns[write], &none, mpiox_wall_ns());
    return mpiox_handle_now(handle);
}

/* The access has ended. */
static inline void mpiox_handle_note_end(mpiox_handle *handle, bool write, double begun)
{
    if (!handle || !handle->timed)
        return;
    mpiox_handle_spent(handle, write ? MPIOX_SPENT_WRITE : MPIOX_SPENT_READ, begun);
    const int_least64_t now = mpiox_wall_ns();
    int_least64_t last = atomic_load_explicit(&handle->last_ns[write], memory_order_relaxed);

    while (last < now && !atomic_compare_exchange_weak(&handle->last_ns[write], &last, now))
        continue;
}

/* Count an access of so many bytes that has ended, for the page that other processes read. NULL-safe. */
static inline void mpiox_handle_count(mpiox_handle *handle, bool write, int64_t bytes)
{
    if (handle)
        mpiox_live_count(handle->live, write, bytes);
}

/* Does the library carry out accesses of this file? The same on all ranks; NULL-safe. */
static inline bool mpiox_handle_is_managed(const mpiox_handle *handle)
{
    return handle && handle->file;
}

/* The ways that accesses of a managed file may take. */
static inline mpiox_route mpiox_handle_route(const mpiox_handle *handle)
{
    return (mpiox_route){handle->file, handle->collective, handle->forwarded, handle->all_ours};
}

mpiox_handle *mpiox_handle_find(MPI_File fh);   /* NULL when the table does not have the handle */
mpiox_handle *mpiox_handle_remove(MPI_File fh); /* the same */
void mpiox_handle_insert(mpiox_handle *handle);
void mpiox_handle_free(mpiox_handle *handle); /* of no table, with its path; NULL-safe */
/* Visit every open file under the table's lock. */
void mpiox_handle_each(void (*visit)(mpiox_handle *handle, void *context), void *context);

#endif
