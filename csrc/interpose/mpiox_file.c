/*
 * mpiox_file.c - open, close, hints and atomicity of managed files.
 *
 * Rule of every function here: the MPI library does its own call first and reports its own errors; then we follow.
 * Where following is collective, the ranks first agree that all of them will, so that no rank waits for another.
 */
#include "mpiox_file.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_file_error.h"
#include "mpiox_file_path.h"
#include "mpiox_file_report.h"
#include "mpiox_file_table.h"
#include "mpiox_file_view.h"
#include "mpiox_finalize.h"
#include "mpiox_members.h"
#include "mpiox_nonblocking.h"
#include "mpiox_tools.h"

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
    mpiox_exchange_offer offer;
    bool wanted;                  /* the file is to be taken over */
    bool waits_hidden;            /* a tool keeps MPI_Wait and its kin from this library */
    bool is_there;                /* MPI_MODE_EXCL will refuse the file, and must not delete it */
    bool run_stats;               /* MPI_Finalize shall report on the run */
    int64_t text_bytes;           /* hints to lay over every rank's info object; 0: none */
    char text[TEXT_INLINE_BYTES]; /* when it fits */
} opening;

static bool is_wanted(const char *filename, int amode, const mpiox_hints *hints)
{
    return hints->enabled && !(amode & MPI_MODE_SEQUENTIAL) && mpiox_file_path_is_posix(filename);
}

/* Some calls on the file would not arrive here. Whoever preloads this library must learn of it, once. */
static bool is_hidden(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const char *function = mpiox_tools_hide_files();

    if (function != NULL && !atomic_flag_test_and_set(&said))
        fprintf(stderr, "mpiio_ext: a library in front of this one wraps %s: files are left to the MPI library; "
                "preload libmpiio_ext.so first\n", function);
    return function != NULL;
}

/* Rank 0: hints, where they came from, and the team. *text is to be freed. */
static void decide(MPI_Comm comm, const char *filename, int amode, MPI_Info info, opening *out, char **text)
{
    const char *path = mpiox_file_path(filename);

    mpiox_hints_resolve(path, info, &out->hints, print_problem, NULL);
    *text = mpiox_hints_collect(path);
    out->text_bytes = *text != NULL && **text != '\0' ? (int64_t)strlen(*text) + 1 : 0;
    if (out->text_bytes > 0 && out->text_bytes <= TEXT_INLINE_BYTES)
        memcpy(out->text, *text, (size_t)out->text_bytes);
    out->is_there = (amode & MPI_MODE_EXCL) && mpiox_file_path_is_posix(filename) && access(path, F_OK) == 0;
    out->run_stats = mpiox_file_run_wanted();
    out->wanted = is_wanted(filename, amode, &out->hints) && !is_hidden();
    out->waits_hidden = mpiox_tools_hide_waits();
    if (out->wanted)
        out->offer = mpiox_exchange_offer_team(comm, &out->hints);
    out->offer.foreground = out->waits_hidden;
}

/* Told at once, or twice when the text is long. A rank without memory for it, or for the object, lets its MPI library work
 * with the program's own info: that is local, hence no reason to stay behind. */
static int agree_on_opening(MPI_Comm comm, const char *filename, int amode, MPI_Info info, opening *out,
                            MPI_Info *merged)
{
    char *text = NULL;
    int rank, result;

    memset(out, 0, sizeof *out);
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0)
        decide(comm, filename, amode, info, out, &text);
    result = mpiox_exchange_tell(comm, out, (int64_t)sizeof *out);
    if (result == MPI_SUCCESS && out->text_bytes > TEXT_INLINE_BYTES) {
        if (rank != 0)
            text = malloc((size_t)out->text_bytes);
        if (text != NULL)
            result = mpiox_exchange_tell(comm, text, out->text_bytes);
        else
            PMPI_Abort(comm, 1); /* nowhere to receive what the others wait to see received */
    }
    if (result == MPI_SUCCESS && out->text_bytes > 0 &&
        mpiox_hints_apply(out->text_bytes > TEXT_INLINE_BYTES ? text : out->text, info, merged) != MPIOX_OK)
        *merged = MPI_INFO_NULL;
    free(text);
    return result;
}

/* ---- atomicity --------------------------------------------------------------------------------------------------- */

