/*
 * mpiox_mpi_view.c - see mpiox_mpi_view.h; MPI_File_set_view, MPI_File_get_view, MPI_File_get_byte_offset.
 */
#include "mpiox_mpi_view.h"

#include <string.h>
#include <strings.h>

#include "mpiox_typemap_contents.h"
#include "mpiox_typemap_mpi.h"
#include "mpiox_datatype.h"
#include "mpiox_mpi_error.h"
#include "mpiox_handlers.h"
#include "mpiox_mpi_pointer.h"
#include "mpiox_mpi_view_judge.h"
#include "mpiox_nonblocking.h"

/* ---- datatypes that outlive the program's handles ---------------------------------------------------------------- */

/* Keep a predefined type as it is; keep any other by a struct of none of its elements: MPI keeps the parts of a type
 * for as long as that type lives, and returns them. Open MPI would take longer to copy a long list than this library to
 * describe it. Not a duplicate: that would run the program's attribute callbacks. MPI_DATATYPE_NULL: there is none. */
static MPI_Datatype hold(MPI_Datatype type)
{
    const int none = 0;
    const MPI_Aint at = 0;
    MPI_Datatype holder = MPI_DATATYPE_NULL;

    if (mpiox_contents_is_predefined(type))
        return type;
    return PMPI_Type_create_struct(1, &none, &at, &type, &holder) == MPI_SUCCESS ? holder : MPI_DATATYPE_NULL;
}

/* The kept type, committed, the caller's to free unless it is predefined. MPI_DATATYPE_NULL: MPI does not return it. */
static MPI_Datatype keep(MPI_Datatype holder)
{
    mpiox_contents contents;
    MPI_Datatype type = MPI_DATATYPE_NULL;

    if (holder == MPI_DATATYPE_NULL || mpiox_contents_is_predefined(holder))
        return holder;
    if (mpiox_contents_get(holder, &contents) != MPIOX_OK)
        return MPI_DATATYPE_NULL;
    if (contents.n_types == 1) {
        type = contents.types[0];
        contents.n_types = 0; /* not to be freed */
    }
    mpiox_contents_free(&contents);
    if (type != MPI_DATATYPE_NULL && PMPI_Type_commit(&type) != MPI_SUCCESS)
        PMPI_Type_free(&type);
    return type;
}

static void drop(MPI_Datatype *type)
{
    if (*type != MPI_DATATYPE_NULL && !mpiox_contents_is_predefined(*type))
        PMPI_Type_free(type);
    *type = MPI_DATATYPE_NULL;
}

void mpiox_mpi_view_begin(mpiox_handle *handle)
{
    handle->etype = handle->filetype = MPI_BYTE;
    handle->displacement = 0;
    handle->etype_bytes = 1;
    handle->native_view = handle->has_view = true;
    handle->all_ours = mpiox_topology_takes_all(handle->file->topology);
    handle->view_handed_over = true;
}

void mpiox_mpi_view_release(mpiox_handle *handle)
{
    drop(&handle->etype);
    drop(&handle->filetype);
}

void mpiox_mpi_view_hand_over(mpiox_handle *handle)
{
    if (!mpiox_handle_is_managed(handle) || handle->view_handed_over || !handle->native_view)
        return;
    MPI_Datatype etype = keep(handle->etype), filetype = keep(handle->filetype);
    PMPI_File_set_view(handle->fh, handle->displacement, etype, filetype, "native", MPI_INFO_NULL);
    drop(&etype);
    drop(&filetype);
    handle->view_handed_over = true;
}

/* ---- setting ----------------------------------------------------------------------------------------------------- */

typedef struct new_view {
    mpiox_typemap *access; /* NULL: not to be described */
    MPI_Datatype etype, filetype;
    MPI_Count etype_bytes;
} new_view;

/* Whether a file type has displacements before its origin, which MPI forbids. */
static bool reaches_back(const mpiox_typemap *filetype)
{
    return mpiox_typemap_size(filetype) > 0 && mpiox_typemap_true_lb(filetype) < 0;
}

/* Check MPI's conditions of a view, and this library's. False: it is wrong, or the MPI library's. */
static bool examine(const mpiox_handle *handle, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, bool native,
                    new_view *out)
{
    MPI_Count filetype_bytes = 0;

    memset(out, 0, sizeof *out);
    out->etype = out->filetype = MPI_DATATYPE_NULL;
    if (!native || disp < 0 || etype == MPI_DATATYPE_NULL || filetype == MPI_DATATYPE_NULL ||
        !mpiox_datatype_is_committed(etype) || !mpiox_datatype_is_committed(filetype))
        return false;
    PMPI_Type_size_x(etype, &out->etype_bytes);
    PMPI_Type_size_x(filetype, &filetype_bytes);
    if (out->etype_bytes <= 0 || filetype_bytes < 0 || filetype_bytes % out->etype_bytes != 0 ||
        (etype != filetype && mpiox_mpi_view_bad_etype(handle, etype)))
        return false;
    if (mpiox_typemap_from_datatype(filetype, &out->access) != MPIOX_OK) {
        out->access = NULL;
        return false;
    }
    out->etype = hold(etype);
    out->filetype = hold(filetype);
    return out->etype != MPI_DATATYPE_NULL && out->filetype != MPI_DATATYPE_NULL && !reaches_back(out->access) &&
           mpiox_file_takes_view(handle->file, out->access);
}

