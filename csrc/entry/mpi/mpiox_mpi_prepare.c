/*
 * mpiox_mpi_prepare.c - checks, memory descriptions, file positions, statuses. See mpiox_mpi_prepare.h.
 *
 * Error classes follow the MPI library of the program (tested with Open MPI 4.1 and MPICH 5). Bad counts, types and
 * buffers have their own classes. A transfer that is no whole number of etypes is MPI_ERR_IO to MPICH and allowed by
 * Open MPI. The individual file pointer moves by the requested bytes, even if a read met the end of the file, as MPI
 * defines it. Both libraries do so, but MPICH on a single rank stops at the end of the file.
 */
#include "mpiox_mpi_prepare.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap_mpi.h"
#include "mpiox_datatype.h"
#include "mpiox_has.h"
#include "mpiox_device_access.h"
#include "mpiox_mpi_error.h"
#include "mpiox_mpi_pointer.h"
#include "mpiox_wait.h"

#ifdef OPEN_MPI
#define WHOLE_ETYPES false
#else
#define WHOLE_ETYPES true
#endif

/* So many bytes MPI_Pack counts. */
static MPI_Count packed_max(void)
{
#if MPI_VERSION >= 4
    if (MPIOX_HAS(PMPI_Pack_c) && MPIOX_HAS(PMPI_Unpack_c))
        return INT64_MAX;
#endif
    return INT32_MAX;
}

/* Pack or unpack `n` elements, `bytes` of data, of which there are as many as MPI_Pack counts at most. */
static bool pack_some(bool unpack, char *user, MPI_Count n, MPI_Datatype type, char *packed, MPI_Count bytes)
{
#if MPI_VERSION >= 4
    if (packed_max() == INT64_MAX) {
        MPI_Count at = 0;
        const int result = unpack ? PMPI_Unpack_c(packed, bytes, &at, user, n, type, MPI_COMM_SELF)
                                  : PMPI_Pack_c(user, n, type, packed, bytes, &at, MPI_COMM_SELF);
        return result == MPI_SUCCESS && at == bytes;
    }
#endif
    int at = 0;
    const int result = unpack ? PMPI_Unpack(packed, (int)bytes, &at, user, (int)n, type, MPI_COMM_SELF)
                              : PMPI_Pack(user, (int)n, type, packed, (int)bytes, &at, MPI_COMM_SELF);
    return result == MPI_SUCCESS && at == bytes;
}

/* Move all elements between the program's memory and the packed copy, in steps that MPI_Pack can count. False: it
 * refuses. Memory that a read does not reach must come back unchanged, so a copy is always packed first. */
static bool pack(mpiox_prepared *p, bool unpack)
{
    MPI_Count size = 0, lb = 0, extent = 0;
    MPI_Count step;

    PMPI_Type_size_x(p->user_type, &size);
    PMPI_Type_get_extent_x(p->user_type, &lb, &extent);
    if (size > packed_max())
        return false;
    step = packed_max() / (size > 0 ? size : 1);
    for (MPI_Count i = 0; size > 0 && i < p->user_count; i += step) {
        const MPI_Count n = p->user_count - i < step ? p->user_count - i : step;
        char *user = (char *)p->user_buffer + i * extent, *packed = p->packed + i * size;

        if (!pack_some(unpack, user, n, p->user_type, packed, n * size))
            return false;
    }
    return true;
}

/* MPI_Pack need not know such memory. */
static bool is_packed_from_device(const mpiox_mpi_call *call)
{
    mpiox_device device;
    MPI_Aint lb = 0, extent = 0;
    return mpiox_memory_any(mpiox_now()) && PMPI_Type_get_true_extent(call->datatype, &lb, &extent) == MPI_SUCCESS &&
           mpiox_memory_find((const void *)((uintptr_t)call->buffer + (uintptr_t)lb), &device);
}

