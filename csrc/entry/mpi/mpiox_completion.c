/*
 * mpiox_completion.c - MPI_Wait, MPI_Test and their kin, as their MPI namesakes. They go straight to PMPI while no
 * nonblocking data access of this library exists; that costs one load.
 *
 * Each wrapper first completes the requests whose access is done. A wrapper that waits also waits for the accesses of
 * this library, asleep on a futex, so PMPI never spins on a request that only this library can complete. Then PMPI
 * does the rest. Errors are returned as MPI requires: for a single request by the call, for several in the statuses and
 * as MPI_ERR_IN_STATUS. Each error has been through its file's error handler.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_handlers.h"
#include "mpiox_nonblocking.h"
#include "mpiox_wait.h"

/* Before the PMPI call: complete finished accesses, collect the errors; inspect: the requests stay as they are. */
static void begin(bool inspect)
{
    mpiox_nonblocking_complete_finished();
    mpiox_nonblocking_errors_begin(inspect);
}

/* After the PMPI call on one request. */
static int end(MPI_Request completed, int result)
{
    const int error = mpiox_nonblocking_error_of(completed);
    mpiox_nonblocking_errors_end(false);
    return error != MPI_SUCCESS ? error : result;
}

static int end_inspect(int result)
{
    mpiox_nonblocking_errors_end(true);
    return result;
}

/* ---- one request ------------------------------------------------------------------------------------------------- */

int mpiox_wait(MPI_Request *request, MPI_Status *status)
{
    if (!mpiox_nonblocking_any() || !request)
        return PMPI_Wait(request, status);
    const MPI_Request before = *request;
    mpiox_nonblocking_wait(before);
    begin(false);
    return end(before, PMPI_Wait(request, status));
}

int mpiox_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (!mpiox_nonblocking_any() || !request)
        return PMPI_Test(request, flag, status);
    const MPI_Request before = *request;
    mpiox_nonblocking_start_queued(before);
    begin(false);
    return end(before, PMPI_Test(request, flag, status));
}

int mpiox_request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (!mpiox_nonblocking_any())
        return PMPI_Request_get_status(request, flag, status);
    mpiox_nonblocking_start_queued(request);
    begin(true);
    return end_inspect(PMPI_Request_get_status(request, flag, status));
}

#if MPI_VERSION >= 5
int mpiox_request_get_status_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    begin(true);
    return end_inspect(PMPI_Request_get_status_all(count, requests, flag, statuses));
}

int mpiox_request_get_status_any(int count, const MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    begin(true);
    return end_inspect(PMPI_Request_get_status_any(count, requests, index, flag, status));
}

int mpiox_request_get_status_some(int incount, const MPI_Request *requests, int *outcount, int *indices,
                                  MPI_Status *statuses)
{
    begin(true);
    return end_inspect(PMPI_Request_get_status_some(incount, requests, outcount, indices, statuses));
}
#endif

/* ---- several ----------------------------------------------------------------------------------------------------- */

/* The handles before PMPI frees some. NULL: none of them can be a request of this library, or there is no memory
 * (then the MPI library returns the errors). */
static MPI_Request *copy_of(int count, const MPI_Request *requests)
{
    if (!mpiox_nonblocking_any() || count <= 0 || !requests)
        return NULL;
    MPI_Request *copy = malloc(sizeof *copy * (size_t)count);
    if (copy)
        memcpy(copy, requests, sizeof *copy * (size_t)count);
    return copy;
}

/* The first request whose access is not done; count: there is none. */
static int first_pending(int count, const MPI_Request *requests)
{
    int i = 0;
    while (i < count && !mpiox_nonblocking_is_pending(requests[i]))
        i++;
    return i;
}

/* Run one queued access in this thread. False: there is none. */
static bool run_one_here(int count, const MPI_Request *requests)
{
    for (int i = 0; i < count; i++) {
        if (mpiox_nonblocking_run_here(requests[i]))
            return true;
    }
    return false;
}

