/*
 * mpiox_file.h - what we know about each open MPI file, keyed by its handle.
 *
 * The file is really opened by PMPI_File_open, so every call that is not taken over works on the same handle: sizes,
 * other data representations, error handlers. Beside it an exchange is opened (our own path to
 * the file's bytes). Hints are resolved on rank 0 of the communicator and broadcast, so that they agree on all ranks
 * and one process reads the hints files.
 *
 * Threads: the table is guarded by a lock. Independent accesses of several threads may use an entry at once: what they
 * change is guarded by pointer_lock or atomic. The rest belongs to the file's collectives, one at a time.
 */
#ifndef MPIOX_FILE_H
#define MPIOX_FILE_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_typemap.h"
#include "mpiox_exchange.h"
#include "mpiox_hints.h"
#include "mpiox_stats.h"
#include "mpiox_worker.h"

typedef enum mpiox_split_kind { MPIOX_SPLIT_POINTER = 0, MPIOX_SPLIT_AT, MPIOX_SPLIT_ORDERED } mpiox_split_kind;

typedef struct mpiox_split { /* the one split collective that may be under way */
    bool active, write;
    bool native; /* the MPI library has begun one */
    mpiox_split_kind kind;
    MPI_Status status;
} mpiox_split;

typedef struct mpiox_file {
    struct mpiox_file *next; /* in the table's bucket */
    MPI_File handle;
    MPI_Comm comm;           /* duplicate for summing the statistics; MPI_COMM_NULL when they are off */
    int rank, ranks, amode;
    char *path;              /* without ROMIO's file-system prefix */
    mpiox_hints hints;
    mpiox_exchange *exchange; /* NULL: every data access is native */
    bool all_ours;       /* every access is carried out here, and the MPI library's view may be out of date; on all ranks */
    bool view_told;      /* the MPI library has the view in force */
    MPI_Datatype etype, filetype; /* of the view in force; ours to free unless predefined */
    MPI_Offset displacement;
    bool native_view;    /* the view's data representation is "native"; the same on all ranks */
    bool has_view;       /* the exchange knows this rank's view, and etype_bytes > 0 */
    int64_t etype_bytes; /* unit of offsets and positions */
    mpiox_split split;
    pthread_mutex_t pointer_lock; /* guards the next two, and the creation of the workers */
    bool pointer_here;            /* the individual file pointer is ours at present (mpiox_file_pointer.h) */
    MPI_Offset pointer;           /* in etypes */
    /* Of nonblocking accesses, NULL before the first one: collectives wait for other ranks and keep their order; independent
     * accesses must not wait behind them. */
    mpiox_worker *collective_worker, *independent_worker;
    int64_t views_set;
    atomic_int_least64_t native_calls, nonblocking_calls;
} mpiox_file;

/* ---- table (mpiox_file_table.c) ---------------------------------------------------------------------------------- */

mpiox_file *mpiox_file_find(MPI_File handle);      /* NULL when the handle is not ours */
void mpiox_file_insert(mpiox_file *file);
mpiox_file *mpiox_file_remove(MPI_File handle);    /* NULL when it is not there */

/* ---- the "handled" functions of mpi_file_functions.txt (mpiox_file.c, mpiox_file_view.c): as their MPI namesakes ---- */

int mpiox_file_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh);
int mpiox_file_close(MPI_File *fh);
int mpiox_file_sync(MPI_File fh);
int mpiox_file_preallocate(MPI_File fh, MPI_Offset size);
int mpiox_file_get_info(MPI_File fh, MPI_Info *info_used);
int mpiox_file_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                        MPI_Info info);
int mpiox_file_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep);
int mpiox_file_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp);
int mpiox_file_set_atomicity(MPI_File fh, int flag);
int mpiox_file_seek_shared(MPI_File fh, MPI_Offset offset, int whence);      /* mpiox_file_shared.c */
int mpiox_file_get_position_shared(MPI_File fh, MPI_Offset *offset);         /* mpiox_file_shared.c */
int mpiox_file_seek(MPI_File fh, MPI_Offset offset, int whence);            /* mpiox_file_pointer.c */
int mpiox_file_get_position(MPI_File fh, MPI_Offset *offset);               /* mpiox_file_pointer.c */

/* ---- statistics (mpiox_file_report.c) ---------------------------------------------------------------------------- */

void mpiox_file_stats(mpiox_file *file, mpiox_stats *out); /* this rank's counters so far */
void mpiox_file_report_close(mpiox_file *file);            /* collective when file->comm is set; adds to the run */
void mpiox_file_run_stats(mpiox_stats *out);                     /* this process: closed files and open ones */
void mpiox_file_run_finalize(void); /* collective over MPI_COMM_WORLD when MPIOX_STATS is on */
/* Visit every open file under the table's lock. */
void mpiox_file_each(void (*visit)(mpiox_file *file, void *context), void *context);

#endif