/* The new view is in force on this rank. */
static void adopt(mpiox_handle *handle, new_view *view, MPI_Offset disp, bool native)
{
    mpiox_mpi_view_release(handle);
    handle->etype = view->etype;
    handle->filetype = view->filetype;
    handle->displacement = disp;
    handle->etype_bytes = view->etype_bytes;
    handle->native_view = native;
    mpiox_file_set_view(handle->file, view->access, disp);
    handle->has_view = view->etype_bytes > 0 && mpiox_file_view_usable(handle->file);
    handle->view_handed_over = !handle->all_ours || handle->shares_views;
    mpiox_mpi_pointer_reset(handle);
}

/* The old view stays in force after all, on every rank. */
static void put_back(mpiox_handle *handle, new_view *view, bool was_ours)
{
    mpiox_typemap_free(view->access);
    drop(&view->etype);
    drop(&view->filetype);
    mpiox_file_keep_view(handle->file);
    handle->all_ours = was_ours;
}

/* The MPI library has refused the view on some rank: the old one stays in force on all, here and there. Returns the
 * error of a rank where it would have been taken. */
static int keep_old(mpiox_handle *handle, new_view *view, bool was_ours, int result)
{
    put_back(handle, view, was_ours);
    handle->view_handed_over = false;
    if ((!was_ours || handle->shares_views) && handle->native_view)
        mpiox_mpi_view_hand_over(handle);
    if (result != MPI_SUCCESS)
        return result;
    return mpiox_mpi_raise_problem(handle, MPI_ERR_ARG,
                                   "MPI_File_set_view: another rank's part of the view was refused");
}

int mpiox_mpi_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                       MPI_Info info)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    new_view view;
    mpiox_error error;
    int result = MPI_SUCCESS;

    if (handle == NULL)
        return PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);
    handle->views_set++;
    if (handle->file == NULL)
        return PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);
    mpiox_nonblocking_drain(handle);
    const bool native = datarep != NULL && strcasecmp(datarep, "native") == 0, was_ours = handle->all_ours;
    const bool good = examine(handle, disp, etype, filetype, native, &view);

    handle->shares_views |= handle->alone_was_dear;
    handle->all_ours = mpiox_file_agree_view(handle->file, good, &handle->shares_views);
    if (!handle->all_ours) {
        mpiox_mpi_view_judge(handle, disp, etype, filetype, datarep, &error);
        if (!mpiox_mpi_view_agreed(handle, datarep, &error)) {
            put_back(handle, &view, was_ours);
            return mpiox_mpi_error_raise(fh, handle->path, &error);
        }
        if (handle->opener != NULL) {
            put_back(handle, &view, was_ours);
            return mpiox_mpi_raise_problem(handle, native ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_ERR_UNSUPPORTED_DATAREP,
                                           handle->opener->no_view);
        }
    }
    if (!handle->all_ours || handle->shares_views) {
        result = PMPI_File_set_view(fh, disp, etype, filetype, datarep, info);
        if (!mpiox_topology_all(handle->file->topology, result == MPI_SUCCESS))
            return keep_old(handle, &view, was_ours, result);
    }
    adopt(handle, &view, disp, native);
    return result;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int mpiox_mpi_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep)
{
    mpiox_handle *handle = mpiox_handle_find(fh);

    if (handle == NULL || !handle->all_ours || disp == NULL || etype == NULL || filetype == NULL || datarep == NULL)
        return PMPI_File_get_view(fh, disp, etype, filetype, datarep);
    *disp = handle->displacement;
    *etype = keep(handle->etype); /* the caller's to free */
    *filetype = keep(handle->filetype);
    strcpy(datarep, "native");
    return MPI_SUCCESS;
}

int mpiox_mpi_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    int64_t byte = -1;

    if (handle == NULL || !handle->all_ours || disp == NULL)
        return PMPI_File_get_byte_offset(fh, offset, disp);
    if (offset >= 0 && offset <= INT64_MAX / handle->etype_bytes)
        byte = mpiox_file_byte_offset(handle->file, offset * handle->etype_bytes);
    if (byte >= 0) {
        *disp = byte;
        return MPI_SUCCESS;
    }
    return mpiox_mpi_raise_problem(handle, MPI_ERR_ARG, "bad offset");
}

MPI_Offset mpiox_mpi_view_end(mpiox_handle *handle, int *result)
{
    MPI_Offset size = 0;

    *result = mpiox_mpi_get_size(handle->fh, &size);
    if (*result != MPI_SUCCESS)
        return -1;
    return (mpiox_file_data_before(handle->file, size) + handle->etype_bytes - 1) / handle->etype_bytes;
}