int mpiox_file_set_atomicity(MPI_File fh, int flag)
{
    mpiox_file *file = mpiox_file_find(fh);
    int result = PMPI_File_set_atomicity(fh, flag);

    if (result == MPI_SUCCESS && mpiox_file_is_managed(file)) {
        mpiox_nonblocking_drain(file);
        mpiox_exchange_set_atomicity(file->exchange, flag != 0);
    }
    return result;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static void discard(mpiox_file *file)
{
    if (file == NULL)
        return;
    pthread_mutex_destroy(&file->pointer_lock);
    free(file->path);
    free(file);
}

static mpiox_file *new_file(MPI_Comm comm, const char *filename, int amode)
{
    mpiox_file *file = calloc(1, sizeof *file);

    if (file == NULL)
        return NULL;
    file->path = strdup(mpiox_file_path(filename));
    file->amode = amode;
    file->comm = MPI_COMM_NULL;
    file->etype = file->filetype = MPI_DATATYPE_NULL;
    pthread_mutex_init(&file->pointer_lock, NULL);
    PMPI_Comm_rank(comm, &file->rank);
    PMPI_Comm_size(comm, &file->ranks);
    if (file->path != NULL)
        return file;
    discard(file);
    return NULL;
}

static bool all_true(MPI_Comm comm, bool mine)
{
    bool all = false;

    return PMPI_Allreduce(&mine, &all, 1, MPI_C_BOOL, MPI_LAND, comm) == MPI_SUCCESS && all;
}

/* After PMPI_File_open, whatever it returned here: our own path to the file, if every rank opened it. `file` is NULL
 * without memory. Returns whether this rank shall keep its entry. */
static bool attach(mpiox_file *file, MPI_Comm comm, int amode, const opening *o, bool opened)
{
    bool all_opened = opened;

    if (o->wanted) { /* as rank 0 sees it: name and mode may differ in a wrong program */
        mpiox_exchange *exchange;
        const char *why_not;

        mpiox_exchange_open(comm, &o->offer, file != NULL ? file->path : NULL, amode, &o->hints, opened, &all_opened,
                            &exchange, &why_not);
        if (file != NULL) {
            file->exchange = exchange;
            file->why_native = why_not;
        }
        if (exchange != NULL)
            mpiox_file_view_begin(file);
    }
    if (o->hints.stats && all_true(comm, all_opened && file != NULL))
        PMPI_Comm_dup(comm, &file->comm);
    return opened && file != NULL;
}

/* The MPI library's error with the file and errno added, where they can be found out. Its class stays. */
static int explain_open(const char *filename, int amode, int rank, int result)
{
    const char *path = mpiox_file_path(filename);
    mpiox_error error;
    int sys_errno;

    if (result == MPI_SUCCESS || !mpiox_file_path_is_posix(filename))
        return result;
    sys_errno = mpiox_file_path_errno(path, !(amode & MPI_MODE_RDONLY), (amode & MPI_MODE_CREATE) != 0);
    if (sys_errno == 0)
        return result;
    mpiox_error_set(&error, MPIOX_E_IO, sys_errno, -1, -1, "open");
    error.mpi_code = result;
    error.rank = rank;
    return mpiox_file_error_code(path, &error);
}

/* Some ranks lack the library: the MPI library alone, with the program's own hints, and nothing that the ranks would
 * have to agree on. The file has an entry so that what happens to it is counted. */
static int open_among_strangers(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh,
                                const mpiox_members *members)
{
    const int result = PMPI_File_open(comm, filename, amode, info, fh);
    mpiox_file *file = result == MPI_SUCCESS ? new_file(comm, filename, amode) : NULL;

    if (file == NULL)
        return result;
    mpiox_hints_resolve(file->path, info, &file->hints, NULL, NULL);
    file->handle = *fh;
    file->why_native = members->stranger;
    file->among_strangers = true;
    file->reports_alone = members->first && file->hints.stats;
    mpiox_file_insert(file);
    return result;
}

int mpiox_file_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh)
{
    mpiox_members members;
    MPI_Info merged = MPI_INFO_NULL;
    mpiox_file *file;
    opening o;
    int inter = 0, result;

    if (comm == MPI_COMM_NULL || filename == NULL || fh == NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS ||
        inter)
        return PMPI_File_open(comm, filename, amode, info, fh);
    mpiox_finalize_prepare();
    mpiox_members_examine(comm, &members);
    if (members.stranger != NULL)
        return open_among_strangers(comm, filename, amode, info, fh, &members);
    result = agree_on_opening(comm, filename, amode, info, &o, &merged);
    if (result != MPI_SUCCESS) /* without rank 0's choices nothing can follow */
        return result;
    if (members.whole_world)
        mpiox_file_run_agreed(o.run_stats);
    /* Open MPI 4.1 deletes the file that MPI_MODE_EXCL has just refused, if it was to be deleted on close. */
    result = PMPI_File_open(comm, filename, o.is_there ? amode & ~MPI_MODE_DELETE_ON_CLOSE : amode,
                            merged != MPI_INFO_NULL ? merged : info, fh);
    if (merged != MPI_INFO_NULL)
        PMPI_Info_free(&merged);
    file = new_file(comm, filename, amode);
    if (file != NULL) {
        file->hints = o.hints;
        file->handle = *fh;
        file->waits_hidden = o.waits_hidden;
    }
    if (attach(file, comm, amode, &o, result == MPI_SUCCESS)) {
        mpiox_file_insert(file);
        return result;
    }
    if (result != MPI_SUCCESS) {
        int rank = 0;

        PMPI_Comm_rank(comm, &rank);
        result = explain_open(filename, amode, rank, result);
    }
    discard(file);
    return result;
}

