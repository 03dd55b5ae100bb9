/*
 * mpiox_schedule_fifo.c - first in, first out.
 *
 * Algorithm. The request that has waited longest is next. Each following one joins it as long as it is then the one
 *            that has waited longest, and continues the batch: that changes no order.
 * Source.    The request schedulers of I/O nodes begin with it: K. Ohta, D. Kimpe, J. Cope, K. Iskra, R. Ross and Y.
 *            Ishikawa, "Optimization Techniques at the I/O Forwarding Layer", IEEE Cluster 2010.
 */
#include "mpiox_schedule_policies.h"

const mpiox_schedule_policy mpiox_schedule_fifo = {
    .name = "fifo",
    .source = "Ohta et al., Optimization Techniques at the I/O Forwarding Layer, IEEE Cluster 2010",
    .lanes = MPIOX_LANES_ONE,
    .join = MPIOX_JOIN_NEXT,
    .fair = true,
    .pick = mpiox_schedule_pick_first,
};
