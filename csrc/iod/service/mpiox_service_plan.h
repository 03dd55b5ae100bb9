/*
 * mpiox_service_plan.h - how many delegates a job gets, on which nodes, and with which settings.
 *
 * Delegate i of N belongs to node i * nodes / N: spread evenly, neighbours on one node. Where a rank has to host
 * delegates (thread and split mode), those of a node go to its ranks one after another. Nothing here communicates but
 * mpiox_announcements_gather().
 */
#ifndef MPIOX_SERVICE_PLAN_H
#define MPIOX_SERVICE_PLAN_H

#include "mpiox_process_orders.h"
#include "mpiox_hints.h"
#include "mpiox_topology.h"

typedef struct mpiox_service_plan {
    int32_t count;               /* delegates of the job; 0: none */
    double seconds;              /* that a step may take */
    int32_t report_s;            /* seconds of waiting after which a rank prints a line; 0: never */
    mpiox_process_orders orders; /* the same for all, but for .node and .server.delegate */
    mpiox_topology *topology;    /* borrowed */
} mpiox_service_plan;

/* The number that "2", "25%" or "per_node=1" means: at least 1 if it is not 0. */
int32_t mpiox_service_count(const char *text, int32_t ranks, int32_t nodes);
/* On every rank alike, by rank 0's hints; id: of the service, by rank 0. */
void mpiox_service_plan_make(const mpiox_hints *hints, mpiox_topology *topology, const char *id,
                             mpiox_service_plan *out);
/* Can the plan be started? With `print`, prints warnings on standard error about unusual settings. False: it cannot,
 * and *reason (static) explains why. Local; the same on all ranks. */
bool mpiox_service_plan_check(const mpiox_service_plan *plan, const mpiox_hints *hints, bool print,
                              const char **reason);
int32_t mpiox_service_plan_node(const mpiox_service_plan *plan, int32_t delegate);
/* The rank that hosts a delegate: of its node's ranks the lowest, or with `last` the highest; the next ones host more.
 * */
int32_t mpiox_service_plan_rank(const mpiox_service_plan *plan, int32_t delegate, bool last);
mpiox_process_orders mpiox_service_plan_orders(const mpiox_service_plan *plan, int32_t delegate, const char *mode);

/* Every announcement, which one rank has and the others have zeroed, on every rank. Collective over the topology. 0 or
 * MPIOX_E_MPI. */
int mpiox_announcements_gather(const mpiox_topology *topology, mpiox_announcement *all, int32_t count);
/* The first code that is not MPIOX_OK; *error is that one's. */
int mpiox_announcements_code(const mpiox_announcement *all, int32_t count, mpiox_error *error);

#endif
