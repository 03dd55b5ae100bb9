/* mpiox_service_split.c - see mpiox_service_split.h. */
#include "mpiox_service_split.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_process_child.h"
#include "mpiox_process_serve.h"

static struct own { /* the delegate of this rank */
    bool started, in_process;
    mpiox_process_child process;
    mpiox_process_instance instance;
    mpiox_announcement announced;
} own;

static bool take(bool *taken, int32_t rank)
{
    const bool free_one = !taken[rank];

    taken[rank] = true;
    return free_one;
}

static int32_t choose_rank(const mpiox_service_plan *plan, int32_t delegate, bool *taken)
{
    const mpiox_topology *t = plan->topology;
    const int32_t node = mpiox_service_plan_node(plan, delegate);

    for (int32_t k = t->node_start[node + 1] - 1; k >= t->node_start[node]; k--) {
        if (take(taken, t->node_ranks[k]))
            return t->node_ranks[k];
    }
    for (int32_t rank = t->size - 1; rank >= 0; rank--) {
        if (take(taken, rank))
            return rank;
    }
    return -1;
}

int mpiox_service_split_ranks(const mpiox_service_plan *plan, int32_t *out)
{
    bool *taken = calloc((size_t)plan->topology->size, sizeof *taken);

    if (taken == NULL || plan->count >= plan->topology->size) {
        free(taken);
        return plan->count >= plan->topology->size ? MPIOX_E_ARG : MPIOX_E_NOMEM;
    }
    for (int32_t i = 0; i < plan->count; i++)
        out[i] = choose_rank(plan, i, taken);
    free(taken);
    return MPIOX_OK;
}

int mpiox_service_split_start(const mpiox_service_plan *plan, int32_t index, mpiox_announcement *announced)
{
    mpiox_process_orders orders = mpiox_service_plan_orders(plan, index, "split");

    orders.node = plan->topology->node;
    orders.launcher_id = mpiox_process_launcher_id_self();
    memset(&own, 0, sizeof own);
    if (mpiox_process_child_start(&orders, false, plan->seconds, &own.process, announced) != MPIOX_OK) {
        own.in_process = true;
        mpiox_process_begin(&orders, &own.instance, announced);
    }
    own.started = announced->code == MPIOX_OK;
    own.announced = *announced;
    return announced->code;
}

static void await_process(void)
{
    const struct timespec step = {.tv_nsec = 5 * 1000000};
    int status = 0, flag;

    while (!mpiox_process_child_has_ended(&own.process, &status)) {
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        nanosleep(&step, NULL);
    }
}

void mpiox_service_split_serve(bool go)
{
    if (!own.started)
        return;
    own.started = false;
    if (!own.in_process) {
        mpiox_process_child_release(&own.process, go);
        await_process();
        return;
    }
    if (go) {
        mpiox_process_seal(&own.instance, &own.announced);
        mpiox_process_serve(&own.instance);
    }
    mpiox_process_end(&own.instance);
}
