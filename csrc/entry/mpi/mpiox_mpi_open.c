/*
 * mpiox_mpi_open.c - open, close and hints of managed files.
 *
 * Rule of every function here: the MPI library does its own call first and reports its own errors; then we follow.
 * Where following is collective, the ranks first agree that all of them will, so that no rank waits for another. What
 * is not plain about a file, its openers do (mpiox_opener.h).
 */
#include "mpiox_handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

#include "mpiox_mpi_error.h"
#include "mpiox_mpi_info.h"
#include "mpiox_mpi_path.h"
#include "mpiox_mpi_pointer.h"
#include "mpiox_mpi_report.h"
#include "mpiox_mpi_same.h"
#include "mpiox_handle.h"
#include "mpiox_mpi_view.h"
#include "mpiox_opener.h"
#include "mpiox_parts.h"
#include "mpiox_past_mpi.h"
#include "mpiox_stats_paying.h"
#include "mpiox_finalize.h"
#include "mpiox_preload_check.h"
#include "mpiox_nonblocking.h"
#include "mpiox_tools.h"
#include "mpiox_witness.h"

/* ---- hints ------------------------------------------------------------------------------------------------------- */

static void print_problem(const char *message, void *context)
{
    (void)context;
    fprintf(stderr, "mpiio_ext: %s\n", message);
}

enum { TEXT_INLINE_BYTES = 1024 };

/* What rank 0 tells the others before the file is opened. Plain data. */
typedef struct agreed {
    mpiox_hints hints;
    mpiox_file_choice choice;
    mpiox_told told;                  /* what its openers have found */
    bool wanted;                      /* the file is to be taken over */
    bool few_descriptors;             /* it is not, so that there are enough for the MPI library */
    bool waits_hidden;                /* a tool keeps MPI_Wait and its kin from this library */
    bool run_stats;                   /* MPI_Finalize shall report on the run */
    bool recorded;                    /* somebody asks where the time of the run goes */
    char run[MPIOX_STATS_RUN_BYTES];  /* ID of the run, for the lines of statistics; empty without any */
    int amode;                        /* which the others compare theirs with, as the name behind the text */
    int64_t text_bytes;               /* hints to lay over every rank's info object; 0: none */
    char text[TEXT_INLINE_BYTES + 1]; /* when it fits */
} agreed;

/* One try of a rank to open the file. */
typedef struct try {
    mpiox_opening opening; /* what its openers know; its arguments are rank 0's, where the file is taken over */
    agreed agreed;
    MPI_File *fh;
    mpiox_handle *handle; /* NULL: not opened yet, or no memory */
    bool changed;         /* the file, on any rank, while it was opened: it is to be opened again; on all ranks */
    int differs;          /* below 0: this rank's arguments are not rank 0's */
} try;

enum { TRIES = 10 }; /* of opening a file that changes all the time */

static bool is_wanted(const char *filename, int amode, const mpiox_hints *hints)
{
    return hints->enabled && !(amode & MPI_MODE_SEQUENTIAL) && mpiox_mpi_path_is_posix(filename);
}

/* Of this rank's arguments and what rank 0 has agreed on so far. */
static void begin_opening(try *t)
{
    mpiox_opening *o = &t->opening;
    const agreed *a = &t->agreed;

    o->prefixed = mpiox_mpi_path(o->filename) != o->filename;
    o->bare = mpiox_mpi_path_is_posix(o->filename) ? mpiox_mpi_path(o->filename) : NULL;
    o->path_of = mpiox_mpi_path_opened;
    o->name = o->filename;
    o->wanted = a->wanted;
    o->why_not = a->few_descriptors               ? "few descriptors (ulimit -n)"
                 : !a->hints.enabled              ? "mpiox_enable is false"
                 : o->amode & MPI_MODE_SEQUENTIAL ? "MPI_MODE_SEQUENTIAL asks for one"
                                                  : "the MPI library opens it";
}

