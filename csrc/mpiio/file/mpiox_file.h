/*
 * mpiox_file.h - an open file: this library's own path to the bytes of a file that PMPI_File_open has opened.
 *
 *   mpiox_file_open.c       open and close, agreed by all ranks; sync, preallocation; counters
 *   mpiox_file_abort.c      lines of ranks that wait in vain; ending the job where the only other end is a hang
 *   mpiox_file_view.c       the view of this rank, and positions in it
 *   mpiox_file_coherence.c  several nodes whose caches nothing keeps coherent
 *   mpiox_shared_pointer.c  the shared file pointer
 *   mpiox_independent.c     data access of one rank: data sieving, mappings, lists of requests
 *
 * Collectives lie above (collective/mpiox_collective.h) and read the fields of this struct.
 */
#ifndef MPIOX_FILE_H
#define MPIOX_FILE_H

#include <mpi.h>
#include <stdbool.h>

#include "mpiox_typemap.h"
#include "mpiox_hints.h"
#include "mpiox_independent.h"
#include "mpiox_layout.h"
#include "mpiox_stats.h"
#include "mpiox_storage.h"
#include "mpiox_topology.h"

typedef struct mpiox_file {
    mpiox_topology *topology; /* reserved for this file while it is open */
    mpiox_storage *storage;   /* this rank's handle; owned */
    mpiox_hints hints;        /* in force, the same on every rank */
    mpiox_layout layout;      /* rank 0's, the same on every rank */
    char *path, *real_path;   /* as given; absolute, where it is not or there are several nodes (may be NULL) */
    bool container;           /* path is the index of a file that is stored as several (mpiox_storage_container.h) */
    double report_s;          /* of mpiox_file_report_waits() */
    atomic_bool damaged;      /* this rank has got the error that bytes that it wrote are not in the file */
    int amode;                /* MPI_MODE_* */
    int64_t append_at;        /* where it ended when it was opened with MPI_MODE_APPEND; the same on every rank */
    uint64_t nonce;           /* of this opening, the same on every rank: names a hidden file */

    mpiox_typemap *view;      /* owned; NULL = not usable, or without data */
    bool empty_view;          /* without data: this rank takes part with nothing */
    bool new_view;            /* set since the last collective */
    int64_t displacement;     /* in force in the collective under way (mpiox_file_view_shift) */
    int64_t set_displacement; /* as set */
    int64_t tile_extent;      /* of a file type whose tiles overlap: view then describes one tile; else 0 */
    bool atomic;              /* MPI's atomic mode; the same on every rank */
    bool refreshes;  /* nodes' caches are brought into line here (mpiox_file_coherence.c); the same on every rank */
    int64_t settled; /* write requests up to the last flush of this descriptor; -1: those of another one */

    mpiox_storage *pointer_file;            /* shared file pointer of several nodes; NULL before its first use */
    pthread_mutex_t threads_lock;           /* of this process, where a file lock excludes only processes */
    mpiox_independent_counters independent; /* of this rank's own accesses; any thread raises them */
    mpiox_stats stats;                      /* of its collectives, and of the former when they are read */
} mpiox_file;

/* By which it is found whatever folder the program is in. */
static inline const char *mpiox_file_place(const mpiox_file *file)
{
    return file->real_path ? file->real_path : file->path;
}

typedef struct mpiox_outcome {
    int64_t bytes;     /* data bytes of this rank that were transferred (less than length at the end of the file) */
    mpiox_error error; /* code 0 when all went well; of a collective in which ranks meet the same on all */
} mpiox_outcome;

/* ---- opening (mpiox_file_open.c) --------------------------------------------------------------------------------- */

/* What rank 0 chooses before a file is opened; the caller brings it to the other ranks. */
typedef struct mpiox_file_choice {
    mpiox_topology_choice topology; /* which topology the file gets */
    uint64_t nonce;                 /* of this opening */
    int32_t foreground;             /* set by the caller: nonblocking accesses are the MPI library's */
    int32_t container;              /* set by the caller: the file is stored as several */
    int32_t recheck; /* set by the caller: it existed already, and may have changed since: see `changed` below */
    uint64_t device; /* set by the caller: the file that rank 0 has created for this opening, as rank 0 sees it; */
    uint64_t inode;  /* 0: nothing */
    uint64_t id;     /* set by the caller: of the file that is stored as several */
    int32_t striped; /* set by the caller: the file was created with the hints' striping, and its real one counts */
} mpiox_file_choice;

