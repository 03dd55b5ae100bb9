/*
 * mpiox_mpi_open.c - MPI_File_open.
 *
 * Each function here follows one rule: the MPI library does its own call first and reports its own errors; then this
 * library follows. If its part is collective, the ranks first agree that all of them follow, so that no rank waits for
 * another. The openers open files that are not plain (mpiox_opener.h). In this order (open_as_seen(), open_agreed()):
 *
 *   agree       rank 0 decides, also for its openers, and broadcasts the decision (mpiox_mpi_agree.h)
 *   may_open    no rank has found an error, and all have the same arguments
 *   library     the MPI library opens the file
 *   attach      this library opens it for itself, with its collectives and delegates; if the file has changed since
 *               rank 0's decision, the opening begins again
 *   keep        the openers keep the file, which gets its own name, or abandon it
 *   finish      the file comes into the table of handles
 */
#include "mpiox_handlers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective.h"
#include "mpiox_finalize.h"
#include "mpiox_handle.h"
#include "mpiox_mpi_agree.h"
#include "mpiox_mpi_error.h"
#include "mpiox_mpi_info.h"
#include "mpiox_mpi_path.h"
#include "mpiox_mpi_pointer.h"
#include "mpiox_mpi_report.h"
#include "mpiox_mpi_same.h"
#include "mpiox_mpi_view.h"
#include "mpiox_opener.h"
#include "mpiox_past_mpi.h"
#include "mpiox_preload_check.h"
#include "mpiox_tools.h"
#include "mpiox_witness.h"

enum { TRIES = 10 }; /* how often a rank opens a file that changes all the time */

/* One try of a rank to open the file. */
typedef struct try {
    mpiox_opening opening; /* the openers' state; its arguments are rank 0's, if this library carries out accesses */
    mpiox_mpi_agreed agreed;
    MPI_File *fh;
    mpiox_handle *handle; /* NULL: not opened yet, or no memory */
    bool changed;         /* on some rank, while it opened the file: all ranks open it again; the same on all ranks */
    int differs;          /* below 0: this rank's arguments are not rank 0's */
} try;

/* ---- the entry of the table -------------------------------------------------------------------------------------- */

/* After PMPI_File_open. */
static mpiox_handle *new_file(MPI_Comm comm, const char *filename, int amode)
{
    const char *opened = mpiox_mpi_path_opened(filename);
    mpiox_handle *handle = calloc(1, sizeof *handle);

    if (handle == NULL)
        return NULL;
    handle->path = strdup(opened != NULL ? opened : mpiox_mpi_path(filename));
    handle->path_unknown = opened == NULL;
    handle->amode = amode;
    handle->opened = mpiox_stats_now();
    handle->comm = MPI_COMM_NULL;
    handle->etype = handle->filetype = MPI_DATATYPE_NULL;
    pthread_mutex_init(&handle->pointer_lock, NULL);
    PMPI_Comm_rank(comm, &handle->rank);
    PMPI_Comm_size(comm, &handle->ranks);
    if (handle->path != NULL)
        return handle;
    mpiox_handle_free(handle);
    return NULL;
}

static bool all_true(MPI_Comm comm, bool mine)
{
    bool all = false;

    return PMPI_Allreduce(&mine, &all, 1, MPI_C_BOOL, MPI_LAND, comm) == MPI_SUCCESS && all;
}

/* The individual pointer of a file that is opened to be appended to: the MPI library may have met an old size, or that
 * of an index. */
static void start_at_end(mpiox_handle *handle)
{
    if ((handle->file->refreshes || handle->opener != NULL) && handle->amode & MPI_MODE_APPEND)
        mpiox_mpi_pointer_set(handle, handle->file->append_at);
}

static bool prepare_collective(mpiox_file *file, void *context, int values[MPIOX_FILE_COMPANION_VALUES])
{
    return mpiox_collective_prepare(file, context, values);
}

/* On all ranks or on none: without collectives the file stays with the MPI library. */
static void attach_file(try *t, mpiox_file *file, mpiox_collective *prepared, const mpiox_file_companion *companion)
{
    mpiox_handle *handle = t->handle;
    mpiox_topology *topology = file->topology;
    mpiox_error error;

    if (mpiox_collective_create(file, prepared, companion->agreed ? companion->values : NULL, &handle->collective,
                                &handle->why_native) != MPIOX_OK) {
        mpiox_file_close(file, &error);
        mpiox_topology_release(topology);
        return;
    }
    handle->file = t->opening.file = file;
    mpiox_mpi_view_begin(handle);
    start_at_end(handle);
}

