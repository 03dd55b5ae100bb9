/*
 * mpiox_mpi_open.c - open, close and hints of managed files.
 *
 * Rule of every function here: the MPI library does its own call first and reports its own errors; then we follow.
 * Where following is collective, the ranks first agree that all of them will, so that no rank waits for another.
 */
#include "mpiox_handlers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_mpi_error.h"
#include "mpiox_mpi_info.h"
#include "mpiox_mpi_path.h"
#include "mpiox_mpi_pointer.h"
#include "mpiox_mpi_report.h"
#include "mpiox_mpi_same.h"
#include "mpiox_handle.h"
#include "mpiox_layout_create.h"
#include "mpiox_mpi_staging.h"
#include "mpiox_subfiles_job.h"
#include "mpiox_mpi_view.h"
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

/* What rank 0 tells the others before the file is opened. */
typedef struct opening {
    mpiox_hints hints;
    mpiox_file_choice choice;
    bool wanted;                      /* the file is to be taken over */
    bool few_descriptors;             /* it is not, so that there are enough for the MPI library */
    bool waits_hidden;                /* a tool keeps MPI_Wait and its kin from this library */
    bool is_there;                    /* MPI_MODE_EXCL will refuse the file, and must not delete it */
    mpiox_mpi_staging staging;        /* by which name it is opened */
    mpiox_subfiles_job subfiles;      /* whether it is stored as several */
    bool looks;                       /* it may be subfiles, or none, when it is opened: it is looked at again */
    bool deletes;                     /* MPI_MODE_DELETE_ON_CLOSE */
    bool made;                        /* rank 0 has made the file: MPI_MODE_EXCL is done, and would refuse it */
    bool run_stats;                   /* MPI_Finalize shall report on the run */
    bool recorded;                    /* somebody asks where the time of the run goes */
    char run[MPIOX_STATS_RUN_BYTES];  /* ID of the run, for the lines of statistics; empty without any */
    int amode;                        /* which the others compare theirs with, as the name behind the text */
    int64_t text_bytes;               /* hints to lay over every rank's info object; 0: none */
    char text[TEXT_INLINE_BYTES + 1]; /* when it fits */
} opening;

static bool is_wanted(const char *filename, int amode, const mpiox_hints *hints)
{
    return hints->enabled && !(amode & MPI_MODE_SEQUENTIAL) && mpiox_mpi_path_is_posix(filename);
}

/* Rank 0: make the file with the striping that the hints ask for, where the file system takes it. A name with a prefix
 * is a file of one name to ROMIO and of another to OMPIO, and asks for a driver of the MPI library: that makes it. */
static void make_striped(const char *filename, int amode, opening *out)
{
    const mpiox_layout_wish wish = {out->hints.striping_unit, out->hints.striping_factor, out->hints.start_iodevice};
    const int access_mode = amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);
    mpiox_layout_made made;

    if (!out->wanted || !(amode & MPI_MODE_CREATE) || mpiox_mpi_path(filename) != filename ||
        (access_mode != MPI_MODE_WRONLY && access_mode != MPI_MODE_RDWR)) /* the MPI library will refuse it */
        return;
    made = mpiox_layout_create(filename, &wish);
    out->made = made != MPIOX_MADE_NOTHING;
    out->choice.striped = made == MPIOX_MADE_STRIPED;
}

/* What rank 0 has of the file while it is opened. */
typedef struct own_opening {
    mpiox_forwarded_hold *hold;    /* what delegates have of it, or NULL */
    mpiox_subfiles_writer *writer; /* the index that has to be made whole, or NULL */
    bool changed; /* the file, on any rank, while it was opened: it is to be opened again; on all ranks */
    bool opened;  /* all ranks have opened it; on all ranks, where the file is taken over */
    int differs;  /* below 0: this rank's arguments are not rank 0's */
} own_opening;

enum { TRIES = 10 }; /* of opening a file that changes all the time */

/* room: for the staging name. */
static mpiox_subfiles_job_opening subfiles_opening(const char *filename, int amode, const opening *o,
                                                   char room[PATH_MAX])
{
    const char *staging = o->staging.hidden ? mpiox_mpi_staging_name(&o->staging, filename, room) : NULL;
    return (mpiox_subfiles_job_opening){.filename = filename,
                                        .path = !mpiox_mpi_path_is_posix(filename) ? NULL
                                                : staging                          ? staging
                                                                                   : mpiox_mpi_path_opened(filename),
                                        .prefixed = mpiox_mpi_path(filename) != filename,
                                        .amode = amode,
                                        .hints = &o->hints,
                                        .wanted = o->wanted,
                                        .why_not = o->few_descriptors            ? "few descriptors (ulimit -n)"
                                                   : !o->hints.enabled           ? "mpiox_enable is false"
                                                   : amode & MPI_MODE_SEQUENTIAL ? "MPI_MODE_SEQUENTIAL asks for one"
                                                                                 : "the MPI library opens it",
                                        .staging = staging,
                                        .parts = o->staging.parts};
}

