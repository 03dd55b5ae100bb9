/*
 * mpiox_completion.c - see mpiox_completion.h.
 *
 * Each wrapper first completes what the workers have finished; those that wait also wait for ours, asleep on a futex, so
 * that PMPI never spins on a request that only this library can complete. Then PMPI does the rest. Errors of our requests
 * are returned as MPI says: by the call for a single request, in the statuses and as MPI_ERR_IN_STATUS for several; the
 * file's error handler has been called for each.
 */
#include "mpiox_completion.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_nonblocking.h"
#include "mpiox_wait.h"

/* ---- one request ------------------------------------------------------------------------------------------------- */

int mpiox_wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Request waited;
    int result, failure;

    if (!mpiox_nonblocking_any() || request == NULL)
        return PMPI_Wait(request, status);
    waited = *request;
    mpiox_nonblocking_await(waited);
    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(false);
    result = PMPI_Wait(request, status);
    failure = mpiox_nonblocking_failure(waited);
    mpiox_nonblocking_leave(false);
    return failure != MPI_SUCCESS ? failure : result;
}

int mpiox_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    MPI_Request tested;
    int result, failure;

    if (!mpiox_nonblocking_any() || request == NULL)
        return PMPI_Test(request, flag, status);
    tested = *request;
    mpiox_nonblocking_hurry(tested);
    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(false);
    result = PMPI_Test(request, flag, status);
    failure = mpiox_nonblocking_failure(tested);
    mpiox_nonblocking_leave(false);
    return failure != MPI_SUCCESS ? failure : result;
}

int mpiox_request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    int result;

    if (!mpiox_nonblocking_any())
        return PMPI_Request_get_status(request, flag, status);
    mpiox_nonblocking_hurry(request);
    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(true);
    result = PMPI_Request_get_status(request, flag, status);
    mpiox_nonblocking_leave(true);
    return result;
}

#if MPI_VERSION >= 5
extern int PMPI_Request_get_status_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses);
extern int PMPI_Request_get_status_any(int count, const MPI_Request *requests, int *index, int *flag,
                                       MPI_Status *status);
extern int PMPI_Request_get_status_some(int incount, const MPI_Request *requests, int *outcount, int *indices,
                                        MPI_Status *statuses);

int mpiox_request_get_status_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    int result;

    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(true);
    result = PMPI_Request_get_status_all(count, requests, flag, statuses);
    mpiox_nonblocking_leave(true);
    return result;
}

int mpiox_request_get_status_any(int count, const MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    int result;

    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(true);
    result = PMPI_Request_get_status_any(count, requests, index, flag, status);
    mpiox_nonblocking_leave(true);
    return result;
}

int mpiox_request_get_status_some(int incount, const MPI_Request *requests, int *outcount, int *indices,
                                  MPI_Status *statuses)
{
    int result;

    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(true);
    result = PMPI_Request_get_status_some(incount, requests, outcount, indices, statuses);
    mpiox_nonblocking_leave(true);
    return result;
}
#endif

/* ---- several ----------------------------------------------------------------------------------------------------- */

/* The handles before PMPI frees some; NULL when none of the file requests can be among them, or there is no memory (an
 * error is then the MPI library's to return). */
static MPI_Request *copy_of(int count, const MPI_Request *requests)
{
    MPI_Request *copy;

    if (!mpiox_nonblocking_any() || count <= 0 || requests == NULL)
        return NULL;
    copy = malloc(sizeof *copy * (size_t)count);
    if (copy != NULL)
        memcpy(copy, requests, sizeof *copy * (size_t)count);
    return copy;
}

static bool any_pending(int count, const MPI_Request *requests)
{
    for (int i = 0; i < count; i++) {
        if (mpiox_nonblocking_is_pending(requests[i]))
            return true;
    }
    return false;
}

/* Carry out one that may be carried out here. False: there is none. */
static bool help_one(int count, const MPI_Request *requests)
{
    for (int i = 0; i < count; i++) {
        if (mpiox_nonblocking_help(requests[i]))
            return true;
    }
    return false;
}

/* The program looks and does not wait: the first that is not done shall begin, and so do those behind it. */
static void hurry(int count, const MPI_Request *requests)
{
    int i = 0;

    while (i < count && !mpiox_nonblocking_is_pending(requests[i]))
        i++;
    if (i < count)
        mpiox_nonblocking_hurry(requests[i]);
}