/* Rank 0's name for the file, where the hints leave room for it. */
static char *name_at_0(agreed *a)
{
    return a->text + (a->text_bytes <= TEXT_INLINE_BYTES ? a->text_bytes : 0);
}

/* Rank 0, what every file has. *text: hints, to be freed. */
static void decide(try *t, MPI_Info info, char **text)
{
    agreed *out = &t->agreed;
    const char *filename = t->opening.filename;
    const int amode = t->opening.amode;

    mpiox_hints_resolve_and_collect(mpiox_mpi_path(filename), info, &out->hints, text, print_problem, NULL);
    out->text_bytes = *text != NULL && **text != '\0' ? (int64_t)strlen(*text) + 1 : 0;
    if (out->text_bytes > 0 && out->text_bytes <= TEXT_INLINE_BYTES)
        memcpy(out->text, *text, (size_t)out->text_bytes);
    out->amode = amode;
    mpiox_mpi_same_name(filename, name_at_0(out), (size_t)(out->text + sizeof out->text - name_at_0(out)));
    if (filename[0] == '\0') {
        mpiox_error_set(&out->told.error, MPIOX_E_IO, ENOENT, -1, -1, "open (rank 0 gives no file name)");
        return;
    }
    out->told.looks = mpiox_mpi_path_is_posix(filename) && !(amode & MPI_MODE_EXCL);
    out->run_stats = mpiox_mpi_run_wanted();
    out->recorded = mpiox_parts_are_told();
    if (out->hints.stats || out->run_stats) {
        mpiox_stats_identity identity;

        mpiox_stats_identity_get(&identity);
        memcpy(out->run, identity.run, sizeof out->run);
    }
    out->wanted = is_wanted(filename, amode, &out->hints) && !mpiox_tools_hide_files();
    out->few_descriptors = out->wanted && !mpiox_mpi_same_has_descriptors();
    out->wanted = out->wanted && !out->few_descriptors;
    out->waits_hidden = mpiox_tools_hide_waits();
    if (out->wanted)
        out->choice = mpiox_file_choose(t->opening.comm, &out->hints);
    begin_opening(t);
    mpiox_opener_decide(&t->opening); /* which may wait until a file that was closed has its name */
    out->told.is_there |= (amode & MPI_MODE_EXCL) && !out->told.made && mpiox_mpi_path_is_posix(filename) &&
                          (access(mpiox_mpi_path(filename), F_OK) == 0 ||
                           access(filename, F_OK) == 0); /* see mpiox_mpi_path_opened() */
}

/* Told at once, or twice when the text is long. A rank without memory for it, or for the object, lets its MPI
 * library work with the program's own info: that is local, hence no reason to stay behind. */
static int agree_on_opening(try *t, MPI_Info info, MPI_Info *merged)
{
    const MPI_Comm comm = t->opening.comm;
    const int rank = t->opening.rank;
    agreed *out = &t->agreed;
    char *text = NULL;
    int result;

    if (rank == 0)
        decide(t, info, &text);
    result = mpiox_topology_bcast(comm, out, (int64_t)sizeof *out);
    if (result == MPI_SUCCESS && out->text_bytes > TEXT_INLINE_BYTES) {
        if (rank != 0)
            text = malloc((size_t)out->text_bytes);
        if (text != NULL)
            result = mpiox_topology_bcast(comm, text, out->text_bytes);
        else
            PMPI_Abort(comm, 1); /* nowhere to receive what the others wait to see received */
    }
    if (result == MPI_SUCCESS && out->text_bytes > 0 &&
        mpiox_hints_apply(out->text_bytes > TEXT_INLINE_BYTES ? text : out->text, info, merged) != MPIOX_OK)
        *merged = MPI_INFO_NULL;
    free(text);
    return result;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static void discard(mpiox_handle *handle)
{
    if (handle == NULL)
        return;
    mpiox_live_close(handle->live);
    pthread_mutex_destroy(&handle->pointer_lock);
    free(handle->path);
    free(handle);
}

static void insert(mpiox_handle *handle)
{
    handle->live = mpiox_live_open(handle->path);
    mpiox_handle_insert(handle);
}

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
    discard(handle);
    return NULL;
}