/* Delegates, where they are asked for. */
static void attach_delegates(try *t)
{
    mpiox_opening *o = &t->opening;

    o->why_not = NULL;
    mpiox_delegated_opener.attach(o);
    t->handle->forwarded = o->through;
    t->handle->why_no_delegates = o->why_not;
    mpiox_past_mpi_note_opened(t->handle);
}

/* Set up the sum of the statistics, on all ranks or on none. Without the sum, the file has no statistics. */
static void attach_statistics(mpiox_handle *handle, MPI_Comm comm, bool all_opened)
{
    if (mpiox_handle_is_managed(handle)) { /* on all ranks */
        if (mpiox_topology_own_comm(handle->file->topology, comm) == MPIOX_OK)
            handle->comm = handle->file->topology->comm;
        return;
    }
    if (!all_true(comm, all_opened && handle != NULL))
        return;
    handle->owns_comm = mpiox_topology_copy_comm(comm, &handle->comm) == MPIOX_OK;
    if (!all_true(comm, handle->owns_comm) && handle->owns_comm) {
        PMPI_Comm_free(&handle->comm);
        handle->owns_comm = false;
    }
}

static const char which_file[] = "native: its name has a prefix, and there is a file with it and another without";

/* After PMPI_File_open, also if it has failed on this rank: if every rank opened the file, this library opens it, too.
 * False: the file is not the one that rank 0 found. */
static bool attach(try *t)
{
    mpiox_opening *o = &t->opening;
    mpiox_handle *handle = t->handle;
    mpiox_collective *prepared = NULL;
    mpiox_file_companion companion = {.prepare = prepare_collective, .context = &prepared};
    const mpiox_file_call call = {.comm = o->comm,
                                  .path = o->found == NULL      ? NULL
                                          : o->decision->hidden ? o->name
                                                                : o->found,
                                  .amode = o->amode,
                                  .hints = o->hints,
                                  .opened = o->opened};

    o->all_opened = o->opened;
    if (o->wanted) { /* as rank 0 sees it: name and mode may differ in a wrong program */
        mpiox_file_opened result;
        mpiox_file_open(&call, &t->agreed.choice, &companion, &result);
        o->all_opened = result.all_opened;
        if (result.file != NULL) { /* on all ranks */
            attach_file(t, result.file, prepared, &companion);
        } else {
            mpiox_collective_free(prepared);
            if (handle != NULL)
                handle->why_native = handle->path_unknown && o->opened ? which_file : result.why_not;
        }
        o->why_not = handle != NULL ? handle->why_native : NULL;
    }
    if (o->file != NULL)
        attach_delegates(t);
    t->changed = companion.changed || mpiox_opener_has_changed(o);
    return !t->changed;
}

/* In a run that is recorded, the ranks wait here for each other. Else they would wait inside the MPI library, and the
 * recording would count that time as the library's own. */
static void meet(MPI_Comm comm, bool recorded)
{
    MPI_Request request;
    int size = 1;

    PMPI_Comm_size(comm, &size);
    if (recorded && size > 1)
        mpiox_topology_finish(PMPI_Ibarrier(comm, &request), &request);
}

/* Some ranks lack the library: the MPI library opens the file alone, with the program's own hints, and the ranks need
 * not agree on anything. The file has a handle so that this library counts its accesses. */
static int open_without_library(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh,
                                const mpiox_preload_check *preload)
{
    const int result = PMPI_File_open(comm, filename, amode, info, fh);
    mpiox_handle *handle = result == MPI_SUCCESS ? new_file(comm, filename, amode) : NULL;

    if (handle == NULL)
        return result;
    mpiox_hints_resolve(handle->path, info, &handle->hints, NULL, NULL);
    handle->timed = handle->hints.stats != MPIOX_STATS_OFF;
    handle->fh = *fh;
    handle->why_native = preload->without_library;
    handle->without_library = true;
    handle->reports_alone = preload->first && handle->hints.stats;
    mpiox_handle_insert(handle);
    mpiox_mpi_show_hints(comm, filename, *fh);
    return result;
}

/* Open MPI (4.1, 5.0) deletes a file that MPI_MODE_EXCL has just refused, if the program wants it deleted on close. A
 * file that rank 0 has created was created exclusively. */
