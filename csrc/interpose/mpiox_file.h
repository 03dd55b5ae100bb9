/*
 * mpiox_file.h - what we know about each open MPI file, keyed by its handle.
 *
 * The file is really opened by PMPI_File_open, so every call that is not taken over works on the same handle: shared
 * pointers, atomic mode, other data representations, error handlers. Beside it an exchange is opened (our own path to
 * the file's bytes). Hints are resolved on rank 0 of the communicator and broadcast, so that they agree on all ranks
 * and one process reads the hints files.
 *
 * Threads: the table is guarded by a lock; an entry is used by whoever may use the MPI handle, except for the counters
 * of native calls, which independent accesses of several threads may raise at once.
 */
#ifndef MPIOX_FILE_H
#define MPIOX_FILE_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_access.h"
#include "mpiox_exchange.h"
#include "mpiox_hints.h"
#include "mpiox_stats.h"

typedef struct mpiox_split { /* the one split collective that may be under way */
    bool active, write, at;
    int result;
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
    bool atomic;
    bool has_view;       /* the exchange knows this rank's view, and etype_bytes > 0 */
    int64_t etype_bytes; /* unit of offsets and positions */
    mpiox_split split;
    int64_t views_set;
    atomic_int_least64_t native_calls;
} mpiox_file;

/* ---- table (mpiox_file_table.c) ---------------------------------------------------------------------------------- */

mpiox_file *mpiox_file_find(MPI_File handle);      /* NULL when the handle is not ours */
void mpiox_file_insert(mpiox_file *file);
mpiox_file *mpiox_file_remove(MPI_File handle);    /* NULL when it is not there */
void mpiox_file_note_native(MPI_File handle);      /* count a data access that goes to PMPI */

/* ---- the "handled" functions of mpi_file_functions.txt (mpiox_file.c): as their MPI namesakes -------------------- */

int mpiox_file_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh);
int mpiox_file_close(MPI_File *fh);
int mpiox_file_sync(MPI_File fh);
int mpiox_file_get_info(MPI_File fh, MPI_Info *info_used);
int mpiox_file_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                        MPI_Info info);
int mpiox_file_set_atomicity(MPI_File fh, int flag);

/* ---- statistics (mpiox_file_report.c) ---------------------------------------------------------------------------- */

void mpiox_file_stats(mpiox_file *file, mpiox_stats *out); /* this rank's counters so far */
void mpiox_file_report_close(mpiox_file *file);            /* collective when file->comm is set; adds to the run */
void mpiox_file_run_stats(mpiox_stats *out);                     /* this process: closed files and open ones */
void mpiox_file_run_finalize(void); /* collective over MPI_COMM_WORLD when MPIOX_STATS is on */
/* Visit every open file under the table's lock. */
void mpiox_file_each(void (*visit)(mpiox_file *file, void *context), void *context);

#endif