static bool all_true(MPI_Comm comm, bool mine)
{
    bool all = false;

    return PMPI_Allreduce(&mine, &all, 1, MPI_C_BOOL, MPI_LAND, comm) == MPI_SUCCESS && all;
}

/* On all ranks or on none. The hints are rank 0's on every rank. */
static void attach_delegates(mpiox_handle *handle, MPI_Comm comm)
{
    mpiox_service *service;

    if (!mpiox_service_wanted(&handle->hints))
        return;
    if (handle->file->refreshes) {
        handle->why_no_delegates = "nothing keeps the nodes' caches coherent";
        return;
    }
    if (mpiox_topology_own_comm(handle->file->topology, comm) != MPIOX_OK) {
        handle->why_no_delegates = "no communicator is left";
        return;
    }
    service = mpiox_service_get(handle->file->topology->comm, &handle->hints, &handle->why_no_delegates);
    if (service != NULL)
        mpiox_forwarded_open(handle->file, service, &handle->forwarded, &handle->why_no_delegates);
    if (handle->forwarded != NULL && mpiox_forwarded_closes_behind(handle->forwarded))
        mpiox_past_mpi_tell(handle->path, service->first);
    mpiox_forwarded_follow(handle->forwarded);
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
static void attach_collective(mpiox_handle *handle, MPI_Comm comm, mpiox_file *file, mpiox_collective *prepared,
                              const mpiox_file_companion *companion)
{
    mpiox_topology *topology = file->topology;
    mpiox_error error;

    if (mpiox_collective_create(file, prepared, companion->agreed ? companion->values : NULL, &handle->collective,
                                &handle->why_native) != MPIOX_OK) {
        mpiox_file_close(file, &error);
        mpiox_topology_release(topology);
        return;
    }
    handle->file = file;
    mpiox_mpi_view_begin(handle);
    start_at_end(handle);
    attach_delegates(handle, comm);
}

/* What the statistics are summed by, on all ranks or on none: without it the file has none. */
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

/* After PMPI_File_open, whatever it returned here: our own path to the file, if every rank opened it. */
static void attach(try *t)
{
    mpiox_opening *o = &t->opening;
    const mpiox_told *told = o->told;
    mpiox_handle *handle = t->handle;
    mpiox_file *file;
    mpiox_collective *prepared = NULL;
    mpiox_file_companion companion = {.prepare = prepare_collective, .context = &prepared};
    const char *why_not, *path = o->found == NULL ? NULL : told->hidden ? o->name : o->found;

    o->all_opened = o->opened;
    if (!o->wanted) /* as rank 0 sees it: name and mode may differ in a wrong program */
        return;
    mpiox_file_open(o->comm, &t->agreed.choice, path, o->amode, o->hints, o->opened, &companion, &o->all_opened, &file,
                    &why_not);
    t->changed = companion.changed;
    if (file != NULL) { /* on all ranks */
        file->staging = told->hidden;
        file->unnamed = told->unnamed != 0;
        file->made_device = told->device;
        file->made_inode = told->inode;
        file->scratch = told->scratch;
        attach_collective(handle, o->comm, file, prepared, &companion);
    } else {
        mpiox_collective_free(prepared);
        if (handle != NULL)
            handle->why_native = handle->path_unknown && o->opened ? which_file : why_not;
    }
    o->managed = mpiox_handle_is_managed(handle);
    o->through = o->managed && handle->forwarded != NULL;
}

/* In a run that is recorded: what ranks wait here would seem to be the MPI library's own time. */
static void meet(MPI_Comm comm, bool recorded)
{
    MPI_Request request;
    int size = 1;

    PMPI_Comm_size(comm, &size);
    if (recorded && size > 1)
        mpiox_topology_finish(PMPI_Ibarrier(comm, &request), &request);
}

/* Some ranks lack the library: the MPI library alone, with the program's own hints, and nothing that the ranks would
 * have to agree on. The file has an entry so that what happens to it is counted. */
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
    insert(handle);
    mpiox_mpi_show_hints(comm, filename, *fh);
    return result;
}

