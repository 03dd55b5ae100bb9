/*
 * mpiox_file_view.c - see mpiox_file_view.h; MPI_File_set_view, MPI_File_get_view, MPI_File_get_byte_offset.
 */
#include "mpiox_file_view.h"

#include <string.h>
#include <strings.h>

#include "mpiox_typemap_mpi.h"
#include "mpiox_datatype.h"
#include "mpiox_file_error.h"
#include "mpiox_file_pointer.h"
#include "mpiox_file_prepare.h"
#include "mpiox_nonblocking.h"

/* ---- datatypes that outlive the program's handles ---------------------------------------------------------------- */

static bool is_named(MPI_Datatype type)
{
    int integers, addresses, types, combiner = MPI_COMBINER_NAMED;

    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

/* A predefined type is itself; of any other a duplicate. MPI_DATATYPE_NULL: there is none. */
static MPI_Datatype keep(MPI_Datatype type)
{
    MPI_Datatype copy = type;

    if (is_named(type) || PMPI_Type_dup(type, &copy) == MPI_SUCCESS)
        return copy;
    return MPI_DATATYPE_NULL;
}

static void drop(MPI_Datatype *type)
{
    if (*type != MPI_DATATYPE_NULL && !is_named(*type))
        PMPI_Type_free(type);
    *type = MPI_DATATYPE_NULL;
}

void mpiox_file_view_begin(mpiox_file *file)
{
    file->etype = file->filetype = MPI_BYTE;
    file->displacement = 0;
    file->etype_bytes = 1;
    file->native_view = file->has_view = true;
    file->all_ours = mpiox_exchange_background(file->exchange);
    file->view_told = true;
}

void mpiox_file_view_release(mpiox_file *file)
{
    drop(&file->etype);
    drop(&file->filetype);
}

void mpiox_file_view_tell(mpiox_file *file)
{
    if (file == NULL || file->view_told)
        return;
    PMPI_File_set_view(file->handle, file->displacement, file->etype, file->filetype, "native", MPI_INFO_NULL);
    file->view_told = true;
}

/* ---- setting ----------------------------------------------------------------------------------------------------- */

typedef struct new_view {
    mpiox_typemap *access; /* NULL: not to be described */
    MPI_Datatype etype, filetype;
    MPI_Count etype_bytes;
} new_view;

/* What MPI asks of a view, and what we need of one. False: let the MPI library judge it. */
static bool examine(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, bool native, new_view *out)
{
    MPI_Count filetype_bytes = 0;

    memset(out, 0, sizeof *out);
    out->etype = out->filetype = MPI_DATATYPE_NULL;
    if (!native || disp < 0 || etype == MPI_DATATYPE_NULL || filetype == MPI_DATATYPE_NULL ||
        !mpiox_datatype_is_committed(etype) || !mpiox_datatype_is_committed(filetype))
        return false;
    PMPI_Type_size_x(etype, &out->etype_bytes);
    PMPI_Type_size_x(filetype, &filetype_bytes);
    if (out->etype_bytes <= 0 || filetype_bytes < 0 || filetype_bytes % out->etype_bytes != 0)
        return false;
    if (mpiox_typemap_from_datatype(filetype, &out->access) != MPIOX_OK) {
        out->access = NULL;
        return false;
    }
    out->etype = keep(etype);
    out->filetype = keep(filetype);
    return out->etype != MPI_DATATYPE_NULL && out->filetype != MPI_DATATYPE_NULL &&
           mpiox_exchange_takes_view(out->access);
}

/* The new view is in force on this rank. */
static void adopt(mpiox_file *file, new_view *view, MPI_Offset disp, bool native)
{
    mpiox_file_view_release(file);
    file->etype = view->etype;
    file->filetype = view->filetype;
    file->displacement = disp;
    file->etype_bytes = view->etype_bytes;
    file->native_view = native;
    mpiox_exchange_set_view(file->exchange, view->access, disp);
    file->has_view = view->etype_bytes > 0 && mpiox_exchange_view_usable(file->exchange);
    file->view_told = !file->all_ours;
    mpiox_file_pointer_reset(file);
}

/* The MPI library has refused the view on some rank: the old one stays in force on all, here and there. Returns the error
 * of a rank where it would have been taken. */
static int keep_old(mpiox_file *file, new_view *view, bool was_ours, int result)
{
    mpiox_error error;

    mpiox_typemap_free(view->access);
    drop(&view->etype);
    drop(&view->filetype);
    mpiox_exchange_keep_view(file->exchange);
    file->all_ours = was_ours;
    file->view_told = false;
    if (!was_ours && file->native_view)
        mpiox_file_view_tell(file);
    if (result != MPI_SUCCESS)
        return result;
    mpiox_file_problem(&error, MPI_ERR_ARG, "another rank's part of the view was refused");
    error.rank = file->rank;
    return mpiox_file_error_raise(file->handle, file->path, &error);
}

int mpiox_file_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                        MPI_Info info)
{
    mpiox_file *file = mpiox_file_find(fh);
    new_view view;
    int result = MPI_SUCCESS;

    if (file == NULL)
        return PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);
    file->views_set++;
    if (file->exchange == NULL)
        return PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);
    mpiox_nonblocking_drain(file);
    const bool native = datarep != NULL && strcasecmp(datarep, "native") == 0, was_ours = file->all_ours;
    const bool good = examine(disp, etype, filetype, native, &view);

    file->all_ours = mpiox_exchange_agree_view(file->exchange, good);
    if (!file->all_ours) {
        result = PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);
        if (!mpiox_exchange_all(file->exchange, result == MPI_SUCCESS))
            return keep_old(file, &view, was_ours, result);
    }
    adopt(file, &view, disp, native);
    return result;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int mpiox_file_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep)
{
    mpiox_file *file = mpiox_file_find(fh);

    if (file == NULL || !file->all_ours || disp == NULL || etype == NULL || filetype == NULL || datarep == NULL)
        return PMPI_File_get_view(fh, disp, etype, filetype, datarep);
    *disp = file->displacement;
    *etype = keep(file->etype); /* the caller's to free */
    *filetype = keep(file->filetype);
    strcpy(datarep, "native");
    return MPI_SUCCESS;
}

int mpiox_file_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error;
    int64_t byte = -1;

    if (file == NULL || !file->all_ours || disp == NULL)
        return PMPI_File_get_byte_offset(fh, offset, disp);
    if (offset >= 0 && offset <= INT64_MAX / file->etype_bytes)
        byte = mpiox_exchange_byte_offset(file->exchange, offset * file->etype_bytes);
    if (byte >= 0) {
        *disp = byte;
        return MPI_SUCCESS;
    }
    mpiox_file_problem(&error, MPI_ERR_ARG, "bad offset");
    error.rank = file->rank;
    return mpiox_file_error_raise(fh, file->path, &error);
}

MPI_Offset mpiox_file_view_end(mpiox_file *file, int *result)
{
    MPI_Offset size = 0;

    *result = PMPI_File_get_size(file->handle, &size);
    if (*result != MPI_SUCCESS)
        return -1;
    return (mpiox_exchange_data_before(file->exchange, size) + file->etype_bytes - 1) / file->etype_bytes;
}