/* Our own descriptor first, so that everything this library wrote is in the file before the MPI library's sync. */
int mpiox_file_sync(MPI_File fh)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error;
    bool failed;
    int result;

    mpiox_nonblocking_drain(file);
    failed = mpiox_file_is_managed(file) && mpiox_exchange_sync(file->exchange, &error) != MPIOX_OK;
    result = PMPI_File_sync(fh);
    return failed && result == MPI_SUCCESS ? mpiox_file_raise(file, &error) : result;
}

/* By the file system where it can, and done on return: Open MPI 4.1 has rank 0 read and write the whole file again while
 * the other ranks go on, so that they still find the old size. */
int mpiox_file_preallocate(MPI_File fh, MPI_Offset size)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error;

    if (!mpiox_file_is_managed(file) || (file->amode & MPI_MODE_RDONLY))
        return PMPI_File_preallocate(fh, size);
    mpiox_nonblocking_drain(file);
    if (mpiox_exchange_preallocate(file->exchange, size, &error) == MPIOX_OK)
        return MPI_SUCCESS;
    return mpiox_file_raise(file, &error);
}

int mpiox_file_close(MPI_File *fh)
{
    mpiox_file *file = fh != NULL ? mpiox_file_remove(*fh) : NULL;
    int result, deferred = MPI_SUCCESS;

    if (file != NULL) {
        mpiox_error error;

        mpiox_nonblocking_close(file);
        mpiox_file_report_close(file);
        if (mpiox_exchange_close(file->exchange, &error) != MPIOX_OK)
            deferred = mpiox_file_error_code(file->path, &error);
        mpiox_file_view_release(file);
        if (file->comm != MPI_COMM_NULL)
            PMPI_Comm_free(&file->comm);
        discard(file);
        if (deferred != MPI_SUCCESS) /* last: a handler may leave by longjmp */
            PMPI_File_call_errhandler(*fh, deferred);
    }
    result = PMPI_File_close(fh);
    return result != MPI_SUCCESS ? result : deferred;
}

static void set_number(MPI_Info info, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)value);
    PMPI_Info_set(info, name, text);
}

int mpiox_file_get_info(MPI_File fh, MPI_Info *info_used)
{
    mpiox_file *file = mpiox_file_find(fh);
    int result = PMPI_File_get_info(fh, info_used);

    if (file == NULL || result != MPI_SUCCESS || *info_used == MPI_INFO_NULL || file->among_strangers)
        return result;
    mpiox_hints_to_info(&file->hints, *info_used);
    if (file->exchange != NULL) { /* what the library's own choices came to */
        set_number(*info_used, "cb_nodes", mpiox_exchange_aggregators(file->exchange));
        set_number(*info_used, "cb_buffer_size", mpiox_exchange_window_bytes(file->exchange));
        if (mpiox_exchange_layout(file->exchange)->stripe_known) { /* PnetCDF aligns its arrays to it */
            set_number(*info_used, "striping_unit", mpiox_exchange_layout(file->exchange)->stripe_size);
            set_number(*info_used, "striping_factor", mpiox_exchange_layout(file->exchange)->servers);
        }
    }
    return result;
}
