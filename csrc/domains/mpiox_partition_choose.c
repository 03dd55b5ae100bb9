/*
 * mpiox_partition_choose.c - the method that `auto` takes, from the lock protocol and the geometry.
 *
 * Problem.    The best method depends on who grants locks and on how aggregators and servers match ([SDCI], [SC08] in
 *             mpiox_partition.h): there is no method that is best everywhere.
 * Rules.      One kernel: no lock traffic; whole blocks for each aggregator unless that would leave some idle.
 *             Tokens (GPFS): contiguous whole blocks, so that a byte-range token is acquired once.
 *             No client locks (NFS, PVFS): whole blocks, since caches of two nodes must not share a page.
 *             Server locks (Lustre): one client for each server where aggregators divide servers; one sub-region for
 *             each group where servers divide aggregators; otherwise transpose, which needs no adjustment, unless the
 *             adjustment costs so few aggregators that the conflict-free grouping is worth more.
 * Guarantee.  Pure function of its arguments: all ranks choose alike.
 */
#include <stddef.h>

#include "mpiox_partition_methods.h"
#include "mpiox_plan_build.h"

/* group_cyclic may leave at most one aggregator in this many idle before the balance of transpose is preferred. */
#define IDLE_TOLERATED 8

static const mpiox_partition_method *choose_for_server_locks(const mpiox_geometry *geometry, int64_t stripes,
                                                             const char **reason)
{
    int32_t servers = geometry->servers, aggregators = geometry->aggregators;
    if (stripes < aggregators) {
        *reason = "server locks, fewer stripes than aggregators: each stripe keeps its owner between collectives";
        return &mpiox_partition_static_cyclic;
    }
    if (servers % aggregators == 0) {
        *reason = "server locks, aggregators divide servers: every server serves one aggregator";
        return &mpiox_partition_static_cyclic;
    }
    if (aggregators % servers == 0) {
        *reason = "server locks, servers divide aggregators: one sub-region per group, one server per aggregator";
        return &mpiox_partition_group_cyclic;
    }
    int64_t idle = aggregators - mpiox_partition_group_cyclic.adjust(geometry);
    if (idle * IDLE_TOLERATED <= aggregators) {
        *reason = "server locks, few aggregators too many: idle ones cost less than lock conflicts";
        return &mpiox_partition_group_cyclic;
    }
    *reason = "server locks, aggregators and servers do not match: balanced, about one change of owner per server";
    return &mpiox_partition_transpose;
}

const mpiox_partition_method *mpiox_partition_choose(const mpiox_geometry *geometry, const mpiox_layout *layout,
                                                     const char **reason)
{
    const char *ignored;
    reason = reason != NULL ? reason : &ignored;
    int64_t stripes = 0;
    if (geometry->start < geometry->end)
        stripes = mpiox_plan_last_stripe(geometry) - mpiox_plan_first_stripe(geometry) + 1;
    switch (layout->lock) {
    case MPIOX_LOCK_SERVER:
        return choose_for_server_locks(geometry, stripes, reason);
    case MPIOX_LOCK_TOKEN:
        *reason = "distributed tokens: contiguous whole blocks need one token per aggregator";
        return &mpiox_partition_aligned;
    case MPIOX_LOCK_NONE:
        *reason = "no client locks: whole blocks, so that no cached page is shared by two aggregators";
        return &mpiox_partition_aligned;
    case MPIOX_LOCK_LOCAL:
        break;
    }
    if (layout->coherent && stripes < geometry->aggregators) {
        *reason = "one page cache, fewer blocks than aggregators: equal parts keep all of them busy";
        return &mpiox_partition_even;
    }
    *reason = layout->coherent ? "one page cache, no lock traffic: contiguous whole blocks"
                               : "unknown locking: contiguous whole blocks are safe and never share a page";
    return &mpiox_partition_aligned;
}
