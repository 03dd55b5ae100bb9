/*
 * mpiox_mpi_access.c - how a data access goes through the library.
 *
 * All data access calls of MPI take the same steps, whatever their positioning (explicit offset, individual or shared
 * file pointer), synchronism (blocking, nonblocking, split) and coordination (independent, collective):
 *
 *   refuse    The access mode forbids the call.
 *   leave     The MPI library carries the call out. It gets the view and the file pointer first: hand_over().
 *   prepare   Check the arguments, describe the memory, find the place in the file (mpiox_mpi_prepare.c,
 *             mpiox_mpi_shared.c).
 *   access    The file (one rank) or its collectives (all ranks) move the data: perform().
 *   report    Unpack, fill the status, raise an error on the file's error handler.
 *
 * A nonblocking call leaves access and report to a worker thread and to the completion of the request
 * (mpiox_nonblocking.c). The begin of a split collective takes all steps and keeps the status for the end.
 * MPI orders the collectives of a file, so a blocking one first waits for the nonblocking ones.
 *
 * A nonblocking collective between nodes needs a thread that calls MPI. If the MPI library was initialised without
 * MPI_THREAD_MULTIPLE, each rank accesses its own part by itself instead, as OMPIO always does, and waits for no other
 * rank. For small pieces an exchange is faster: the MPI library gets the next views, and carries out such calls.
 */
#include "mpiox_mpi_access.h"

#include "mpiox_mpi_error.h"
#include "mpiox_mpi_pointer.h"
#include "mpiox_mpi_shared.h"
#include "mpiox_mpi_view.h"
#include "mpiox_nonblocking.h"
#include "mpiox_parts.h"

/* The access mode is the same on all ranks. */
static bool refused(mpiox_handle *handle, const mpiox_mpi_call *call, MPI_Status *status, int *result)
{
    if (!mpiox_handle_is_managed(handle) || !(handle->amode & (call->write ? MPI_MODE_RDONLY : MPI_MODE_WRONLY)))
        return false;
    mpiox_mpi_fill_status(status, 0);
    *result = call->write
                  ? mpiox_mpi_raise_problem(handle, MPI_ERR_READ_ONLY, "write to a file opened with MPI_MODE_RDONLY")
                  : mpiox_mpi_raise_problem(handle, MPI_ERR_ACCESS, "read of a file opened with MPI_MODE_WRONLY");
    return true;
}

/* The same on all ranks for a collective. A blocking one may still turn out to be for the MPI library. */
static bool takes_over(const mpiox_handle *handle, const mpiox_mpi_call *call, bool blocking)
{
    if (!mpiox_handle_is_managed(handle) || (!blocking && handle->waits_hidden))
        return false;
    if (call->collective && !blocking)
        return handle->all_ours && !handle->shares_views;
    if (call->positioning == MPIOX_SHARED_POINTER)
        return handle->all_ours;
    return call->collective || handle->has_view;
}

/* The MPI library has only the index of a container, which contains no data of the program. */
static bool nobody_can(mpiox_handle *handle, MPI_Status *status, int *result)
{
    if (!handle || !handle->opener)
        return false;
    mpiox_mpi_fill_status(status, 0);
    *result = mpiox_mpi_raise_problem(handle, MPI_ERR_UNSUPPORTED_OPERATION, handle->opener->no_access);
    return true;
}

/* This library does not know which bytes the MPI library moves: it counts the requested bytes. */
static void count_asked(mpiox_handle *handle, const mpiox_mpi_call *call)
{
    int64_t bytes;
    int size = 0;

    if (call->datatype == MPI_DATATYPE_NULL || PMPI_Type_size(call->datatype, &size) != MPI_SUCCESS || size < 0 ||
        call->count < 0 || __builtin_mul_overflow((int64_t)call->count, size, &bytes))
        bytes = 0;
    mpiox_handle_count(handle, call->write, bytes);
}

