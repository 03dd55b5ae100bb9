/*
 * mpiox_group_plan.h - how many delegates a job gets, on which nodes, and with which settings.
 *
 * Delegate i of N belongs to node i * nodes / N: spread evenly, neighbours on one node. Where a rank has to host
 * delegates (thread and split mode), those of a node go to its ranks one after another. Nothing here communicates but
 * mpiox_announcements_gather().
 */
#ifndef MPIOX_GROUP_PLAN_H
#define MPIOX_GROUP_PLAN_H

#include "mpiox_delegate.h"
#include "mpiox_delegate_speaker.h"
#include "mpiox_hints.h"
#include "mpiox_server.h"
#include "mpiox_topology.h"

/* What a delegate needs to know to start. Plain data: it travels over MPI and through pipes. */
typedef struct mpiox_delegate_orders {
    mpiox_server_options server; /* .delegate is the delegate's own index */
    int32_t node;
    double seconds; /* that a step of its start may take */
    bool listens;   /* clients of other nodes will connect */
    mpiox_listener_place place;
    uint64_t secret[2]; /* that admits them; made where it is needed, or derived: it does not travel between hosts */
    mpiox_delegate_speaker speaker;
    char group[64], mode[16];
} mpiox_delegate_orders;

typedef struct mpiox_group_plan {
    int32_t count;
    double seconds;               /* that a step may take */
    int32_t report_s;             /* seconds of waiting after which a rank says so; 0: never */
    mpiox_delegate_orders orders; /* the same for all, but for .node and .server.delegate */
    mpiox_topology *topology;     /* borrowed */
} mpiox_group_plan;

/* The number that "2", "25%" or "per_node=1" means: at least 1 if it is not 0. */
int32_t mpiox_group_count(const char *text, int32_t ranks, int32_t nodes);
/* On every rank alike, by rank 0's hints; id: of the group, by rank 0. */
void mpiox_group_plan_make(const mpiox_hints *hints, mpiox_topology *topology, const char *id, mpiox_group_plan *out);
/* Can it be started? A word of warning on standard error, if `tell`, where it is strange. False: it cannot, and *reason
 * (static) says why. Local; the same on all ranks. */
bool mpiox_group_plan_check(const mpiox_group_plan *plan, const mpiox_hints *hints, bool tell, const char **reason);
int32_t mpiox_group_plan_node(const mpiox_group_plan *plan, int32_t delegate);
/* The rank that hosts a delegate: of its node's ranks the lowest, or with `last` the highest; the next ones host more.
 * */
int32_t mpiox_group_plan_rank(const mpiox_group_plan *plan, int32_t delegate, bool last);
mpiox_delegate_orders mpiox_group_plan_orders(const mpiox_group_plan *plan, int32_t delegate, const char *mode);

/* Every announcement, which one rank has and the others have zeroed, on every rank. Collective over the topology. 0 or
 * MPIOX_E_MPI. */
int mpiox_announcements_gather(const mpiox_topology *topology, mpiox_announcement *all, int32_t count);
/* The first code that is not MPIOX_OK; *error is that one's. */
int mpiox_announcements_code(const mpiox_announcement *all, int32_t count, mpiox_error *error);

#endif
