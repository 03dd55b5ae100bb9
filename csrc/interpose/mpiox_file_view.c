/*
 * mpiox_file_view.c - see mpiox_file_view.h; MPI_File_set_view, MPI_File_get_view, MPI_File_get_byte_offset.
 */
#include "mpiox_file_view.h"

#include <string.h>
#include <strings.h>

#include "mpiox_typemap_contents.h"
#include "mpiox_typemap_mpi.h"
#include "mpiox_datatype.h"
#include "mpiox_file_error.h"
#include "mpiox_file_pointer.h"
#include "mpiox_nonblocking.h"

/* ---- datatypes that outlive the program's handles ---------------------------------------------------------------- */

/* A predefined type is itself; of any other one element of it, committed. Not a duplicate: that would run the program's
 * attribute callbacks. MPI_DATATYPE_NULL: there is none. */
static MPI_Datatype keep(MPI_Datatype type)
{
    MPI_Datatype copy = type;

    if (mpiox_contents_is_predefined(type))
        return type;
    if (PMPI_Type_contiguous(1, type, &copy) != MPI_SUCCESS)
        return MPI_DATATYPE_NULL;
    if (PMPI_Type_commit(&copy) == MPI_SUCCESS)
        return copy;
    PMPI_Type_free(&copy);
    return MPI_DATATYPE_NULL;
}

static void drop(MPI_Datatype *type)
{
    if (*type != MPI_DATATYPE_NULL && !mpiox_contents_is_predefined(*type))
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
    file->view_handed_over = true;
}

void mpiox_file_view_release(mpiox_file *file)
{
    drop(&file->etype);
    drop(&file->filetype);
}

void mpiox_file_view_hand_over(mpiox_file *file)
{
    if (!mpiox_file_is_managed(file) || file->view_handed_over || !file->native_view)
        return;
    PMPI_File_set_view(file->handle, file->displacement, file->etype, file->filetype, "native", MPI_INFO_NULL);
    file->view_handed_over = true;
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

/* Whether a file type has displacements before its origin, which MPI forbids. */
static bool reaches_back(const mpiox_typemap *filetype)
{
    return filetype != NULL && mpiox_typemap_size(filetype) > 0 && mpiox_typemap_true_lb(filetype) < 0;
}

/* What no view may be, whoever carries out the accesses. Open MPI 4.1 takes negative displacements and fails in the
 * accesses; where they are negative on some ranks only, MPICH lets the others wait for ever. The classes are theirs. */
static void judge(const mpiox_file *file, MPI_Offset disp, const new_view *view, mpiox_error *error)
{
    const bool current = disp == MPI_DISPLACEMENT_CURRENT && (file->amode & MPI_MODE_SEQUENTIAL);

    memset(error, 0, sizeof *error);
    if (disp < 0 && !current)
        mpiox_file_problem(error, MPI_ERR_ARG, "negative displacement of a view");
    else if (reaches_back(view->access))
        mpiox_file_problem(error, MPI_ERR_IO, "negative displacement in a file type");
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
    file->view_handed_over = !file->all_ours;
    mpiox_file_pointer_reset(file);
}

/* The old view stays in force after all, on every rank. */
static void put_back(mpiox_file *file, new_view *view, bool was_ours)
{
    mpiox_typemap_free(view->access);
    drop(&view->etype);
    drop(&view->filetype);
    mpiox_exchange_keep_view(file->exchange);
    file->all_ours = was_ours;
}

/* The MPI library has refused the view on some rank: the old one stays in force on all, here and there. Returns the error
 * of a rank where it would have been taken. */
static int keep_old(mpiox_file *file, new_view *view, bool was_ours, int result)
{
    put_back(file, view, was_ours);
    file->view_handed_over = false;
    if (!was_ours && file->native_view)
        mpiox_file_view_hand_over(file);
    if (result != MPI_SUCCESS)
        return result;
    return mpiox_file_raise_problem(file, MPI_ERR_ARG, "another rank's part of the view was refused");
}

int mpiox_file_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                        MPI_Info info)
{
    mpiox_file *file = mpiox_file_find(fh);
    new_view view;
    mpiox_error error;
    int result = MPI_SUCCESS;

    if (file == NULL)
        return PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);
    file->views_set++;
    if (file->exchange == NULL)
        return PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);
    mpiox_nonblocking_drain(file);
    const bool native = datarep != NULL && strcasecmp(datarep, "native") == 0, was_ours = file->all_ours;
    const bool good = examine(disp, etype, filetype, native, &view);

    judge(file, disp, &view, &error);
    file->all_ours = mpiox_exchange_agree_view(file->exchange, good && error.code == MPIOX_OK);
    if (!file->all_ours) {
        if (mpiox_exchange_agree_error(file->exchange, &error) != MPIOX_OK) {
            put_back(file, &view, was_ours);
            return mpiox_file_error_raise(fh, file->path, &error);
        }
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
    int64_t byte = -1;

    if (file == NULL || !file->all_ours || disp == NULL)
        return PMPI_File_get_byte_offset(fh, offset, disp);
    if (offset >= 0 && offset <= INT64_MAX / file->etype_bytes)
        byte = mpiox_exchange_byte_offset(file->exchange, offset * file->etype_bytes);
    if (byte >= 0) {
        *disp = byte;
        return MPI_SUCCESS;
    }
    return mpiox_file_raise_problem(file, MPI_ERR_ARG, "bad offset");
}

MPI_Offset mpiox_file_view_end(mpiox_file *file, int *result)
{
    MPI_Offset size = 0;

    *result = PMPI_File_get_size(file->handle, &size);
    if (*result != MPI_SUCCESS)
        return -1;
    return (mpiox_exchange_data_before(file->exchange, size) + file->etype_bytes - 1) / file->etype_bytes;
}
