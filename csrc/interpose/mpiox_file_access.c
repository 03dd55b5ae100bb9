/*
 * mpiox_file_access.c - collective data access: checks, file positions, status. See mpiox_file_access.h.
 *
 * Error classes follow the MPI library the program runs on (tried with Open MPI 4.1 and MPICH 5): bad counts, types and
 * buffers have their own classes, a second split collective is MPI_ERR_OTHER to Open MPI and MPI_ERR_IO to MPICH, and a
 * transfer that is no whole number of etypes is MPI_ERR_IO to MPICH and allowed by Open MPI. The individual file
 * pointer moves by what was asked for, also where a read met the end of the file, as MPI defines it (both libraries do so,
 * but MPICH on a single rank stops at the end of the file).
 */
#include "mpiox_file_access.h"

#include <string.h>

#include "mpiox_access_mpi.h"
#include "mpiox_datatype.h"
#include "mpiox_file.h"
#include "mpiox_file_error.h"

#ifdef OPEN_MPI
#define ERR_SPLIT MPI_ERR_OTHER
#define WHOLE_ETYPES false
#else
#define ERR_SPLIT MPI_ERR_IO
#define WHOLE_ETYPES true
#endif

static void mpi_problem(mpiox_error *error, int error_class, const char *what)
{
    mpiox_error_set(error, MPIOX_E_MPI, 0, -1, -1, what);
    error->mpi_code = error_class;
}

/* The same answer on all ranks. */
static bool is_ours(const mpiox_file *file, bool write)
{
    if (file == NULL || file->exchange == NULL || file->atomic)
        return false;
    return (write ? file->hints.cb_write : file->hints.cb_read) != MPIOX_OFF;
}

/* Data bytes of the call; problems go to request->local_error. */
static void describe_memory(const mpiox_file_call *call, mpiox_request *request, mpiox_access **memory)
{
    int64_t size;
    int code = mpiox_access_from_datatype(call->datatype, memory);

    if (code != MPIOX_OK) { /* agreed on in the exchange: then every rank hands the call to PMPI */
        code = code == MPIOX_E_NOMEM ? code : MPIOX_E_UNSUPPORTED;
        mpiox_error_set(&request->local_error, code, 0, -1, -1, "datatype");
        return;
    }
    size = mpiox_access_size(*memory);
    if (size > 0 && call->count > INT64_MAX / size) {
        mpi_problem(&request->local_error, MPI_ERR_COUNT, "count times datatype size is too large");
        return;
    }
    request->length = size * (int64_t)call->count;
    request->buffer = call->buffer;
    request->memory = *memory;
    if (mpiox_access_is_contiguous(*memory)) {
        request->buffer = (void *)((uintptr_t)call->buffer + (uintptr_t)mpiox_access_true_lb(*memory));
        request->memory = NULL;
        if (request->buffer == NULL && request->length > 0)
            mpi_problem(&request->local_error, MPI_ERR_BUFFER, "no buffer");
    }
}

/* Stream position of the call; *etypes is where the individual pointer stands after it. */
static void find_position(mpiox_file *file, const mpiox_file_call *call, mpiox_request *request, MPI_Offset *etypes)
{
    MPI_Offset offset = call->offset;

    *etypes = -1;
    if (!call->explicit_offset) {
        int code = PMPI_File_get_position(file->handle, &offset);

        if (code != MPI_SUCCESS) {
            mpi_problem(&request->local_error, code, "MPI_File_get_position");
            return;
        }
    }
    if (offset < 0 || offset > INT64_MAX / file->etype_bytes) {
        mpi_problem(&request->local_error, MPI_ERR_ARG, "bad offset");
        return;
    }
    request->position = offset * file->etype_bytes;
    if (request->length > INT64_MAX - request->position) {
        mpi_problem(&request->local_error, MPI_ERR_ARG, "offset plus count is too large");
        return;
    }
    if (WHOLE_ETYPES && request->length % file->etype_bytes != 0) {
        mpi_problem(&request->local_error, MPI_ERR_IO, "not a whole number of etypes");
        return;
    }
    if (!call->explicit_offset)
        *etypes = offset + request->length / file->etype_bytes;
}