static mpiox_mpi_staging_opening staging_opening(const char *filename, int amode, const opening *o)
{
    return (mpiox_mpi_staging_opening){.filename = filename,
                                       .amode = amode,
                                       .hints = &o->hints,
                                       .wanted = o->wanted,
                                       .subfiles = mpiox_subfiles_job_are_asked_for(&o->hints)};
}

/* Rank 0's name for the file, where the hints leave room for it. */
static char *name_at_0(opening *o)
{
    return o->text + (o->text_bytes <= TEXT_INLINE_BYTES ? o->text_bytes : 0);
}

/* Rank 0: hints, where they came from, and the topology. *text is to be freed. */
static void decide(MPI_Comm comm, const char *filename, int amode, MPI_Info info, opening *out, char **text,
                   own_opening *own)
{
    const char *path = mpiox_mpi_path(filename);
    char room[PATH_MAX];

    mpiox_hints_resolve_and_collect(path, info, &out->hints, text, print_problem, NULL);
    out->text_bytes = *text != NULL && **text != '\0' ? (int64_t)strlen(*text) + 1 : 0;
    if (out->text_bytes > 0 && out->text_bytes <= TEXT_INLINE_BYTES)
        memcpy(out->text, *text, (size_t)out->text_bytes);
    out->amode = amode;
    mpiox_mpi_same_name(filename, name_at_0(out), (size_t)(out->text + sizeof out->text - name_at_0(out)));
    if (filename[0] == '\0') {
        mpiox_error_set(&out->subfiles.error, MPIOX_E_IO, ENOENT, -1, -1, "open (rank 0 gives no file name)");
        return;
    }
    out->looks = mpiox_mpi_path_is_posix(filename) && !(amode & MPI_MODE_EXCL);
    out->deletes = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
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
        out->choice = mpiox_file_choose(comm, &out->hints);
    const mpiox_mpi_staging_opening staging = staging_opening(filename, amode, out);
    out->staging = mpiox_mpi_staging_begin(&staging, &own->hold);
    if (out->staging.error.code != MPIOX_OK)
        return;
    out->is_there = (amode & MPI_MODE_EXCL) && mpiox_mpi_path_is_posix(filename) &&
                    (access(path, F_OK) == 0 || access(filename, F_OK) == 0); /* see mpiox_mpi_path_opened() */
    const mpiox_subfiles_job_opening subfiles = subfiles_opening(filename, amode, out, room);
    if (out->staging.late) /* what the delegates find may be a file of subfiles */
        out->subfiles.late = true;
    else
        out->subfiles = mpiox_subfiles_job_begin(&subfiles, 0, &own->writer);
    out->is_there |= (amode & MPI_MODE_EXCL) && out->staging.hidden && !out->staging.made && out->staging.parts == 0;
    if (!out->staging.hidden && !out->staging.late && !out->subfiles.is && !out->subfiles.late)
        make_striped(filename, amode, out);
}

/* Told at once, or twice when the text is long. A rank without memory for it, or for the object, lets its MPI
 * library work with the program's own info: that is local, hence no reason to stay behind. */
static int agree_on_opening(MPI_Comm comm, const char *filename, int amode, MPI_Info info, opening *out,
                            MPI_Info *merged, own_opening *own)
{
    char *text = NULL;
    int rank = -1, result;

    memset(out, 0, sizeof *out);
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0)
        decide(comm, filename, amode, info, out, &text, own);
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
    if ((handle->file->refreshes || handle->subfiles) && handle->amode & MPI_MODE_APPEND)
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

/* After PMPI_File_open, whatever it returned here: our own path to the file, if every rank opened it. `file` is NULL
 * without memory. Returns whether this rank shall keep its entry. */