/* Open MPI (4.1, 5.0) deletes the file that MPI_MODE_EXCL has just refused, if it was to be deleted on close. A file
 * that rank 0 has made was made exclusively. */
static int amode_for_library(int amode, const mpiox_told *told)
{
    if (told->container) /* the index is nothing that it should write or remove */
        return MPI_MODE_RDONLY | (amode & MPI_MODE_UNIQUE_OPEN);
    if (told->is_there)
        amode &= ~MPI_MODE_DELETE_ON_CLOSE;
    return told->made ? amode & ~MPI_MODE_EXCL : amode;
}

/* OMPIO may have opened it on some ranks only: the others would not come to its close. It stays open there. */
static void close_opened(MPI_Comm comm, MPI_File *fh)
{
    if (all_true(comm, *fh != MPI_FILE_NULL))
        PMPI_File_close(fh);
    *fh = MPI_FILE_NULL;
}

/* It is not opened, on any rank: it was not to be, as *error says; or what was opened is let go. Collective. */
static int refuse(try *t, const mpiox_error *error)
{
    const char *path = t->handle != NULL ? t->handle->path : mpiox_mpi_path(t->opening.filename);

    mpiox_opener_abandon(&t->opening);
    const int result = mpiox_mpi_error_raise(MPI_FILE_NULL, path, error);

    discard(t->handle);
    return result;
}

/* Where it is open, it stays so, or was closed. */
static int refuse_found(const char *filename, mpiox_error error, MPI_File *fh)
{
    error.rank = 0;
    *fh = MPI_FILE_NULL;
    return mpiox_mpi_error_raise(MPI_FILE_NULL, mpiox_mpi_path(filename), &error);
}

/* It is open, past delegates that cannot write what they have of it, or without a name of its own. Where only some
 * ranks have it, it stays open there. Collective. */
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

/* Made, and not there for some rank that came later: its folder was renamed. It stays open here, since the others would
 * not come to its close. */
static int refuse_partly(mpiox_handle *handle, const char *filename, MPI_File *fh)
{
    mpiox_error error;

    discard(handle);
    mpiox_error_set(&error, MPIOX_E_IO, ESTALE, -1, -1, "open (not all ranks could open the file that was made)");
    return refuse_found(filename, error, fh);
}

/* What is made for this opening, by this library or by the MPI library, is what it is. What MPI_MODE_DELETE_ON_CLOSE
 * has opened cannot be let go again: the MPI library would delete it. */
static bool may_change(const mpiox_told *told, int amode)
{
    return told->looks && !told->made && !told->hidden && (told->container || !(amode & MPI_MODE_DELETE_ON_CLOSE));
}

/* What was opened is let go, so that it can be opened again. Collective. */
static int let_go(try *t)
{
    mpiox_opener_abandon(&t->opening);
    close_opened(t->opening.comm, t->fh);
    discard(t->handle);
    return MPI_SUCCESS;
}

/* The openers have settled how the file is opened. */
static void settle(try *t)
{
    const mpiox_told *told = t->opening.told;
    mpiox_file_choice *choice = &t->agreed.choice;

    t->agreed.told.looks = may_change(told, t->agreed.amode); /* rank 0's: it may differ where MPI opens the file */
    choice->container = told->container;
    choice->foreground = t->agreed.waits_hidden && !told->container;
    choice->striped = told->striped;
    choice->looks = told->looks;
    choice->device = told->device;
    choice->inode = told->inode;
    choice->id = told->id;
}

/* May the MPI library open it? The same on all ranks. Collective. */
static bool may_open(try *t, mpiox_error *error)
{
    *error = t->opening.told->error;
    if (error->code == MPIOX_OK)
        return mpiox_mpi_same_agree(t->opening.comm, t->differs, error) == MPIOX_OK;
    error->rank = 0;
    return false;
}

