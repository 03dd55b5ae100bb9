/*
 * mpiox_trace_mpi_requests.c - nonblocking accesses: the functions of mpiox_trace_mpi.h about requests.
 *
 * Problem.   A nonblocking access ends in any of eight functions, which programs mostly call for messages.
 * Algorithm. A list has all accesses that have been started. A wait or test with one of them among its requests is a
 *            call in which accesses may be made; when it returns, every access that has changed its handle is complete.
 */
#include <string.h>

#include "mpiox_trace_mpi.h"
#include "mpiox_trace_mpi_world.h"
#include "mpiox_trace_requests.h"
#include "mpiox_trace_sink.h"
#include "mpiox_trace_system.h"

void mpiox_trace_mpi_request(mpiox_tracefile_record *call, MPI_Request request, int result)
{
    if (result != MPI_SUCCESS)
        return;
    if (request == mpiox_trace_mpi_no_request()) {
        mpiox_trace_extra(call, MPIOX_KEY_COMPLETE, 1);
        return;
    }
    const int64_t number = mpiox_trace_request_add(MPIOX_TRACE_HANDLE(request), call->handle, (int32_t)call->file);
    if (number > 0)
        mpiox_trace_extra(call, MPIOX_KEY_REQUEST, number);
}

/* Room for one more. Without memory for more the others are completed without a record of their own. */
static bool has_room(mpiox_trace_waiting *waiting)
{
    if (waiting->n < waiting->capacity)
        return true;
    const int64_t bytes = (int64_t)waiting->capacity * (int64_t)sizeof *waiting->noted;
    mpiox_trace_noted *more = mpiox_trace_map(-1, 0, 2 * bytes);
    if (more == NULL)
        return false;
    memcpy(more, waiting->noted, (size_t)bytes);
    if (waiting->noted != waiting->few)
        mpiox_trace_unmap(waiting->noted, bytes);
    waiting->noted = more;
    waiting->capacity *= 2;
    return true;
}

static void forget(mpiox_trace_waiting *waiting)
{
    if (waiting->noted != waiting->few)
        mpiox_trace_unmap(waiting->noted, (int64_t)waiting->capacity * (int64_t)sizeof *waiting->noted);
}

bool mpiox_trace_mpi_wait(mpiox_trace_waiting *waiting, int operation, int count, const MPI_Request *requests)
{
    if (!mpiox_trace_enabled() || !mpiox_trace_requests_any() || requests == NULL)
        return false;
    waiting->requests = requests;
    waiting->n = 0;
    waiting->capacity = MPIOX_TRACE_REQUESTS;
    waiting->noted = waiting->few;
    for (int i = 0; i < count; i++) {
        const int64_t request = MPIOX_TRACE_HANDLE(requests[i]);

        if (mpiox_trace_request_is(request)) {
            if (!has_room(waiting))
                break;
            waiting->noted[waiting->n++] = (mpiox_trace_noted){.index = i, .request = request};
        }
    }
    if (waiting->n > 0)
        mpiox_trace_enter(&waiting->call, operation, MPIOX_TRACEFILE_MPI, 0);
    return waiting->n > 0;
}

void mpiox_trace_mpi_waited(mpiox_trace_waiting *waiting, int result)
{
    mpiox_tracefile_record *call = &waiting->call;
    bool first = true;

    mpiox_trace_stop(call);
    for (int i = 0; i < waiting->n; i++) {
        const mpiox_trace_noted *noted = &waiting->noted[i];
        mpiox_trace_request found;

        if (MPIOX_TRACE_HANDLE(waiting->requests[noted->index]) == noted->request ||
            !mpiox_trace_request_take(noted->request, &found))
            continue;
        call->handle = found.handle;
        call->file = found.file;
        call->closes = first;
        call->extras = 0;
        mpiox_trace_extra(call, MPIOX_KEY_REQUEST, found.number);
        mpiox_trace_mpi_leave(call, result);
        first = false;
    }
    if (first)
        mpiox_trace_leave_without(call);
    forget(waiting);
}

void mpiox_trace_mpi_probed(mpiox_trace_waiting *waiting, int result, bool found)
{
    mpiox_tracefile_record *call = &waiting->call;

    mpiox_trace_stop(call);
    forget(waiting);
    if (!found || result != MPI_SUCCESS) {
        mpiox_trace_leave_without(call);
        return;
    }
    mpiox_trace_extra(call, MPIOX_KEY_VALUE, 1);
    mpiox_trace_mpi_leave(call, result);
}

/* The access goes on; its number is free for another one. */
WRAP(int, MPI_Request_free, (MPI_Request * request))
{
    mpiox_trace_request found;
    const int64_t freed = mpiox_trace_enabled() && request != NULL ? MPIOX_TRACE_HANDLE(*request) : 0;
    const int result = NEXT(MPI_Request_free)(request);

    if (freed != 0 && result == MPI_SUCCESS && mpiox_trace_requests_any())
        (void)mpiox_trace_request_take(freed, &found);
    return result;
}