static void pack_memory(const mpiox_mpi_call *call, mpiox_prepared *out)
{
    mpiox_request *request = &out->request;
    MPI_Count size = 0;

    PMPI_Type_size_x(call->datatype, &size);
    if (size > 0 && call->count > INT64_MAX / size) {
        mpiox_mpi_problem(&request->local_error, MPI_ERR_COUNT, "count times datatype size is too large");
        return;
    }
    request->length = size * call->count;
    request->buffer = out->packed = malloc((size_t)request->length + 1);
    out->user_buffer = call->buffer;
    out->user_count = call->count;
    /* The program may free its own at once. A duplicate would run the program's attribute callbacks. */
    if (PMPI_Type_contiguous(1, call->datatype, &out->user_type) != MPI_SUCCESS ||
        PMPI_Type_commit(&out->user_type) != MPI_SUCCESS)
        out->user_type = MPI_DATATYPE_NULL;
    if (out->packed == NULL || out->user_type == MPI_DATATYPE_NULL)
        mpiox_error_set(&request->local_error, MPIOX_E_NOMEM, 0, -1, request->length, "packing memory");
    else if (is_packed_from_device(call))
        mpiox_mpi_problem(&request->local_error, MPI_ERR_TYPE, "datatype is nested too deeply for memory of a GPU");
    else if (!pack(out, false))
        mpiox_mpi_problem(&request->local_error, MPI_ERR_TYPE, "datatype that can neither be described nor packed");
}

/* Elements of a predefined type: one run of bytes. */
static void describe_run(const mpiox_mpi_call *call, int64_t element_bytes, mpiox_request *request)
{
    if (call->count > INT64_MAX / element_bytes) {
        mpiox_mpi_problem(&request->local_error, MPI_ERR_COUNT, "count times datatype size is too large");
        return;
    }
    request->length = element_bytes * (int64_t)call->count;
    request->buffer = call->buffer;
    if (request->buffer == NULL && request->length > 0)
        mpiox_mpi_problem(&request->local_error, MPI_ERR_BUFFER, "no buffer");
}

/* Data bytes of the call; problems go to request->local_error. */
static void describe_memory(const mpiox_mpi_call *call, mpiox_prepared *out)
{
    mpiox_request *request = &out->request;
    mpiox_typemap **memory = &out->memory;
    int64_t size;
    int code = mpiox_typemap_from_datatype(call->datatype, memory);

    if (code == MPIOX_E_NOMEM) {
        mpiox_error_set(&request->local_error, code, 0, -1, -1, "datatype");
        return;
    }
    if (code != MPIOX_OK) {
        *memory = NULL;
        pack_memory(call, out);
        return;
    }
    size = mpiox_typemap_size(*memory);
    if (size > 0 && call->count > INT64_MAX / size) {
        mpiox_mpi_problem(&request->local_error, MPI_ERR_COUNT, "count times datatype size is too large");
        return;
    }
    request->length = size * (int64_t)call->count;
    request->buffer = call->buffer;
    request->memory = *memory;
    if (mpiox_typemap_is_contiguous(*memory)) {
        request->buffer = (void *)((uintptr_t)call->buffer + (uintptr_t)mpiox_typemap_true_lb(*memory));
        request->memory = NULL;
        if (request->buffer == NULL && request->length > 0)
            mpiox_mpi_problem(&request->local_error, MPI_ERR_BUFFER, "no buffer");
    }
}

/* ---- the place --------------------------------------------------------------------------------------------------- */

/* Stream position of an access at `offset` etypes. False: a problem in request->local_error. */
static bool place(const mpiox_handle *handle, MPI_Offset offset, mpiox_request *request)
{
    if (offset < 0 || offset > INT64_MAX / handle->etype_bytes)
        mpiox_mpi_problem(&request->local_error, MPI_ERR_ARG, "bad offset");
    else if (request->length > INT64_MAX - offset * handle->etype_bytes)
        mpiox_mpi_problem(&request->local_error, MPI_ERR_ARG, "offset plus count is too large");
    else if (WHOLE_ETYPES && request->length % handle->etype_bytes != 0)
        mpiox_mpi_problem(&request->local_error, MPI_ERR_IO, "not a whole number of etypes");
    else
        request->position = offset * handle->etype_bytes;
    return request->local_error.code == MPIOX_OK;
}

/* Use and advance the individual file pointer, in one critical section, so that two threads never get the same place.
 */