/* Further values on which the ranks agree when a file is opened, so that they meet once for both. */
enum { MPIOX_FILE_COMPANION_VALUES = 2 };
typedef struct mpiox_file_companion {
    /* Local. The file has the layout of these ranks' last file, which probably is its own. False, on every rank: the
     * ranks have to agree on the values later. */
    bool (*prepare)(mpiox_file *file, void *context, int values[MPIOX_FILE_COMPANION_VALUES]);
    void *context; /* of prepare; the caller's */
    /* out, the same on every rank: all have opened a file, but not all the one of `choice`; no object then */
    bool changed;
    bool agreed; /* out, the same on every rank: the layout was right, and values[] are the lowest of all ranks */
    int values[MPIOX_FILE_COMPANION_VALUES]; /* out: valid if `agreed` */
} mpiox_file_companion;

/* This rank's call of MPI_File_open. The caller owns what it points to. */
typedef struct mpiox_file_call {
    MPI_Comm comm;            /* an intracommunicator */
    const char *path;         /* NULL: there was no memory for it */
    int amode;                /* MPI_MODE_* */
    const mpiox_hints *hints; /* in force */
    bool opened;              /* PMPI_File_open has opened the file on this rank */
} mpiox_file_call;

/* What mpiox_file_open() returns, the same on every rank but for the objects. */
typedef struct mpiox_file_opened {
    mpiox_file *file;    /* the caller's, for mpiox_file_close(); NULL: the file stays with the MPI library */
    const char *why_not; /* why it does, static text; NULL: for no particular reason */
    bool all_opened;     /* `opened` of the call is true on every rank */
} mpiox_file_opened;

/* Rank 0 only, local. mpiox_file_open() must follow on all ranks. */
mpiox_file_choice mpiox_file_choose(MPI_Comm comm, const mpiox_hints *hints);
/* Open a file that PMPI_File_open has just opened, or failed to open. Collective, blocking, agreed: either every rank
 * gets an object, or every rank gets MPIOX_E_UNSUPPORTED. Each rank that can take part calls companion->prepare() if
 * these ranks have opened a file before. */
int mpiox_file_open(const mpiox_file_call *call, const mpiox_file_choice *choice, mpiox_file_companion *companion,
                    mpiox_file_opened *result);
/* Free it in any case, but for the topology, which the caller releases once all ranks are done with it. Errors that the
 * file system reports at close are agreed by all ranks, except on a local file system of one node, which has none to
 * report. Collective, blocking; NULL-safe; 0 or MPIOX_E_IO. */
int mpiox_file_close(mpiox_file *file, mpiox_error *error);
/* End the job with a message, if the other ranks wait for something that this one cannot do, so that the job would hang
 * otherwise. Local; does not return. */
void mpiox_file_give_up(const mpiox_file *file, int code, int64_t offset, int64_t length, const char *what);
/* The same for a rank that has waited for others for as long as mpiox_wait_limit allows; context: the mpiox_file. */
void mpiox_file_end_of_waiting(void *context, const char *what, int64_t number, double seconds);
/* From now on, or no longer, a rank that waits for others prints a line after file->report_s seconds. */
void mpiox_file_report_waits(mpiox_file *file, bool on);
/* Why there is no shared memory, from the code that all ranks have; static text. */
const char *mpiox_file_memory_reason(int code);
/* Bring this library's writes to stable storage. alone: this rank's, as a local call with an error of its own, which
 * is enough where !file->refreshes and all ranks are on one node; else collective, and the same *error on all ranks.
 * Blocking; 0 or MPIOX_E_IO. */
int mpiox_file_sync(mpiox_file *file, bool alone, mpiox_error *error);
/* Give it that size. The same `bytes` >= 0 and the same *error on all ranks. Collective, blocking; 0 or MPIOX_E_IO. */
int mpiox_file_set_size(mpiox_file *file, int64_t bytes, mpiox_error *error);
/* Have the file system reserve space for the first `bytes` bytes and grow the file to at least that size; written bytes
 * stay. The same `bytes` >= 0 and the same *error on all ranks. Collective, blocking; 0 or MPIOX_E_IO. */
int mpiox_file_preallocate(mpiox_file *file, int64_t bytes, mpiox_error *error);

/* ---- caches that nothing keeps coherent (mpiox_file_coherence.c) --------------------------------------------------
 *
 * All of them do nothing, and return 0, unless file->refreshes. 0 or MPIOX_E_IO; *error is set in any case. */