static void prepare(mpiox_file *file, const mpiox_file_call *call, mpiox_request *request, mpiox_access **memory,
                    MPI_Offset *etypes)
{
    memset(request, 0, sizeof *request);
    request->write = call->write;
    *etypes = -1;
    if (file->split.active)
        mpi_problem(&request->local_error, ERR_SPLIT, "a split collective is under way");
    else if (call->count < 0)
        mpi_problem(&request->local_error, MPI_ERR_COUNT, "bad count");
    else if (call->datatype == MPI_DATATYPE_NULL)
        mpi_problem(&request->local_error, MPI_ERR_TYPE, "no datatype");
    else if (!mpiox_datatype_is_committed(call->datatype))
        mpi_problem(&request->local_error, MPI_ERR_TYPE, "datatype is not committed");
    else if (!file->has_view) /* every rank then hands the call to PMPI */
        mpiox_error_set(&request->local_error, MPIOX_E_UNSUPPORTED, 0, -1, -1, "view");
    else
        describe_memory(call, request, memory);
    if (request->local_error.code == MPIOX_OK)
        find_position(file, call, request, etypes);
    if (request->local_error.code != MPIOX_OK) {
        request->length = 0;
        request->local_error.rank = file->rank;
    }
}

static void fill_status(MPI_Status *status, int64_t bytes)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
    PMPI_Status_set_cancelled(status, 0);
}

/* The exchange itself. False: native. */
static bool carry_out(mpiox_file *file, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_request request;
    mpiox_outcome outcome;
    mpiox_access *memory = NULL;
    MPI_Offset etypes;
    int code;

    memset(&outcome, 0, sizeof outcome);
    prepare(file, call, &request, &memory, &etypes);
    code = mpiox_exchange_access(file->exchange, &request, &outcome);
    mpiox_access_free(memory);
    if (code == MPIOX_E_UNSUPPORTED)
        return false;
    if (code != MPIOX_OK) {
        fill_status(status, 0);
        *result = mpiox_file_error_raise(file->handle, file->path, &outcome.error);
        return true;
    }
    fill_status(status, outcome.bytes);
    *result = etypes >= 0 && request.length > 0 ? PMPI_File_seek(file->handle, etypes, MPI_SEEK_SET) : MPI_SUCCESS;
    return true;
}

/* The access mode forbids the call. It is the same on all ranks, so that no exchange is needed for all to fail alike;
 * the MPI libraries themselves do not always tell every rank (OMPIO tells the aggregators only). */
static bool refused(mpiox_file *file, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_error error;

    if (!is_ours(file, call->write) || !(file->amode & (call->write ? MPI_MODE_RDONLY : MPI_MODE_WRONLY)))
        return false;
    mpi_problem(&error, call->write ? MPI_ERR_READ_ONLY : MPI_ERR_ACCESS,
                call->write ? "write to a file opened with MPI_MODE_RDONLY" : "read of a file opened with MPI_MODE_WRONLY");
    error.rank = file->rank;
    fill_status(status, 0);
    *result = mpiox_file_error_raise(file->handle, file->path, &error);
    return true;
}

bool mpiox_file_access(MPI_File fh, const mpiox_file_call *call, MPI_Status *status, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);

    if (refused(file, call, status, result))
        return true;
    if (is_ours(file, call->write) && carry_out(file, call, status, result))
        return true;
    if (file != NULL)
        atomic_fetch_add_explicit(&file->native_calls, 1, memory_order_relaxed);
    return false;
}

bool mpiox_file_access_begin(MPI_File fh, const mpiox_file_call *call, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_split split = {.active = true, .write = call->write, .at = call->explicit_offset};

    if (refused(file, call, MPI_STATUS_IGNORE, result))
        return true;
    if (is_ours(file, call->write)) {
        bool again = file->split.active;

        if (carry_out(file, call, &split.status, result)) {
            if (!again && *result == MPI_SUCCESS)
                file->split = split;
            return true;
        }
    }
    if (file != NULL)
        atomic_fetch_add_explicit(&file->native_calls, 1, memory_order_relaxed);
    return false;
}

bool mpiox_file_access_end(MPI_File fh, bool write, bool at, MPI_Status *status, int *result)
{
    mpiox_file *file = mpiox_file_find(fh);
    mpiox_error error;

    if (file == NULL || !file->split.active)
        return false; /* begun by the MPI library, or never begun: it knows */
    if (file->split.write != write || file->split.at != at) {
        mpi_problem(&error, ERR_SPLIT, "this split collective was not begun");
        error.rank = file->rank;
        *result = mpiox_file_error_raise(fh, file->path, &error);
        return true;
    }
    file->split.active = false;
    if (status != MPI_STATUS_IGNORE) {
        int keep = status->MPI_ERROR; /* a call with one status leaves this field alone */

        *status = file->split.status;
        status->MPI_ERROR = keep;
    }
    *result = MPI_SUCCESS;
    return true;
}
