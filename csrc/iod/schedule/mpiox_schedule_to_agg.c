/*
 * mpiox_schedule_to_agg.c - time order with aggregation.
 *
 * Algorithm. The request that has waited longest is next, together with all requests that continue it in the file,
 *            however new these are.
 * Source.    TO-agg of the scheduling library AGIOS: F. Boito, R. Kassick, P. Navaux and Y. Denneulin, "Automatic I/O
 *            scheduling algorithm selection for parallel file systems", Concurrency and Computation: Practice and
 *            Experience 28 (8), 2016. There at most 16 requests are aggregated, here as many as a batch may have.
 */
#include "mpiox_schedule_policies.h"

const mpiox_schedule_policy mpiox_schedule_to_agg = {
    .name = "to_agg",
    .source = "TO-agg of AGIOS: Boito et al., Automatic I/O scheduling algorithm selection for parallel file systems, "
              "CCPE 28 (8), 2016",
    .lanes = MPIOX_LANES_ONE,
    .join = MPIOX_JOIN_ANY,
    .fair = true,
    .pick = mpiox_schedule_pick_first,
};