static bool attach(mpiox_handle *handle, MPI_Comm comm, int amode, const opening *o, const char *name, bool opened,
                   own_opening *own)
{
    bool all_opened = opened;

    if (o->wanted) { /* as rank 0 sees it: name and mode may differ in a wrong program */
        mpiox_file *file;
        mpiox_collective *prepared = NULL;
        mpiox_file_companion companion = {.prepare = prepare_collective, .context = &prepared};
        const char *why_not;

        const char *path = handle == NULL || handle->path_unknown ? NULL : o->staging.hidden ? name : handle->path;

        mpiox_file_open(comm, &o->choice, path, amode, &o->hints, opened, &companion, &all_opened, &file, &why_not);
        if (file != NULL) {
            file->staging = o->staging.hidden;
            file->unnamed = o->staging.unnamed != 0;
            file->made_device = o->staging.device;
            file->made_inode = o->staging.inode;
            file->scratch = o->staging.scratch;
            attach_collective(handle, comm, file, prepared, &companion);
        } else {
            mpiox_collective_free(prepared);
            if (handle != NULL)
                handle->why_native = handle->path_unknown && opened ? which_file : why_not;
        }
        own->changed = companion.changed;
    }
    if (!o->wanted && o->looks)
        own->changed = mpiox_subfiles_job_have_come(comm, handle == NULL || handle->path_unknown ? NULL : handle->path,
                                                    opened);
    own->opened = all_opened;
    if (own->changed)
        return false;
    if (o->few_descriptors && handle != NULL)
        handle->why_native = "native: few descriptors are left (ulimit -n)";
    if (o->hints.stats)
        attach_statistics(handle, comm, all_opened);
    return opened && handle != NULL;
}

/* In a run that is recorded: what ranks wait here would seem to be the MPI library's own time. */
static void meet(MPI_Comm comm, const opening *o)
{
    MPI_Request request;
    int size = 1;

    PMPI_Comm_size(comm, &size);
    if (o->recorded && size > 1)
        mpiox_topology_finish(PMPI_Ibarrier(comm, &request), &request);
}

/* It was made for this opening, which has failed. */
static void unmake(MPI_Comm comm, const char *filename, const opening *o)
{
    int rank = -1;

    PMPI_Comm_rank(comm, &rank);
    if (o->made && !o->staging.hidden && rank == 0)
        unlink(filename);
    if (o->subfiles.made && rank == 0)
        mpiox_subfiles_job_remove(filename);
}