static int amode_for_library(int amode, const mpiox_decision *decision)
{
    if (decision->container) /* the MPI library must not write or remove the index */
        return MPI_MODE_RDONLY | (amode & MPI_MODE_UNIQUE_OPEN);
    if (decision->is_there)
        amode &= ~MPI_MODE_DELETE_ON_CLOSE;
    return decision->made ? amode & ~MPI_MODE_EXCL : amode;
}

/* OMPIO may have opened the file on some ranks only. Then it stays open there: its close is collective, and the other
 * ranks would not arrive. */
static void close_opened(MPI_Comm comm, MPI_File *fh)
{
    if (all_true(comm, *fh != MPI_FILE_NULL))
        PMPI_File_close(fh);
    *fh = MPI_FILE_NULL;
}

/* No rank opens the file, for the reason *error; if it was opened, it is closed again. Collective. */
static int refuse(try *t, const mpiox_error *error)
{
    const char *path = t->handle != NULL ? t->handle->path : mpiox_mpi_path(t->opening.filename);

    mpiox_opener_abandon(&t->opening);
    const int result = mpiox_mpi_error_raise(MPI_FILE_NULL, path, error);

    mpiox_handle_free(t->handle);
    return result;
}

/* Return the error. The file stays open on this rank, or was closed before. */
static int refuse_found(const char *filename, mpiox_error error, MPI_File *fh)
{
    error.rank = 0;
    *fh = MPI_FILE_NULL;
    return mpiox_mpi_error_raise(MPI_FILE_NULL, mpiox_mpi_path(filename), &error);
}

/* The file is open, but delegates cannot write their bytes, or the file could not get its own name. Close it; if only
 * some ranks have opened it, it stays open there. Collective. */
static int refuse_opened(MPI_Comm comm, const char *filename, bool kept, const mpiox_error *error, MPI_File *fh)
{
    if (!all_true(comm, *fh != MPI_FILE_NULL))
        return refuse_found(filename, *error, fh);
    if (kept)
        mpiox_mpi_close(fh);
    else
        PMPI_File_close(fh);
    return refuse_found(filename, *error, fh);
}

/* Rank 0 created the file, and a rank that opened it later did not find it: its folder was renamed. The file stays open
 * on this rank, since its close is collective and the other ranks would not arrive. */
static int refuse_partly(mpiox_handle *handle, const char *filename, MPI_File *fh)
{
    mpiox_error error;

    mpiox_handle_free(handle);
    mpiox_error_set(&error, MPIOX_E_IO, ESTALE, -1, -1, "open (not all ranks could open the file that was made)");
    return refuse_found(filename, error, fh);
}

/* Close the file again, so that it can be opened anew. Collective. */
static int let_go(try *t)
{
    mpiox_opener_abandon(&t->opening);
    close_opened(t->opening.comm, t->fh);
    mpiox_handle_free(t->handle);
    return MPI_SUCCESS;
}

/* May the MPI library open the file? The same on all ranks. Collective. */
static bool may_open(try *t, mpiox_error *error)
{
    *t->fh = MPI_FILE_NULL;
    mpiox_mpi_agree_settle(&t->agreed);
    *error = t->opening.decision->error;
    if (error->code == MPIOX_OK)
        return mpiox_mpi_same_agree(t->opening.comm, t->differs, error) == MPIOX_OK;
    error->rank = 0;
    return false;
}

static void fill_handle(const try *t)
{
    const mpiox_mpi_agreed *a = &t->agreed;
    mpiox_handle *handle = t->handle;

    if (handle == NULL)
        return;
    handle->hints = a->hints;
    handle->timed = a->hints.stats != MPIOX_STATS_OFF || a->run_stats;
    handle->waits = handle->timed ? mpiox_stats_waits() : 0;
    handle->fh = *t->fh;
    handle->waits_hidden = a->waits_hidden;
    handle->recorded = a->recorded;
    if (a->decision.container)
        handle->opener = mpiox_opener_of(&t->opening, &handle->opened_as);
}

static int open_by_library(try *t, MPI_Info info)
{
    mpiox_opening *o = &t->opening;

    const int result = PMPI_File_open(o->comm, o->name, amode_for_library(o->amode, o->decision), info, t->fh);
    o->opened = result == MPI_SUCCESS && *t->fh != MPI_FILE_NULL; /* MPICH: success, after a user's handler */
    t->handle = new_file(o->comm, o->filename, o->amode);
    o->found = t->handle != NULL && !t->handle->path_unknown ? t->handle->path : NULL;
    fill_handle(t);
    return result;
}

