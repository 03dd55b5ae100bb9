/*
 * mpiox_file.c - open, close, hints and atomicity of managed files.
 *
 * Rule of every function here: the MPI library does its own call first and reports its own errors; then we follow.
 * Where following is collective, the ranks first agree that all of them will, so that no rank waits for another.
 */
#include "mpiox_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_file_error.h"
#include "mpiox_file_path.h"
#include "mpiox_file_report.h"
#include "mpiox_file_table.h"
#include "mpiox_file_view.h"
#include "mpiox_nonblocking.h"

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
    bool is_there;                /* MPI_MODE_EXCL will refuse the file, and must not delete it */
    int64_t text_bytes;           /* hints to lay over every rank's info object; 0: none */
    char text[TEXT_INLINE_BYTES]; /* when it fits */
} opening;

static bool is_wanted(const char *filename, int amode, const mpiox_hints *hints)
{
    return hints->enabled && !(amode & MPI_MODE_SEQUENTIAL) && mpiox_file_path_is_posix(filename);
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
    if (is_wanted(filename, amode, &out->hints))
        out->offer = mpiox_exchange_offer_team(comm, &out->hints);
}

/* Told at once, or twice when the text is long. A rank without memory for it, or for the object, lets its MPI library work
 * with the program's own info: that is local, hence no reason to stay behind. */
static void agree_on_opening(MPI_Comm comm, const char *filename, int amode, MPI_Info info, opening *out,
                             MPI_Info *merged)
{
    char *text = NULL;
    int rank;

    memset(out, 0, sizeof *out);
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0)
        decide(comm, filename, amode, info, out, &text);
    mpiox_exchange_tell(comm, out, (int64_t)sizeof *out);
    if (out->text_bytes > TEXT_INLINE_BYTES) {
        if (rank != 0)
            text = malloc((size_t)out->text_bytes);
        if (text != NULL)
            mpiox_exchange_tell(comm, text, out->text_bytes);
        else
            PMPI_Abort(comm, 1); /* nowhere to receive what the others wait to see received */
    }
    if (out->text_bytes > 0 &&
        mpiox_hints_apply(out->text_bytes > TEXT_INLINE_BYTES ? text : out->text, info, merged) != MPIOX_OK)
        *merged = MPI_INFO_NULL;
    free(text);
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
    PMPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_C_BOOL, MPI_LAND, comm);
    return mine;
}

/* After PMPI_File_open, whatever it returned here: our own path to the file, if every rank opened it. `file` is NULL
 * without memory. Returns whether this rank shall keep its entry. */
static bool attach(mpiox_file *file, MPI_Comm comm, const char *filename, int amode, const opening *o, bool opened)
{
    bool all_opened = opened;

    if (is_wanted(filename, amode, &o->hints)) {
        mpiox_exchange *exchange;

        mpiox_exchange_open(comm, &o->offer, file != NULL ? file->path : NULL, amode, &o->hints, opened, &all_opened,
                            &exchange);
        if (file != NULL)
            file->exchange = exchange;
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

int mpiox_file_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh)
{
    MPI_Info merged = MPI_INFO_NULL;
    mpiox_file *file;
    opening o;
    int inter = 0, result;

    if (comm == MPI_COMM_NULL || filename == NULL || fh == NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS ||
        inter)
        return PMPI_File_open(comm, filename, amode, info, fh);
    agree_on_opening(comm, filename, amode, info, &o, &merged);
    /* Open MPI 4.1 deletes the file that MPI_MODE_EXCL has just refused, if it was to be deleted on close. */
    result = PMPI_File_open(comm, filename, o.is_there ? amode & ~MPI_MODE_DELETE_ON_CLOSE : amode,
                            merged != MPI_INFO_NULL ? merged : info, fh);
    if (merged != MPI_INFO_NULL)
        PMPI_Info_free(&merged);
    file = new_file(comm, filename, amode);
    if (file != NULL) {
        file->hints = o.hints;
        file->handle = *fh;
    }
    if (attach(file, comm, filename, amode, &o, result == MPI_SUCCESS)) {
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
            deferred = mpiox_file_raise(file, &error);
        mpiox_file_view_release(file);
        if (file->comm != MPI_COMM_NULL)
            PMPI_Comm_free(&file->comm);
        discard(file);
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

    if (file == NULL || result != MPI_SUCCESS || *info_used == MPI_INFO_NULL)
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
