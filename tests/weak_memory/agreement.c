/*
 * agreement.c - three ranks of a node agree twice on their lowest value: csrc/core/topology/mpiox_topology_page.c.
 *
 * from csrc/core/common/mpiox_wait.h: mpiox_futex_get
 * from csrc/core/common/mpiox_wait.c: wake mpiox_futex_set mpiox_wait_reach
 * from csrc/core/topology/mpiox_topology_page.c: reach barrier
 *
 * Proved.  One rank reduces the values, after all have put theirs in; all ranks read the result before the next
 *          agreement changes it, whether the last one reduces (NODES=1) or the leader (NODES=2). No rank waits for
 *          ever.
 * Mutants. barrier 1 NODES=1: the last rank's reads meet the values that others put in.
 *          mpiox_futex_set 1 NODES=2: a rank's read of the result meets the leader's writes.
 * Sizes.   NODES=1 to 2, NODES=2 to 2 preemptions.
 */
#include "model.h"
#include "wait.h"

enum { THREADS = 3, AGREEMENTS = 2, MPIOX_PART_WAITING = 0 };

typedef struct mpiox_topology_page {
    ATOMIC(uint32_t) arrived;
    mpiox_futex generation, gathered;
    struct {
        ATOMIC(uint32_t) arrived;
    } ranks[THREADS]; /* for reports alone */
    PLAIN(int) values[THREADS], lowest;
} mpiox_topology_page;
typedef struct mpiox_topology {
    mpiox_topology_page *page;
    int n_nodes, node_size, node_rank;
} mpiox_topology;
typedef int mpiox_part;

struct model {
    mpiox_topology_page page;
};
MODEL

#define mpiox_topology_progress NULL
#define mpiox_parts_on(part) 0
#define mpiox_wait_for(what, number) ((void)0)

#include "functions.h"

static void reduce(void *context)
{
    int lowest = 99;
    (void)context;
    for (int rank = 0; rank < THREADS; rank++)
        lowest = (int)m->page.values[rank] < lowest ? (int)m->page.values[rank] : lowest;
    m->page.lowest = lowest;
}

static void prepare(void)
{
    m->page.lowest = 0;
}

static void run(int rank)
{
    mpiox_topology topology = {&m->page, NODES, THREADS, rank};
    for (int agreement = 1; agreement <= AGREEMENTS; agreement++) {
        m->page.values[rank] = 10 * agreement + rank;
        barrier(&topology, reduce, NULL);
        CHECK((int)m->page.lowest == 10 * agreement);
    }
}

static void verdict(void) {}