/* All ranks are to keep the file. False: none does, for the reason *error; else finish() ends with *error, if there is
 * one. */
static bool keep(try *t, mpiox_error *error)
{
    mpiox_opening *o = &t->opening;
    bool abandoned = false;

    if (t->agreed.few_descriptors && t->handle != NULL)
        t->handle->why_native = "native: few descriptors are left (ulimit -n)";
    if (t->agreed.hints.stats)
        attach_statistics(t->handle, o->comm, o->all_opened);
    if (mpiox_opener_keep(o, error, &abandoned) == MPIOX_OK || !abandoned)
        return true;
    close_opened(o->comm, t->fh);
    return false;
}

/* All ranks that have the file keep it, or all refuse it with the same *error. result: the MPI library's. */
static int finish(try *t, const mpiox_error *error, int result)
{
    const mpiox_opening *o = &t->opening;
    const bool kept = o->opened && t->handle != NULL;
    const int error_class = o->wanted && !o->all_opened ? mpiox_mpi_error_class_of_open(o->comm, result) : MPI_SUCCESS;

    if (mpiox_opening_is_partial(o) && o->opened)
        return refuse_partly(t->handle, o->filename, t->fh);
    if (kept)
        mpiox_handle_insert(t->handle);
    else
        mpiox_handle_free(t->handle);
    if (error->code != MPIOX_OK)
        return refuse_opened(o->comm, o->filename, kept, error, t->fh);
    if (kept)
        mpiox_mpi_show_hints(o->comm, o->filename, *t->fh);
    else if (result != MPI_SUCCESS)
        result = mpiox_mpi_error_of_open(o->comm, o->name, o->amode, result, error_class);
    return result;
}

/* Hints, info and topology are agreed. */
static int open_agreed(try *t, MPI_Info info)
{
    mpiox_error error;

    if (!mpiox_opener_start(&t->opening))
        return MPI_ERR_OTHER;
    if (!may_open(t, &error))
        return refuse(t, &error);
    const int result = open_by_library(t, info);

    if (!attach(t))
        return let_go(t);
    return keep(t, &error) ? finish(t, &error, result) : refuse(t, &error);
}

/* As rank 0 sees it now. t->changed: it is something else by now. */
static int open_as_seen(try *t, MPI_Info info, const mpiox_preload_check *preload)
{
    const mpiox_mpi_agreed *a = &t->agreed;
    MPI_Info merged;
    int result = mpiox_mpi_agree(&t->opening, &t->agreed, info, &merged, &t->differs);

    if (result != MPI_SUCCESS) /* without rank 0's choices nothing can follow */
        return result;
    if (preload->whole_world)
        mpiox_mpi_run_agreed(a->run_stats);
    if (a->run[0] != '\0')
        mpiox_stats_identity_adopt(a->run, preload->whole_world);
    meet(t->opening.comm, a->recorded);
    result = open_agreed(t, merged != MPI_INFO_NULL ? merged : info);
    if (merged != MPI_INFO_NULL)
        PMPI_Info_free(&merged);
    return result;
}

static int refuse_changing(const char *filename, MPI_File *fh)
{
    mpiox_error error;

    mpiox_error_set(&error, MPIOX_E_IO, ESTALE, -1, -1, "open (the file, or its folder, is changed all the time)");
    return refuse_found(filename, error, fh);
}

int mpiox_mpi_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh)
{
    mpiox_preload_check preload;
    try t;
    int inter = 0, result, tries = 0;

    if (mpiox_tools_own_files())
        return PMPI_File_open(comm, filename, amode, info, fh);
    mpiox_witness_report(MPIOX_WITNESSED_FILE);
    if (comm == MPI_COMM_NULL || fh == NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return PMPI_File_open(comm, filename, amode, info, fh);
    mpiox_finalize_prepare();
    mpiox_preload_check_examine(comm, &preload);
    if (preload.without_library != NULL)
        return open_without_library(comm, filename, amode, info, fh, &preload);
    if (filename == NULL) /* the other ranks may have one, and wait for this rank */
        filename = "";
    do {
        t = (try){.opening = {.comm = comm, .amode = amode, .filename = filename}, .fh = fh};
        PMPI_Comm_rank(comm, &t.opening.rank);
        result = open_as_seen(&t, info, &preload);
    } while (t.changed && ++tries < TRIES);
    return t.changed ? refuse_changing(filename, fh) : result;
}
