/*
 * individual.c - three ranks of a node that leave collective calls early, meet, and leave calls early again:
 * csrc/mpiio/collective/mpiox_individual.c.
 *
 * from csrc/core/common/mpiox_wait.h: mpiox_futex_get
 * from csrc/core/common/mpiox_wait.c: wake mpiox_futex_set
 * from csrc/mpiio/collective/mpiox_individual.c: post_of next_row mpiox_individual_prepare mpiox_individual_note
 *   all_meet mpiox_individual_access
 *
 * Proved.  In each call either all ranks meet or none, whichever of them have one piece: ALONE has a bit for each rank
 *          and call, and 512 for a third call. A rank that meets reads what the others have accessed in earlier calls.
 *          After a meeting ranks leave calls again, all from the same call on, unless one before was a mixture. No rank
 *          waits for ever.
 *          A row is one call: in the library more meetings lie between. agreement.c proves the barrier.
 * Mutants. mpiox_futex_get 1 ALONE=7: a rank that meets reads what another one still writes.
 *          mpiox_futex_set 1 ALONE=7: the same.
 * Sizes.   ALONE=0 to 0, ALONE=1 to 1, ALONE=7 to 1, ALONE=24 to 1, ALONE=56 to 1, ALONE=711 to 0, ALONE=967 to 0.
 */
#include "model.h"
#include "wait.h"

#include <string.h>

enum { THREADS = 3, CALLS = ALONE & 512 ? 3 : 2, BEFORE = 10, ROW = 1, MPIOX_PART_WAITING = 0, MPIOX_OK = 0 };

typedef struct mpiox_individual {
    uint32_t calls;
    int row;
    int64_t views;
    int64_t first, stride;
    bool on, asks;
} mpiox_individual;
typedef struct mpiox_call_state {
    ATOMIC(uint32_t) mixed;
    int64_t stride;
} mpiox_call_state;
typedef struct mpiox_contribution {
    mpiox_futex post;
} mpiox_contribution;

struct model {
    mpiox_call_state state;
    mpiox_contribution contributions[THREADS];
    PLAIN(int) accessed[CALLS + 1][THREADS];
    ATOMIC(int) arrived[CALLS + 1], ended[CALLS + 1]; /* at a barrier: ranks; whether it is over */
};
MODEL

typedef struct mpiox_topology {
    int n_nodes, node_size, node_rank, limit;
} mpiox_topology;
typedef struct mpiox_file {
    mpiox_topology *topology;
    struct {
        bool synchronous;
        const char *delegates;
    } hints;
    bool atomic;
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
typedef struct mpiox_reduction {
    struct {
        int code;
    } error;
} mpiox_reduction;
typedef int mpiox_part, mpiox_wait_limit, mpiox_request, mpiox_outcome;

#define mpiox_topology_progress NULL
#define mpiox_topology_one_node(topology) ((topology)->n_nodes == 1)
#define mpiox_parts_on(part) 0
#define mpiox_wait_for(what, number) ((void)0)
#define mpiox_wait_set_limit(limit) NULL
#define mpiox_now() 0.0
#define common_stride(buffers, reduction) 0
#define access_alone(file, request, alone, outcome) (m->accessed[*(request)][(file)->topology->node_rank] = *(request))

static bool goes_alone(const mpiox_collective *collective, const mpiox_request *call)
{
    const int bit = (*call - 1) * THREADS + collective->buffers.file->topology->node_rank;
    return !collective->individual.asks && ALONE >> bit & 1;
}

#include "functions.h"

static void prepare(void)
{
    for (int rank = 0; rank < THREADS; rank++)
        atomic_store_explicit(&m->contributions[rank].post.value, 2 * BEFORE, memory_order_relaxed);
}

/* A call in which all ranks meet. They have come for the same reason, and go on alike. */
static void meet(mpiox_collective *collective, int call, int rank)
{
    const mpiox_reduction reduction = {{MPIOX_OK}};
    for (int other = 0; other < THREADS; other++)
        CHECK(call == 1 || (int)m->accessed[call - 1][other] == call - 1);
    m->accessed[call][rank] = call;
    const int arrived = atomic_fetch_add_explicit(&m->arrived[call], 1, memory_order_acq_rel) + 1;
    if (call == CALLS)
        return;
    if (arrived == THREADS) {
        mpiox_individual_prepare(collective, &reduction);
        atomic_fetch_add_explicit(&m->ended[call], 1, memory_order_release);
        mpiox_individual_note(collective, &reduction);
        return;
    }
    WAIT_WHILE(atomic_fetch_add_explicit(&m->ended[call], 0, memory_order_acquire) == 0);
    mpiox_individual_note(collective, &reduction);
}

static void run(int rank)
{
    mpiox_topology topology = {1, THREADS, rank, 0};
    mpiox_file file = {&topology, {false, "0"}, false, {0, 0, 0}};
    mpiox_collective collective = {{&file, &m->state, m->contributions}, {BEFORE, 0, 0, 0, 0, true, false}};
    for (mpiox_request call = 1; call <= CALLS; call++) {
        mpiox_outcome outcome = 0;
        if (!mpiox_individual_access(&collective, &call, &outcome))
            meet(&collective, call, rank);
    }
}

static void verdict(void)
{
    for (int call = 1; call <= CALLS; call++) {
        const int met = atomic_load_explicit(&m->arrived[call], memory_order_relaxed);
        CHECK(met == 0 || met == THREADS);
    }
}