/* The program tests and does not wait: the first access that is not done starts now, with those queued behind it. */
static void start_queued(int count, const MPI_Request *requests)
{
    if (!mpiox_nonblocking_any() || !requests)
        return;
    const int i = first_pending(count, requests);
    if (i < count)
        mpiox_nonblocking_start_queued(requests[i]);
}

/* After the PMPI call on n completed requests: request i is before[indices ? indices[i] : i], with statuses[i]. */
static int end_several(MPI_Request *before, int n, const int *indices, MPI_Status *statuses, int result)
{
    bool has_codes = result != MPI_SUCCESS; /* then every status has its MPI_ERROR */
    for (int i = 0; i < n; i++) {
        const int code = mpiox_nonblocking_error_of(before[indices ? indices[i] : i]);
        if (code == MPI_SUCCESS)
            continue;
        for (int j = 0; !has_codes && statuses != MPI_STATUSES_IGNORE && j < n; j++)
            statuses[j].MPI_ERROR = MPI_SUCCESS;
        has_codes = true;
        result = MPI_ERR_IN_STATUS;
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[i].MPI_ERROR = code;
    }
    mpiox_nonblocking_errors_end(false);
    free(before);
    return result;
}

int mpiox_waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    MPI_Request *before = copy_of(count, requests);
    if (!before)
        return PMPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; i++)
        mpiox_nonblocking_wait(requests[i]);
    begin(false);
    return end_several(before, count, NULL, statuses, PMPI_Waitall(count, requests, statuses));
}

int mpiox_testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    MPI_Request *before = copy_of(count, requests);
    if (!before)
        return PMPI_Testall(count, requests, flag, statuses);
    start_queued(count, requests);
    begin(false);
    const int result = PMPI_Testall(count, requests, flag, statuses);
    return end_several(before, *flag ? count : 0, NULL, statuses, result);
}

static int test_any(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    MPI_Request *before = copy_of(count, requests);
    if (!before)
        return PMPI_Testany(count, requests, index, flag, status);
    begin(false);
    const int result = PMPI_Testany(count, requests, index, flag, status);
    const MPI_Request completed = *flag && *index != MPI_UNDEFINED ? before[*index] : MPI_REQUEST_NULL;
    free(before);
    return end(completed, result);
}

int mpiox_testany(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    start_queued(count, requests);
    return test_any(count, requests, index, flag, status);
}

/* PMPI waits only once no access is pending: its wait would not see an access that finishes meanwhile. */
int mpiox_waitany(int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    mpiox_backoff backoff = {0};
    bool again = mpiox_nonblocking_any() && count > 0 && requests;
    while (again) {
        int flag = 0;
        const bool pending = first_pending(count, requests) < count;
        const int result = test_any(count, requests, index, &flag, status);
        if (flag || result != MPI_SUCCESS)
            return result;
        again = pending;
        if (pending && !run_one_here(count, requests))
            mpiox_wait_backoff(&backoff);
    }
    return PMPI_Waitany(count, requests, index, status);
}

static int test_some(int incount, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
    MPI_Request *before = copy_of(incount, requests);
    if (!before)
        return PMPI_Testsome(incount, requests, outcount, indices, statuses);
    begin(false);
    const int result = PMPI_Testsome(incount, requests, outcount, indices, statuses);
    return end_several(before, *outcount != MPI_UNDEFINED ? *outcount : 0, indices, statuses, result);
}

int mpiox_testsome(int incount, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
    start_queued(incount, requests);
    return test_some(incount, requests, outcount, indices, statuses);
}

int mpiox_waitsome(int incount, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
    mpiox_backoff backoff = {0};
    bool again = mpiox_nonblocking_any() && incount > 0 && requests;
    while (again) {
        const bool pending = first_pending(incount, requests) < incount;
        const int result = test_some(incount, requests, outcount, indices, statuses);
        if (*outcount != 0 || result != MPI_SUCCESS)
            return result;
        again = pending;
        if (pending && !run_one_here(incount, requests))
            mpiox_wait_backoff(&backoff);
    }
    return PMPI_Waitsome(incount, requests, outcount, indices, statuses);
}
