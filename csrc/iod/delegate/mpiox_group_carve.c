/* mpiox_group_carve.c - see mpiox_group_carve.h. */
#include "mpiox_group_carve.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_delegate_process.h"
#include "mpiox_delegate_serve.h"

static struct carved { /* the delegate of this rank */
    bool started, in_process;
    mpiox_delegate_process process;
    mpiox_delegate_service service;
    mpiox_announcement said;
} carved;

static bool take(bool *taken, int32_t rank)
{
    const bool free_one = !taken[rank];

    taken[rank] = true;
    return free_one;
}

static int32_t choose_rank(const mpiox_group_plan *plan, int32_t delegate, bool *taken)
{
    const mpiox_topology *t = plan->topology;
    const int32_t node = mpiox_group_plan_node(plan, delegate);

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

int mpiox_group_carve_ranks(const mpiox_group_plan *plan, int32_t *out)
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

int mpiox_group_carve_start(const mpiox_group_plan *plan, int32_t index, mpiox_announcement *said)
{
    mpiox_delegate_orders orders = mpiox_group_plan_orders(plan, index, "split");

    orders.node = plan->topology->node;
    orders.speaker = mpiox_delegate_speaker_self();
    memset(&carved, 0, sizeof carved);
    if (mpiox_delegate_process_start(&orders, plan->seconds, &carved.process, said) != MPIOX_OK) {
        carved.in_process = true;
        mpiox_delegate_begin(&orders, &carved.service, said);
    }
    carved.started = said->code == MPIOX_OK;
    carved.said = *said;
    return said->code;
}

static void await_process(void)
{
    const struct timespec step = {.tv_nsec = 5 * 1000000};
    int status = 0, flag;

    while (!mpiox_delegate_process_has_ended(&carved.process, &status)) {
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        nanosleep(&step, NULL);
    }
}

void mpiox_group_carve_serve(bool go)
{
    if (!carved.started)
        return;
    carved.started = false;
    if (!carved.in_process) {
        mpiox_delegate_process_release(&carved.process, go);
        await_process();
        return;
    }
    if (go) {
        mpiox_delegate_seal(&carved.service, &carved.said);
        mpiox_delegate_serve(&carved.service);
    }
    mpiox_delegate_end(&carved.service);
}