/* name: by which it was to be opened. */
static int refuse_open(MPI_Comm comm, const char *filename, const char *name, const opening *o,
                       const mpiox_error *error, MPI_File *fh)
{
    *fh = MPI_FILE_NULL;
    unmake(comm, name, o);
    return mpiox_mpi_error_raise(MPI_FILE_NULL, mpiox_mpi_path(filename), error);
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

/* Open MPI 4.1 deletes the file that MPI_MODE_EXCL has just refused, if it was to be deleted on close. A file that rank
 * 0 has made was made exclusively. */
static int amode_for_library(int amode, const opening *o)
{
    if (o->subfiles.is) /* the index is nothing that it should write or remove */
        return MPI_MODE_RDONLY | (amode & MPI_MODE_UNIQUE_OPEN);
    if (o->is_there)
        amode &= ~MPI_MODE_DELETE_ON_CLOSE;
    return o->made ? amode & ~MPI_MODE_EXCL : amode;
}

/* OMPIO may have opened it on some ranks only: the others would not come to its close. It stays open there. */
static void close_opened(MPI_Comm comm, MPI_File *fh)
{
    if (all_true(comm, *fh != MPI_FILE_NULL))
        PMPI_File_close(fh);
    *fh = MPI_FILE_NULL;
}

/* No rank can follow the MPI library, which has opened the index, or failed to. What was made goes when all have seen
 * why. Collective. */
static int refuse_subfiles(MPI_Comm comm, mpiox_handle *handle, const opening *o, const char *name, own_opening *own,
                           MPI_File *fh)
{
    const char *path = access(name, F_OK) != 0 && handle != NULL ? handle->path : mpiox_mpi_path(name);
    mpiox_error error, ignored;
    int result;

    mpiox_error_clear(&error);
    if (handle != NULL && !handle->path_unknown)
        mpiox_subfiles_job_explain(path, handle->amode, &error);
    else
        mpiox_error_set(&error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "open (a file of subfiles)");
    PMPI_Comm_rank(comm, &error.rank);
    close_opened(comm, fh);
    mpiox_mpi_staging_opened(comm, &o->staging, name, false, false, own->hold, &ignored);
    if (own->writer != NULL)
        mpiox_subfiles_job_end(own->writer, true, &ignored);
    if (o->subfiles.made && error.rank == 0 && !o->staging.hidden)
        mpiox_subfiles_job_remove(path);
    result = mpiox_mpi_error_raise(MPI_FILE_NULL, handle != NULL ? handle->path : "", &error);
    discard(handle);
    return result;
}

/* Before anything is opened: rank 0 has found that it cannot be. */
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
static bool may_change(const opening *o)
{
    return o->looks && !o->made && !o->staging.hidden && !o->subfiles.made && (o->subfiles.is || !o->deletes);
}

/* What was opened is let go, so that it can be opened again. Collective. */
static void let_go(MPI_Comm comm, const opening *o, const char *name, own_opening *own, mpiox_handle *handle,
                   MPI_File *fh)
{
    mpiox_error ignored;

    mpiox_mpi_staging_opened(comm, &o->staging, name, false, false, own->hold, &ignored);
    mpiox_subfiles_job_end(own->writer, true, &ignored);
    close_opened(comm, fh);
    discard(handle);
}

/* Delegates are started, and the file is looked for or made, where rank 0 could not do that alone. *name: by which it
 * is opened; it may lie in `room`. Collective. False: MPI has failed. */
static bool settle_names(MPI_Comm comm, const char *filename, int amode, opening *o, own_opening *own,
                         char room[PATH_MAX], const char **name)
{
    const mpiox_mpi_staging_opening staging = staging_opening(filename, amode, o);

    if (o->staging.late && !mpiox_mpi_staging_start(comm, &staging, &o->staging))
        return false;
    *name = mpiox_mpi_staging_name(&o->staging, filename, room);
    const mpiox_subfiles_job_opening subfiles = subfiles_opening(filename, amode, o, room);

    if (o->staging.error.code == MPIOX_OK && o->subfiles.late &&
        !mpiox_subfiles_job_start(comm, &subfiles, &o->subfiles, &own->writer))
        return false;
    mpiox_subfiles_job_await(*name, &o->subfiles);
    o->choice.container = o->subfiles.is;
    o->choice.id = o->subfiles.id;
    o->choice.foreground = o->waits_hidden && !o->subfiles.is;
    o->staging.made |= o->subfiles.made && o->staging.hidden;
    o->made |= o->staging.made;
    if (o->staging.made)
        o->choice.striped = o->staging.striped;
    o->choice.looks = o->looks = may_change(o);
    o->choice.device = o->staging.device;
    o->choice.inode = o->staging.inode;
    return true;
}

static mpiox_handle *new_handle(MPI_Comm comm, const char *filename, int amode, const opening *o, MPI_File fh)
{
    mpiox_handle *handle = new_file(comm, filename, amode);

    if (handle == NULL)
        return NULL;
    handle->hints = o->hints;
    handle->timed = o->hints.stats != MPIOX_STATS_OFF || o->run_stats;
    handle->waits = handle->timed ? mpiox_stats_waits() : 0;
    handle->fh = fh;
    handle->waits_hidden = o->waits_hidden;
    handle->recorded = o->recorded;
    handle->subfiles = o->subfiles.is;
    return handle;
}

/* Before the MPI library opens it; then *result is the error, on all ranks. Collective. */
static bool refused_unopened(MPI_Comm comm, const char *filename, const opening *o, const char *name, own_opening *own,
                             MPI_File *fh, int *result)
{
    const mpiox_error *found = o->staging.error.code != MPIOX_OK ? &o->staging.error : &o->subfiles.error;
    mpiox_error refused, ignored;

    *fh = MPI_FILE_NULL;
    if (found->code == MPIOX_OK && mpiox_mpi_same_agree(comm, own->differs, &refused) == MPIOX_OK)
        return false;
    mpiox_mpi_staging_opened(comm, &o->staging, name, false, false, own->hold, &ignored);
    if (found->code == MPIOX_OK)
        mpiox_subfiles_job_end(own->writer, true, &ignored);
    *result = found->code != MPIOX_OK ? refuse_found(filename, *found, fh)
                                      : refuse_open(comm, filename, name, o, &refused, fh);
    return true;
}

/* Hints, info and topology are agreed. */
static int open_named(MPI_Comm comm, const char *filename, int amode, MPI_Info info, opening *o, own_opening *own,
                      MPI_File *fh)
{
    char room[PATH_MAX];
    const char *name;
    mpiox_error refused;
    int result;

    if (!settle_names(comm, filename, amode, o, own, room, &name))
        return MPI_ERR_OTHER;
    if (refused_unopened(comm, filename, o, name, own, fh, &result))
        return result;
    result = PMPI_File_open(comm, name, amode_for_library(amode, o), info, fh);
    const bool opened = result == MPI_SUCCESS && *fh != MPI_FILE_NULL; /* MPICH: success, after a user's handler */
    mpiox_handle *handle = new_handle(comm, filename, amode, o, *fh);
    const bool kept = attach(handle, comm, amode, o, name, opened, own);

    if (!own->changed && o->subfiles.is && o->looks && !mpiox_handle_is_managed(handle))
        own->changed = mpiox_subfiles_job_have_gone(comm, name, &o->subfiles);
    if (own->changed) {
        let_go(comm, o, name, own, handle, fh);
        return MPI_SUCCESS;
    }
    const bool through = handle != NULL && handle->forwarded != NULL,
               fails = o->subfiles.is && !mpiox_handle_is_managed(handle),
               missing = o->staging.made && !own->opened; /* on some rank, if not on all */

    if (o->wanted && kept && !fails && !missing) /* before the file has its name */
        mpiox_mpi_tell_no_delegates(handle);
    if (own->writer != NULL && o->staging.made && opened && !through && !fails)
        mpiox_subfiles_job_reveal(own->writer);
    if (fails)
        return refuse_subfiles(comm, handle, o, name, own, fh);
    mpiox_mpi_staging_opened(comm, &o->staging, name, opened && !missing, through, own->hold, &refused);
    const int error_class = o->wanted && !own->opened ? mpiox_mpi_error_class_of_open(comm, result) : MPI_SUCCESS;
    if (missing && opened)
        return refuse_partly(handle, filename, fh);
    if (kept) {
        handle->writer = own->writer;
        insert(handle);
    }
    if (refused.code != MPIOX_OK) {
        if (!kept)
            discard(handle);
        return refuse_opened(comm, filename, kept, &refused, fh);
    }
    if (kept)
        mpiox_mpi_show_hints(comm, filename, *fh);
    else if (result != MPI_SUCCESS)
        result = mpiox_mpi_error_of_open(comm, name, amode, result, error_class);
    if (!kept)
        discard(handle);
    return result;
}

/* As rank 0 sees it now. own->changed: it is something else by now. */
static int open_as_seen(MPI_Comm comm, const char *filename, int amode, MPI_Info info,
                        const mpiox_preload_check *preload, own_opening *own, MPI_File *fh)
{
    MPI_Info merged = MPI_INFO_NULL;
    opening o;
    int result = agree_on_opening(comm, filename, amode, info, &o, &merged, own), rank = 0;

    if (result != MPI_SUCCESS) /* without rank 0's choices nothing can follow */
        return result;
    PMPI_Comm_rank(comm, &rank);
    if (o.wanted)
        own->differs = mpiox_mpi_same_follow(rank, name_at_0(&o), o.amode, &filename, &amode);
    if (preload->whole_world)
        mpiox_mpi_run_agreed(o.run_stats);
    if (o.run[0] != '\0')
        mpiox_stats_identity_adopt(o.run, preload->whole_world);
    meet(comm, &o);
    result = open_named(comm, filename, amode, merged != MPI_INFO_NULL ? merged : info, &o, own, fh);
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
    own_opening own;
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
        own = (own_opening){.hold = NULL};
        result = open_as_seen(comm, filename, amode, info, &preload, &own, fh);
    } while (own.changed && ++tries < TRIES);
    return own.changed ? refuse_changing(filename, fh) : result;
}

/* All ranks have closed a file of subfiles. 0, or the same *error on all of them. */
static int make_whole(mpiox_handle *handle, mpiox_topology *topology, bool fine, mpiox_error *error)
{
    if (handle->amode & MPI_MODE_DELETE_ON_CLOSE)
        mpiox_subfiles_job_delete(handle->writer, error);
    else
        mpiox_subfiles_job_end(handle->writer, fine, error);
    handle->writer = NULL;
    return mpiox_topology_agree_error(topology, error);
}

/* Of subfiles: no rank has been told that something it wrote has not come to them. Collective. */
static bool all_came(const mpiox_handle *handle, mpiox_topology *topology)
{
    return !handle->subfiles || handle->amode & MPI_MODE_RDONLY ||
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
        if (handle->subfiles && make_whole(handle, topology, fine && deferred == MPI_SUCCESS, &error) != MPIOX_OK)
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
