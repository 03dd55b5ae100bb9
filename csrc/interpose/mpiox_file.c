/*
 * mpiox_file.c - open, close, views, hints and atomicity of managed files.
 *
 * Rule of every function here: the MPI library does its own call first and reports its own errors; then we follow.
 * Where following is collective, the ranks first agree that all of them will, so that no rank waits for another.
 */
#include "mpiox_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mpiox_access_mpi.h"
#include "mpiox_file_error.h"
#include "mpiox_file_path.h"

/* ---- hints ------------------------------------------------------------------------------------------------------- */

static void print_problem(const char *message, void *context)
{
    (void)context;
    fprintf(stderr, "mpiio_ext: %s\n", message);
}

/* Resolve on rank 0, broadcast values and the text to lay over every rank's info object. False: no memory or MPI error,
 * seen by all ranks alike. */
static bool agree_on_hints(mpiox_file *file, MPI_Comm comm, MPI_Info info, MPI_Info *merged)
{
    char *collected = NULL;
    int64_t bytes = -1;
    bool fine;

    if (file->rank == 0) {
        mpiox_hints_resolve(file->path, info, &file->hints, print_problem, NULL);
        collected = mpiox_hints_collect(file->path);
        bytes = collected != NULL ? (int64_t)strlen(collected) + 1 : -1;
    }
    if (file->ranks > 1) {
        if (PMPI_Bcast(&bytes, 1, MPI_INT64_T, 0, comm) != MPI_SUCCESS || bytes < 0)
            return false;
        PMPI_Bcast(&file->hints, (int)sizeof file->hints, MPI_BYTE, 0, comm);
        if (file->rank != 0)
            collected = malloc((size_t)bytes);
        fine = collected != NULL;
        PMPI_Allreduce(MPI_IN_PLACE, &fine, 1, MPI_C_BOOL, MPI_LAND, comm);
        if (fine)
            PMPI_Bcast(collected, (int)bytes, MPI_BYTE, 0, comm);
    } else {
        fine = collected != NULL;
    }
    /* Local, hence no reason to stay behind: without it this rank's MPI library works with the program's own info. */
    if (fine && mpiox_hints_apply(collected, info, merged) != MPIOX_OK)
        *merged = MPI_INFO_NULL;
    free(collected);
    return fine;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Describe the view and hand it to the exchange. What cannot be described (no view of ours, or a data representation
 * that asks for conversion) becomes "no view": the ranks find out together at the next collective. */
static void follow_view(mpiox_file *file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                        bool native)
{
    MPI_Count etype_bytes = 0;
    mpiox_access *view = NULL;
    bool fine = native && displacement >= 0 && PMPI_Type_size_x(etype, &etype_bytes) == MPI_SUCCESS && etype_bytes > 0;

    if (fine && mpiox_access_from_datatype(filetype, &view) != MPIOX_OK)
        view = NULL;
    file->has_view = view != NULL;
    file->etype_bytes = etype_bytes;
    mpiox_exchange_set_view(file->exchange, view, displacement);
}

int mpiox_file_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                        MPI_Info info)
{
    mpiox_file *file = mpiox_file_find(fh);
    int result = PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);

    if (file == NULL || result != MPI_SUCCESS) /* the MPI library keeps this rank's old view, and so do we */
        return result;
    file->views_set++;
    if (file->exchange != NULL)
        follow_view(file, disp, etype, filetype, strcasecmp(datarep, "native") == 0);
    return result;
}

int mpiox_file_set_atomicity(MPI_File fh, int flag)
{
    mpiox_file *file = mpiox_file_find(fh);
    int result = PMPI_File_set_atomicity(fh, flag);

    if (file != NULL && result == MPI_SUCCESS)
        file->atomic = flag != 0;
    return result;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static void discard(mpiox_file *file)
{
    if (file == NULL)
        return;
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

/* Collective over ranks whose PMPI_File_open succeeded everywhere. */
static void attach(mpiox_file *file, MPI_Comm comm, const char *filename)
{
    bool wanted = file->hints.enabled && !(file->amode & MPI_MODE_SEQUENTIAL) && mpiox_file_path_is_posix(filename);

    if (file->hints.stats)
        PMPI_Comm_dup(comm, &file->comm);
    if (wanted && mpiox_exchange_open(comm, file->path, file->amode, &file->hints, &file->exchange) != MPIOX_OK)
        file->exchange = NULL;
    if (file->exchange != NULL)
        follow_view(file, 0, MPI_BYTE, MPI_BYTE, true); /* MPI's initial view */
}

/* The MPI library's error with the file and errno added, where they can be found out. Its class stays. */
static int explain_open(const mpiox_file *file, int result)
{
    mpiox_error error;
    int sys_errno;

    if (result == MPI_SUCCESS || !mpiox_file_path_is_posix(file->path))
        return result;
    sys_errno = mpiox_file_path_errno(file->path, !(file->amode & MPI_MODE_RDONLY), (file->amode & MPI_MODE_CREATE) != 0);
    if (sys_errno == 0)
        return result;
    mpiox_error_set(&error, MPIOX_E_IO, sys_errno, -1, -1, "open");
    error.mpi_code = result;
    error.rank = file->rank;
    return mpiox_file_error_code(file->path, &error);
}

int mpiox_file_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh)
{
    MPI_Info merged = MPI_INFO_NULL;
    mpiox_file *file;
    int inter = 0, result;

    if (comm == MPI_COMM_NULL || filename == NULL || fh == NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS ||
        inter)
        return PMPI_File_open(comm, filename, amode, info, fh);
    file = new_file(comm, filename, amode);
    if (!all_true(comm, file != NULL)) {
        discard(file);
        return PMPI_File_open(comm, filename, amode, info, fh);
    }
    if (!agree_on_hints(file, comm, info, &merged)) {
        mpiox_hints_defaults(&file->hints);
        file->hints.enabled = false;
    }
    result = PMPI_File_open(comm, filename, amode, merged != MPI_INFO_NULL ? merged : info, fh);
    if (merged != MPI_INFO_NULL)
        PMPI_Info_free(&merged);
    if (!all_true(comm, result == MPI_SUCCESS)) {
        result = explain_open(file, result);
        discard(file);
        return result;
    }
    file->handle = *fh;
    attach(file, comm, filename);
    mpiox_file_insert(file);
    return result;
}

/* Our own descriptor first, so that everything this library wrote is in the file before the MPI library's sync. */
int mpiox_file_sync(MPI_File fh)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error;
    bool failed = file != NULL && file->exchange != NULL && mpiox_exchange_sync(file->exchange, &error) != MPIOX_OK;
    int result = PMPI_File_sync(fh);

    return failed && result == MPI_SUCCESS ? mpiox_file_error_raise(fh, file->path, &error) : result;
}

int mpiox_file_close(MPI_File *fh)
{
    mpiox_file *file = fh != NULL ? mpiox_file_remove(*fh) : NULL;
    int result, deferred = MPI_SUCCESS;

    if (file != NULL) {
        mpiox_error error;

        mpiox_file_report_close(file);
        if (mpiox_exchange_close(file->exchange, &error) != MPIOX_OK)
            deferred = mpiox_file_error_raise(file->handle, file->path, &error);
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
        set_number(*info_used, "striping_unit", mpiox_exchange_layout(file->exchange)->stripe_size);
        set_number(*info_used, "striping_factor", mpiox_exchange_layout(file->exchange)->servers);
    }
    return result;
}