/* The MPI library is to carry the call out. */
static void hand_over(mpiox_handle *handle, const mpiox_mpi_call *call, bool blocking)
{
    mpiox_error deferred;

    if (!handle)
        return;
    const mpiox_route route = mpiox_handle_route(handle);
    mpiox_route_wait(&route);
    mpiox_handle_note_begin(handle, call->write);
    atomic_store_explicit(&handle->end_unknown[call->write], true, memory_order_relaxed);
    if (handle->forwarded && mpiox_forwarded_flush_barrier_alone(handle->forwarded, &deferred) != MPIOX_OK)
        mpiox_mpi_raise(handle, &deferred);
    if (handle->forwarded)
        mpiox_forwarded_bypass(handle->forwarded);
    if (handle->file && call->write)
        mpiox_file_unsettle(handle->file);
    if (call->positioning != MPIOX_SHARED_POINTER) { /* else the MPI library already has the pointer and the view */
        if (call->collective && blocking) {
            mpiox_nonblocking_drain(handle);
            mpiox_mpi_view_hand_over(handle);
        }
        mpiox_mpi_pointer_hand_over(handle);
    }
    atomic_fetch_add_explicit(&handle->native_calls, 1, memory_order_relaxed);
    count_asked(handle, call);
}

static void prepare(mpiox_handle *handle, const mpiox_mpi_call *call, mpiox_prepared *prepared)
{
    mpiox_mpi_prepare(handle, call, prepared);
    if (call->positioning != MPIOX_SHARED_POINTER)
        return;
    if (call->collective)
        mpiox_mpi_shared_reserve_ordered(handle, &prepared->request);
    else
        mpiox_mpi_shared_reserve(handle, &prepared->request);
}

/* Without shared memory collectives are the MPI library's. An ordered one, whose place is known by this library's
 * pointer, or one of a container, cannot be: then every rank accesses its own part, and the error is agreed. */
static int access_together(const mpiox_handle *handle, const mpiox_mpi_call *call, const mpiox_request *request,
                           mpiox_outcome *outcome)
{
    const mpiox_route route = mpiox_handle_route(handle);
    const int code = mpiox_route_collective(&route, request, false, outcome);
    if (code != MPIOX_E_UNSUPPORTED || outcome->error.code != MPIOX_OK ||
        (call->positioning != MPIOX_SHARED_POINTER && !handle->opener) ||
        mpiox_collective_has_memory(handle->collective))
        return code;
    *outcome = (mpiox_outcome){.bytes = 0, .error = request->local_error};
    if (outcome->error.code == MPIOX_OK)
        mpiox_route_access(&route, request, outcome);
    return mpiox_topology_agree_error(handle->file->topology, &outcome->error);
}

/* Access and report; *prepared is released. False: the call is for the MPI library (agreed by all
 * ranks, nothing has been done), which is too late for a nonblocking call and for one that has moved the shared file
 * pointer. */
static bool perform(mpiox_handle *handle, const mpiox_mpi_call *call, bool blocking, mpiox_prepared *prepared,
                    MPI_Status *status, int *result)
{
    const mpiox_request *request = &prepared->request;
    const mpiox_route route = mpiox_handle_route(handle);
    mpiox_outcome outcome;
    int code = request->local_error.code;
    const double begun = mpiox_handle_note_begin(handle, call->write);
    if (!call->collective)
        mpiox_route_wait(&route);
    if (call->collective)
        code = access_together(handle, call, request, &outcome);
    else if (code == MPIOX_OK)
        code = mpiox_route_access(&route, request, &outcome);
    else
        outcome = (mpiox_outcome){.bytes = 0, .error = request->local_error};
    mpiox_handle_note_end(handle, call->write, begun);
    mpiox_mpi_prepare_finish(prepared);
    mpiox_mpi_prepare_release(prepared);
    if (code == MPIOX_OK) {
        mpiox_handle_count(handle, call->write, outcome.bytes);
        mpiox_mpi_fill_status(status, outcome.bytes);
        *result = MPI_SUCCESS;
        return true;
    }
    mpiox_mpi_prepare_undo(handle, prepared);
    if (code == MPIOX_E_UNSUPPORTED && call->collective) {
        if (blocking && call->positioning != MPIOX_SHARED_POINTER)
            return false;
        mpiox_error_set(&outcome.error, code, 0, -1, -1, "collective with a view or memory type nested too deeply");
    }
    mpiox_handle_count(handle, call->write, call->collective ? 0 : outcome.bytes);
    mpiox_mpi_fill_status(status, call->collective ? 0 : outcome.bytes);
    *result = mpiox_mpi_raise(handle, &outcome.error);
    return true;
}