static int open_by_library(try *t, MPI_Info info)
{
    mpiox_opening *o = &t->opening;

    const int result = PMPI_File_open(o->comm, o->name, amode_for_library(o->amode, o->told), info, t->fh);
    o->opened = result == MPI_SUCCESS && *t->fh != MPI_FILE_NULL; /* MPICH: success, after a user's handler */
    t->handle = new_file(o->comm, o->filename, o->amode);
    o->found = t->handle != NULL && !t->handle->path_unknown ? t->handle->path : NULL;
    return result;
}

static void fill_handle(const try *t)
{
    const agreed *a = &t->agreed;
    mpiox_handle *handle = t->handle;

    if (handle == NULL)
        return;
    handle->hints = a->hints;
    handle->timed = a->hints.stats != MPIOX_STATS_OFF || a->run_stats;
    handle->waits = handle->timed ? mpiox_stats_waits() : 0;
    handle->fh = *t->fh;
    handle->waits_hidden = a->waits_hidden;
    handle->recorded = a->recorded;
    if (a->told.container)
        handle->opener = mpiox_opener_of(&t->opening, &handle->opened_as);
}

/* The file is what it is. What is not as it was asked for is said before it has its name. */
static void settle_handle(try *t)
{
    const mpiox_opening *o = &t->opening;

    if (t->agreed.few_descriptors && t->handle != NULL)
        t->handle->why_native = "native: few descriptors are left (ulimit -n)";
    if (t->agreed.hints.stats)
        attach_statistics(t->handle, o->comm, o->all_opened);
    if (o->wanted && o->opened && t->handle != NULL && (o->managed || !o->told->container) &&
        !mpiox_opening_is_partial(o))
        mpiox_mpi_tell_no_delegates(t->handle);
}

/* All ranks keep it, those that have it, or refuse it by the same *error. result: the MPI library's. */
static int finish(try *t, const mpiox_error *error, int result)
{
    const mpiox_opening *o = &t->opening;
    const bool kept = o->opened && t->handle != NULL;
    const int error_class = o->wanted && !o->all_opened ? mpiox_mpi_error_class_of_open(o->comm, result) : MPI_SUCCESS;

    if (mpiox_opening_is_partial(o) && o->opened)
        return refuse_partly(t->handle, o->filename, t->fh);
    if (kept)
        insert(t->handle);
    else
        discard(t->handle);
    if (error->code != MPIOX_OK)
        return refuse_opened(o->comm, o->filename, kept, error, t->fh);
    if (kept)
        mpiox_mpi_show_hints(o->comm, o->filename, *t->fh);
    else if (result != MPI_SUCCESS)
        result = mpiox_mpi_error_of_open(o->comm, o->name, o->amode, result, error_class);
    return result;
}

/* Hints, info and topology are agreed. */
static int open_named(try *t, MPI_Info info)
{
    mpiox_opening *o = &t->opening;
    mpiox_error error;
    bool abandoned = false;

    if (!mpiox_opener_start(o))
        return MPI_ERR_OTHER;
    settle(t);
    *t->fh = MPI_FILE_NULL;
    if (!may_open(t, &error))
        return refuse(t, &error);
    const int result = open_by_library(t, info);

    fill_handle(t);
    attach(t);
    t->changed = t->changed || mpiox_opener_has_changed(o);
    if (t->changed)
        return let_go(t);
    settle_handle(t);
    if (mpiox_opener_keep(o, &error, &abandoned) == MPIOX_OK || !abandoned)
        return finish(t, &error, result);
    close_opened(o->comm, t->fh);
    return refuse(t, &error);
}

