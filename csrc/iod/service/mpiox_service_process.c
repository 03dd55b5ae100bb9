/* mpiox_service_process.c - see mpiox_service_process.h. */
#include "mpiox_service_process.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include "mpiox_process_child.h"
#include "mpiox_wait.h"

static mpiox_process_child *own;
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
        if (mpiox_process_child_start(&orders, plan->seconds, &own[own_count], &announced[i]) != MPIOX_OK)
            return announced[i].code;
        own_count++;
    }
    return MPIOX_OK;
}

void mpiox_service_process_release(bool go)
{
    for (int32_t i = 0; i < own_count; i++)
        mpiox_process_child_release(&own[i], go);
}

void mpiox_service_process_await(void)
{
    mpiox_backoff backoff = {0};
    int flag = 0, status = 0;

    for (int32_t i = 0; i < own_count; i++) {
        while (!mpiox_process_child_has_ended(&own[i], &status)) {
            PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            mpiox_wait_backoff(&backoff);
        }
    }
    free(own);
    own = NULL;
    own_count = 0;
}
