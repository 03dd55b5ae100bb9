/*
 * mpiox_service_spawn.h - delegates that MPI_Comm_spawn starts: processes of their own, on chosen hosts.
 *
 * Problem.   A process that MPI has spawned is tied to the program: MPI_Finalize waits for the process, its death ends
 *            the job, and the program's own children do not get its slot.
 * Algorithm. Rank 0 spawns, alone. Each spawned process starts the delegate's process (mpiox_process_child.h), hands
 *            its announcement to rank 0, waits for the verdict, disconnects, leaves MPI and exits: a second after
 *            MPI_Init the launcher knows nothing of the delegates any more.
 * Hosts.     Delegate i is requested on the host of its node (mpiox_service_plan.h), or on those that the hint names,
 *            in turn. The delegate announces its real host, which determines its node.
 */
#ifndef MPIOX_SERVICE_SPAWN_H
#define MPIOX_SERVICE_SPAWN_H

#include "mpiox_service_call.h"
#include "mpiox_service_plan.h"

typedef struct mpiox_service_spawned { /* start from {.inter = MPI_COMM_NULL} */
    MPI_Comm inter;                    /* rank 0: to the spawned processes */
    mpiox_service_call call;           /* rank 0: their connections */
    int64_t *pids;                     /* rank 0: spawned processes on its host, [count]; owned */
    int32_t count;                     /* entries of `pids` */
} mpiox_service_spawned;

/* Can rank 0's MPI library spawn here? NULL, or why not. Local. */
const char *mpiox_service_spawn_refusal(void);
/* announced[]: of all delegates, on every rank. hosts: the hint. Collective over plan->topology. 0 or MPIOX_E_*, the
 * same on all ranks, with *error. */
int mpiox_service_spawn_start(const mpiox_service_plan *plan, const char *hosts, mpiox_announcement *announced,
                              mpiox_service_spawned *out, mpiox_error *error);
/* The verdict: they serve, or end. Rank 0 sends it to them; local on the others. */
void mpiox_service_spawn_release(mpiox_service_spawned *spawned, bool go);

/* The other side, in a spawned process: what `mpiio-ext-delegate` does. Returns the exit status. */
int mpiox_service_spawn_be_child(const char *library);

#endif
