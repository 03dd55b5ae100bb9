/* mpiox_service_process.c - see mpiox_service_process.h. */
#include "mpiox_service_process.h"

#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

#include "mpiox_print.h"
#include "mpiox_process_child.h"
#include "mpiox_wait.h"

typedef struct started {
    mpiox_process_child child;
    int32_t delegate;
} started;

static started *own;
static int32_t own_count;

const char *mpiox_service_process_refusal(void)
{
    char path[PATH_MAX];
    mpiox_error error;

    if (mpiox_process_executable(path, sizeof path, &error) == MPIOX_OK)
        return NULL;
    return "bin/mpiio-ext-delegate is missing beside the library";
}

int mpiox_service_process_start(const mpiox_service_plan *plan, mpiox_announcement *announced)
{
    own_count = 0;
    own = calloc((size_t)plan->count, sizeof *own);
    for (int32_t i = 0; i < plan->count; i++) {
        if (mpiox_service_plan_rank(plan, i, false) != plan->topology->rank)
            continue;
        if (own == NULL)
            return announced[i].code = mpiox_error_set(&announced[i].error, MPIOX_E_NOMEM, 0, -1, -1,
                                                       "starting a delegate's process");
        mpiox_process_orders orders = mpiox_service_plan_orders(plan, i, "process");

        orders.launcher_id = mpiox_process_launcher_id_self();
        if (mpiox_process_child_start(&orders, true, plan->seconds, &own[own_count].child, &announced[i]) != MPIOX_OK)
            return announced[i].code;
        own[own_count++].delegate = i;
    }
    return MPIOX_OK;
}

static void forget(void)
{
    free(own);
    own = NULL;
    own_count = 0;
}

void mpiox_service_process_release(bool go)
{
    for (int32_t i = 0; i < own_count; i++)
        mpiox_process_child_release(&own[i].child, go);
    if (!go)
        forget();
}

/* If this process could not map its memory, only its supervisor can rescue it. */
static bool is_there(mpiox_process *delegate)
{
    return delegate->local ? mpiox_process_is_serving(delegate) : kill((pid_t)delegate->pid, 0) == 0;
}

static void await_one(mpiox_process *delegate, int32_t report_s)
{
    const double begin = mpiox_now();
    mpiox_backoff backoff = {0};
    bool reported = report_s <= 0;
    int flag = 0;

    while (is_there(delegate)) {
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        mpiox_wait_backoff(&backoff);
        if (reported || mpiox_now() - begin < report_s)
            continue;
        reported = true;
        mpiox_print(
            "mpiio_ext: MPI_Finalize waits for I/O delegate %d (process %lld on %s), which writes closed files, "
            "or is stopped: mpiio-ext delegates status\n",
            (int)delegate->index, (long long)delegate->pid, delegate->host);
    }
}

void mpiox_service_process_await(mpiox_process *delegates, int32_t report_s)
{
    for (int32_t i = 0; i < own_count; i++)
        await_one(&delegates[own[i].delegate], report_s);
    forget();
}