/* Send this rank's writes to the server. Local, blocking. */
int mpiox_file_settle(mpiox_file *file, mpiox_error *error);
/* The MPI library writes by a descriptor of its own: the next mpiox_file_settle() counts that as this rank's. Local. */
void mpiox_file_unsettle(mpiox_file *file);
/* Make all ranks see the bytes that the server had before. Collective, blocking; the same *error on all ranks. */
int mpiox_file_refresh(mpiox_file *file, mpiox_error *error);
/* Both, where several nodes have the file and any rank has written. Collective, blocking; the same *error likewise. */
int mpiox_file_make_coherent(mpiox_file *file, mpiox_error *error);

/* ---- the view (mpiox_file_view.c) -------------------------------------------------------------------------------- */

/* A new view is coming: can this library do everything with it? `usable` on every rank, agreed (collective,
 * blocking); false at once where mpiox_topology_takes_all() is false. *any becomes whether some rank brought true. The
 * shared file pointer starts at 0. */
bool mpiox_file_agree_view(mpiox_file *file, bool usable, bool *any);
/* After mpiox_file_agree_view(): the view stays as it was after all, on every rank. Local. */
void mpiox_file_keep_view(mpiox_file *file);
/* New view on this rank: file byte of stream position p = displacement + offset(view, p). The reference is taken over.
 * Local, but every rank calls it (ranks may pass different views). NULL, or a view that is not taken, makes the file's
 * collectives return MPIOX_E_UNSUPPORTED until the next view. */
void mpiox_file_set_view(mpiox_file *file, mpiox_typemap *view, int64_t displacement);
/* Local; without data, monotonic, tiles of such a type that overlap, or what overlaps in a file that is only read. */
bool mpiox_file_takes_view(const mpiox_file *file, const mpiox_typemap *view);
bool mpiox_file_view_usable(const mpiox_file *file);  /* local; false: this rank's accesses are not for this library */
bool mpiox_file_view_is_fine(const mpiox_file *file); /* local; so many small pieces that ranks should exchange them */
/* Local, of a view that is taken: the file byte of a stream position (-1: beyond 2^62), and the data bytes of the view
 * that lie before a file byte. */
int64_t mpiox_file_byte_offset(const mpiox_file *file, int64_t position);
int64_t mpiox_file_data_before(const mpiox_file *file, int64_t byte);
/* The request with its position counted from file->displacement, which is set for it (view with overlapping tiles).
 * Local. */
mpiox_request mpiox_file_view_shift(mpiox_file *file, const mpiox_request *request);
/* Crosses overlapping tiles, or the view's pieces overlap: every rank for itself. Local. */
bool mpiox_file_view_across(const mpiox_file *file, const mpiox_request *request);

/* ---- access of this rank alone ----------------------------------------------------------------------------------- */

/* Through this rank's view. Local, blocking; several threads may be inside at once, also while a collective of another
 * thread is under way. Returns outcome->error.code. */
int mpiox_file_access(mpiox_file *file, const mpiox_request *request, mpiox_outcome *outcome);
/* MPI's atomic mode: every access goes straight to the file, under a lock on its range. Local, all ranks call it. */
void mpiox_file_set_atomicity(mpiox_file *file, bool atomic);
/* What mpiox_independent_access() works on. Local; everything in it is borrowed. */
mpiox_independent_file mpiox_file_independent(mpiox_file *file);
/* Of a request from a GPU's memory: bytes of a window (mpiox_device_access.h). An atomic access is one window. */
static inline int64_t mpiox_file_device_window(const mpiox_file *file, const mpiox_request *request)
{
    return file->atomic || request->length < file->hints.device_buffer ? request->length : file->hints.device_buffer;
}
const mpiox_stats *mpiox_file_stats(mpiox_file *file); /* local; this rank's counters so far */

/* ---- the shared file pointer, in etypes (mpiox_shared_pointer.c) --------------------------------------------------
 *
 * Where mpiox_file_agree_view() returned true; local, blocking, any rank at any time. 0 or MPIOX_E_IO. */
int mpiox_shared_pointer_add(mpiox_file *file, int64_t etypes, int64_t *old, mpiox_error *error);
int mpiox_shared_pointer_set(mpiox_file *file, int64_t etypes, mpiox_error *error);
void mpiox_shared_pointer_clear_next(mpiox_file *file); /* before topology->views grows: zero for the next view */
void mpiox_shared_pointer_free(mpiox_file *file);

#endif