/* A blocking call, or the begin of a split collective, through all steps. */
static bool run_access(mpiox_handle *handle, const mpiox_mpi_call *call, MPI_Status *status, int *result)
{
    mpiox_prepared prepared;
    if (refused(handle, call, status, result))
        return true;
    if (takes_over(handle, call, true)) {
        if (call->collective)
            mpiox_nonblocking_drain(handle);
        prepare(handle, call, &prepared);
        if (perform(handle, call, true, &prepared, status, result)) {
            mpiox_parts_own();
            return true;
        }
    }
    if (nobody_can(handle, status, result))
        return true;
    hand_over(handle, call, true);
    return false;
}

bool mpiox_mpi_access(MPI_File fh, const mpiox_mpi_call *call, MPI_Status *status, int *result)
{
    return run_access(mpiox_handle_find(fh), call, status, result);
}

bool mpiox_mpi_access_begin(MPI_File fh, const mpiox_mpi_call *call, int *result)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_split split = {.active = true, .write = call->write, .positioning = call->positioning};
    if (run_access(handle, call, &split.status, result)) {
        if (*result == MPI_SUCCESS)
            handle->split = split;
        return true;
    }
    if (handle)
        handle->split.native = true;
    return false;
}

bool mpiox_mpi_access_end(MPI_File fh, bool write, mpiox_positioning positioning, MPI_Status *status, int *result)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    if (!mpiox_handle_is_managed(handle))
        return false;
    if (handle->split.native) {
        handle->split.native = false;
        return false;
    }
    if (!handle->split.active || handle->split.write != write || handle->split.positioning != positioning) {
        *result = mpiox_mpi_raise_problem(handle, MPIOX_ERR_SPLIT, "this split collective was not begun");
        return true;
    }
    handle->split.active = false;
    if (status != MPI_STATUS_IGNORE) {
        const int keep = status->MPI_ERROR; /* a call with one status leaves this field alone */
        *status = handle->split.status;
        status->MPI_ERROR = keep;
    }
    *result = MPI_SUCCESS;
    return true;
}

/* Does a nonblocking call run as the collective that it is? */
static bool runs_together(mpiox_handle *handle, const mpiox_mpi_call *call)
{
    if (!call->collective || mpiox_topology_background(handle->file->topology))
        return call->collective;
    handle->alone_was_dear |= !handle->opener && mpiox_file_view_is_fine(handle->file);
    return false;
}

bool mpiox_mpi_access_start(MPI_File fh, const mpiox_mpi_call *call, MPI_Request *request, int *result)
{
    mpiox_handle *handle = mpiox_handle_find(fh);
    mpiox_prepared prepared;
    if (refused(handle, call, MPI_STATUS_IGNORE, result))
        return true;
    if (!takes_over(handle, call, false)) {
        if (nobody_can(handle, MPI_STATUS_IGNORE, result))
            return true;
        hand_over(handle, call, false);
        return false;
    }
    const bool together = runs_together(handle, call);
    const mpiox_route route = mpiox_handle_route(handle);
    mpiox_mpi_call as_run = *call;
    if (!together)
        mpiox_route_wait(&route);
    prepare(handle, call, &prepared);
    as_run.collective = together;
    if (!together && prepared.request.local_error.code != MPIOX_OK) /* reported now, not by MPI_Wait */
        return perform(handle, &as_run, false, &prepared, MPI_STATUS_IGNORE, result);
    if (mpiox_nonblocking_start(handle, &prepared, together, request)) {
        atomic_fetch_add_explicit(&handle->nonblocking_calls, 1, memory_order_relaxed);
        mpiox_parts_own();
        *result = MPI_SUCCESS;
        return true;
    }
    if (together) { /* no thread or no request: this rank runs it now, unnoticed by the others */
        *request = MPI_REQUEST_NULL;
        mpiox_nonblocking_drain(handle);
        return perform(handle, call, false, &prepared, MPI_STATUS_IGNORE, result);
    }
    mpiox_mpi_prepare_undo(handle, &prepared);
    mpiox_mpi_prepare_release(&prepared);
    *result = mpiox_mpi_raise_problem(handle, MPI_ERR_NO_MEM, "no request for a nonblocking access");
    return true;
}