/* Errors of ours among n completed requests: request i of them is before[indices ? indices[i] : i], its status
 * statuses[i]. */
static int failures_of(const MPI_Request *before, int n, const int *indices, MPI_Status *statuses, int result)
{
    bool others = result != MPI_SUCCESS; /* then every status has its MPI_ERROR */

    for (int i = 0; i < n; i++) {
        const int code = mpiox_nonblocking_failure(before[indices != NULL ? indices[i] : i]);

        if (code == MPI_SUCCESS)
            continue;
        for (int j = 0; !others && statuses != MPI_STATUSES_IGNORE && j < n; j++)
            statuses[j].MPI_ERROR = MPI_SUCCESS;
        others = true;
        result = MPI_ERR_IN_STATUS;
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[i].MPI_ERROR = code;
    }
    return result;
}

int mpiox_waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    MPI_Request *before = copy_of(count, requests);
    int result;

    if (before == NULL)
        return PMPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; i++)
        mpiox_nonblocking_await(requests[i]);
    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(false);
    result = PMPI_Waitall(count, requests, statuses);
    result = failures_of(before, count, NULL, statuses, result);
    mpiox_nonblocking_leave(false);
    free(before);
    return result;
}

int mpiox_testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    MPI_Request *before = copy_of(count, requests);
    int result;

    if (before == NULL)
        return PMPI_Testall(count, requests, flag, statuses);
    hurry(count, requests);
    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(false);
    result = PMPI_Testall(count, requests, flag, statuses);
    if (*flag)
        result = failures_of(before, count, NULL, statuses, result);
    mpiox_nonblocking_leave(false);
    free(before);
    return result;
}

static int test_any(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    MPI_Request *before = copy_of(count, requests);
    int result, failure = MPI_SUCCESS;

    if (before == NULL)
        return PMPI_Testany(count, requests, index, flag, status);
    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(false);
    result = PMPI_Testany(count, requests, index, flag, status);
    if (*flag && *index != MPI_UNDEFINED)
        failure = mpiox_nonblocking_failure(before[*index]);
    mpiox_nonblocking_leave(false);
    free(before);
    return failure != MPI_SUCCESS ? failure : result;
}

int mpiox_testany(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    if (mpiox_nonblocking_any() && requests != NULL)
        hurry(count, requests);
    return test_any(count, requests, index, flag, status);
}

/* PMPI may wait only once nothing of ours is under way: it could wait for one of ours that finishes meanwhile. */
int mpiox_waitany(int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    mpiox_backoff backoff = {0};

    while (mpiox_nonblocking_any() && count > 0 && any_pending(count, requests)) {
        int flag = 0;
        const int result = test_any(count, requests, index, &flag, status);

        if (flag || result != MPI_SUCCESS)
            return result;
        if (!help_one(count, requests))
            mpiox_wait_backoff(&backoff);
    }
    if (mpiox_nonblocking_any()) { /* all of ours are done: one test finds them, or PMPI waits for the others */
        int flag = 0;
        const int result = test_any(count, requests, index, &flag, status);

        if (flag || result != MPI_SUCCESS)
            return result;
    }
    return PMPI_Waitany(count, requests, index, status);
}

static int test_some(int incount, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
    MPI_Request *before = copy_of(incount, requests);
    int result;

    if (before == NULL)
        return PMPI_Testsome(incount, requests, outcount, indices, statuses);
    mpiox_nonblocking_progress();
    mpiox_nonblocking_enter(false);
    result = PMPI_Testsome(incount, requests, outcount, indices, statuses);
    if (*outcount != MPI_UNDEFINED)
        result = failures_of(before, *outcount, indices, statuses, result);
    mpiox_nonblocking_leave(false);
    free(before);
    return result;
}

int mpiox_testsome(int incount, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
    if (mpiox_nonblocking_any() && requests != NULL)
        hurry(incount, requests);
    return test_some(incount, requests, outcount, indices, statuses);
}

int mpiox_waitsome(int incount, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
    bool again = mpiox_nonblocking_any() && incount > 0;
    mpiox_backoff backoff = {0};

    while (again) {
        const bool pending = any_pending(incount, requests);
        const int result = test_some(incount, requests, outcount, indices, statuses);

        if (*outcount != 0 || result != MPI_SUCCESS)
            return result;
        again = pending;
        if (pending && !help_one(incount, requests))
            mpiox_wait_backoff(&backoff);
    }
    return PMPI_Waitsome(incount, requests, outcount, indices, statuses);
}
