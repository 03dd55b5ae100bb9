/*
 * individual.c - three ranks of a node that leave collective calls early: csrc/mpiio/collective/mpiox_individual.c.
 *
 * from csrc/core/common/mpiox_wait.h: mpiox_futex_get
 * from csrc/core/common/mpiox_wait.c: wake mpiox_futex_set
 * from csrc/mpiio/collective/mpiox_individual.c: post_of all_meet mpiox_individual_access
 *
 * Proved.  In each call either all ranks meet or none, whichever of them have one piece: ALONE has a bit for each rank
 *          and call, and 512 for a third call. Ranks that meet read what the others have accessed in earlier calls.
 *          No rank waits for ever.
 * Mutants. mpiox_futex_get 1 ALONE=7: a rank that meets reads what another one still writes.
 *          mpiox_futex_set 1 ALONE=7: the same.
 * Sizes.   ALONE=0 to 2, ALONE=7 to 1, ALONE=1 to 1.
 */
#include "model.h"
#include "wait.h"

enum { THREADS = 3, CALLS = ALONE & 512 ? 3 : 2, MPIOX_PART_WAITING = 0 };

typedef struct mpiox_individual {
    uint32_t calls;
    int row;
    int64_t views;
    int64_t first, stride;
    bool on, asks;
} mpiox_individual;
typedef struct mpiox_call_state {
    ATOMIC(uint32_t) mixed;
} mpiox_call_state;
typedef struct mpiox_contribution {
    mpiox_futex post;
} mpiox_contribution;

struct model {
    mpiox_call_state state;
    mpiox_contribution contributions[THREADS];
    PLAIN(int) accessed[THREADS]; /* calls */
    ATOMIC(int) met[CALLS + 1];
};
MODEL

typedef struct mpiox_topology {
    int node_size, node_rank, limit;
} mpiox_topology;
typedef struct mpiox_file {
    mpiox_topology *topology;
    struct {
        int64_t views_set;
        double wait_s, total_s;
    } stats;
} mpiox_file;
typedef struct mpiox_buffers {
    mpiox_file *file;
    mpiox_call_state *state;
    mpiox_contribution *contributions;
} mpiox_buffers;
typedef struct mpiox_collective {
    mpiox_buffers buffers;
    mpiox_individual individual;
} mpiox_collective;
typedef int mpiox_part, mpiox_wait_limit, mpiox_request, mpiox_outcome;

#define mpiox_topology_progress NULL
#define mpiox_parts_on(part) 0
#define mpiox_wait_for(what, number) ((void)0)
#define mpiox_wait_set_limit(limit) NULL
#define mpiox_now() 0.0
#define access_alone(file, request, alone, outcome) (m->accessed[(file)->topology->node_rank] = *(request))

static bool goes_alone(const mpiox_collective *collective, const mpiox_request *call)
{
    const int bit = (*call - 1) * THREADS + collective->buffers.file->topology->node_rank;
    return !collective->individual.asks && ALONE >> bit & 1;
}

#include "functions.h"

static void prepare(void) {}

static void run(int rank)
{
    mpiox_topology topology = {THREADS, rank, 0};
    mpiox_file file = {&topology, {0, 0, 0}};
    mpiox_collective collective = {{&file, &m->state, m->contributions}, {0, 0, 0, 0, 0, true, false}};
    for (mpiox_request call = 1; call <= CALLS && collective.individual.on; call++) {
        mpiox_outcome outcome = 0;
        if (mpiox_individual_access(&collective, &call, &outcome))
            continue;
        for (int other = 0; other < THREADS; other++)
            CHECK((int)m->accessed[other] == call - 1);
        atomic_fetch_add_explicit(&m->met[call], 1, memory_order_relaxed);
    }
}

static void verdict(void)
{
    for (int call = 1; call <= CALLS; call++) {
        const int met = atomic_load_explicit(&m->met[call], memory_order_relaxed);
        CHECK(met == 0 || met == THREADS);
    }
}