/* As rank 0 sees it now. t->changed: it is something else by now. */
static int open_as_seen(try *t, MPI_Info info, const mpiox_preload_check *preload)
{
    mpiox_opening *o = &t->opening;
    agreed *a = &t->agreed;
    MPI_Info merged = MPI_INFO_NULL;
    int result = agree_on_opening(t, info, &merged);

    if (result != MPI_SUCCESS) /* without rank 0's choices nothing can follow */
        return result;
    if (a->wanted)
        t->differs = mpiox_mpi_same_follow(o->rank, name_at_0(a), a->amode, &o->filename, &o->amode);
    if (o->rank != 0)
        begin_opening(t);
    if (preload->whole_world)
        mpiox_mpi_run_agreed(a->run_stats);
    if (a->run[0] != '\0')
        mpiox_stats_identity_adopt(a->run, preload->whole_world);
    meet(o->comm, a->recorded);
    result = open_named(t, merged != MPI_INFO_NULL ? merged : info);
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

    mpiox_witness_tell(MPIOX_WITNESSED_FILE);
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
        t.opening.told = &t.agreed.told;
        t.opening.hints = &t.agreed.hints;
        PMPI_Comm_rank(comm, &t.opening.rank);
        result = open_as_seen(&t, info, &preload);
    } while (t.changed && ++tries < TRIES);
    return t.changed ? refuse_changing(filename, fh) : result;
}

/* All ranks have closed a file that the MPI library has no access to. 0, or the same *error on all of them. */
static int make_whole(mpiox_handle *handle, mpiox_topology *topology, bool fine, mpiox_error *error)
{
    handle->opener->close(handle->opened_as, handle->amode, fine, error);
    handle->opened_as = NULL;
    return mpiox_topology_agree_error(topology, error);
}

/* Of such a file: no rank has been told that something it wrote has not come to it. Collective. */
static bool all_came(const mpiox_handle *handle, mpiox_topology *topology)
{
    return handle->opener == NULL || handle->amode & MPI_MODE_RDONLY ||
           mpiox_topology_all(topology, !atomic_load(&handle->file->damaged));
}

int mpiox_mpi_close(MPI_File *fh)
{
    mpiox_handle *handle = fh != NULL ? mpiox_handle_remove(*fh) : NULL;
    mpiox_topology *topology = mpiox_handle_is_managed(handle) ? handle->file->topology : NULL;
    int result, deferred = MPI_SUCCESS;

    if (handle != NULL) {
        mpiox_error error;

        mpiox_nonblocking_close(handle);
        if (handle->recorded && topology != NULL)
            mpiox_topology_barrier(topology, NULL, NULL);
        mpiox_forwarded_unfollow(handle->forwarded);
        const double begun = mpiox_handle_now(handle);
        if (mpiox_forwarded_close(handle->forwarded, &error) != MPIOX_OK)
            deferred = mpiox_mpi_error_code(handle->path, &error);
        if (handle->forwarded != NULL)
            mpiox_handle_spent(handle, MPIOX_SPENT_SYNC, begun);
        mpiox_mpi_report_close(handle);
        if (handle->forwarded != NULL && mpiox_forwarded_closes_behind(handle->forwarded))
            mpiox_past_mpi_note_closed(mpiox_file_place(handle->file));
        mpiox_forwarded_free(handle->forwarded);
        mpiox_collective_free(handle->collective);
        const bool fine = all_came(handle, topology);
        if (mpiox_file_close(handle->file, &error) != MPIOX_OK && deferred == MPI_SUCCESS)
            deferred = mpiox_mpi_error_code(handle->path, &error);
        if (handle->opener != NULL && make_whole(handle, topology, fine && deferred == MPI_SUCCESS, &error) != MPIOX_OK)
            deferred = mpiox_mpi_error_code(handle->path, &error);
        mpiox_mpi_view_release(handle);
        if (handle->owns_comm)
            PMPI_Comm_free(&handle->comm);
        discard(handle);
        if (deferred != MPI_SUCCESS) { /* last: a handler may leave by longjmp */
            mpiox_topology_release(topology);
            topology = NULL;
            PMPI_File_call_errhandler(*fh, deferred);
        }
    }
    result = PMPI_File_close(fh);
    mpiox_topology_release(topology); /* not before all ranks have come here: another thread may take it at once */
    return deferred != MPI_SUCCESS ? deferred : result; /* ours names the bytes, and is told only once */
}