static void place_at_pointer(mpiox_handle *handle, mpiox_prepared *out)
{
    MPI_Offset offset = 0;
    int code;

    mpiox_mpi_pointer_lock(handle);
    code = mpiox_mpi_pointer_get(handle, &offset);
    if (code != MPI_SUCCESS) {
        mpiox_mpi_problem(&out->request.local_error, code, "MPI_File_get_position");
    } else if (place(handle, offset, &out->request)) {
        out->pointer_from = offset;
        out->pointer_to = offset + out->request.length / handle->etype_bytes;
        mpiox_mpi_pointer_set(handle, out->pointer_to);
    }
    mpiox_mpi_pointer_unlock(handle);
}

/* Nothing yet. All but the text of the error, which is most of it. */
static void begin(mpiox_prepared *out, bool write)
{
    mpiox_request *request = &out->request;

    memset(request, 0, offsetof(mpiox_request, local_error));
    mpiox_error_clear(&request->local_error);
    request->write = write;
    out->memory = NULL;
    out->packed = NULL;
    out->user_buffer = NULL;
    out->user_type = MPI_DATATYPE_NULL;
    out->user_count = 0;
    out->pointer_from = out->pointer_to = -1;
}

void mpiox_mpi_prepare(mpiox_handle *handle, const mpiox_mpi_call *call, mpiox_prepared *out)
{
    mpiox_request *request = &out->request;
    int64_t plain = 0;

    begin(out, call->write);
    if (call->collective && handle->split.active)
        mpiox_mpi_problem(&request->local_error, MPIOX_ERR_SPLIT, "a split collective is under way");
    else if (call->count < 0)
        mpiox_mpi_problem(&request->local_error, MPI_ERR_COUNT, "bad count");
    else if (call->datatype == MPI_DATATYPE_NULL)
        mpiox_mpi_problem(&request->local_error, MPI_ERR_TYPE, "no datatype");
    else if ((plain = mpiox_datatype_plain_bytes(call->datatype)) == 0 && !mpiox_datatype_is_committed(call->datatype))
        mpiox_mpi_problem(&request->local_error, MPI_ERR_TYPE, "datatype is not committed");
    else if (!handle->has_view) /* every rank then hands the call to PMPI */
        mpiox_error_set(&request->local_error, MPIOX_E_UNSUPPORTED, 0, -1, -1, "view");
    else if (plain > 0)
        describe_run(call, plain, request);
    else
        describe_memory(call, out);
    if (request->local_error.code == MPIOX_OK && call->positioning == MPIOX_INDIVIDUAL_POINTER)
        place_at_pointer(handle, out);
    else if (request->local_error.code == MPIOX_OK) /* at the shared file pointer: checked here, placed afterwards */
        place(handle, call->offset, request);
    if (request->local_error.code != MPIOX_OK) {
        request->length = 0;
        request->local_error.rank = handle->rank;
    }
}

void mpiox_mpi_prepare_undo(mpiox_handle *handle, const mpiox_prepared *prepared)
{
    MPI_Offset now;

    if (prepared->pointer_to < 0)
        return;
    mpiox_mpi_pointer_lock(handle);
    if (mpiox_mpi_pointer_get(handle, &now) == MPI_SUCCESS && now == prepared->pointer_to)
        mpiox_mpi_pointer_set(handle, prepared->pointer_from);
    mpiox_mpi_pointer_unlock(handle);
}

void mpiox_mpi_prepare_release(mpiox_prepared *prepared)
{
    mpiox_typemap_free(prepared->memory);
    if (prepared->packed != NULL && prepared->user_type != MPI_DATATYPE_NULL)
        PMPI_Type_free(&prepared->user_type);
    free(prepared->packed);
    prepared->memory = NULL;
    prepared->packed = NULL;
}

void mpiox_mpi_prepare_finish(mpiox_prepared *prepared)
{
    if (prepared->packed != NULL && !prepared->request.write)
        pack(prepared, true);
}

void mpiox_mpi_fill_status(MPI_Status *status, int64_t bytes)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
    PMPI_Status_set_cancelled(status, 0);
}
