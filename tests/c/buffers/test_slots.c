/*
 * test_slots.c - the collective buffers of a node, with threads for its ranks: each window is written once, when every
 * rank has filled it, and several are written at a time.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "check.h"
#include "mpiox_slots.c"

enum { RANKS = 4, LOCALS = 2, EACH = 2, WINDOWS = 50, LIMIT_S = 20 };

static mpiox_buffer_slot slots[LOCALS * EACH];
static int32_t aggregators[LOCALS] = {0, 1}, local[LOCALS] = {0, 1};
static _Atomic int filled[LOCALS][WINDOWS], written[LOCALS][WINDOWS];
static _Atomic int writing, most; /* ranks that write now; the most at a time */
static _Atomic bool alone;        /* no second rank has come to write in time */
static bool owners;

bool mpiox_topology_progress(void *context)
{
    (void)context;
    return false;
}

int64_t mpiox_window_extents(const mpiox_call *call, int aggregator, int64_t round, mpiox_extent *list)
{
    (void)call, (void)aggregator, (void)round, (void)list;
    return 1;
}

int64_t mpiox_window_next_round(const mpiox_call *call, int64_t round)
{
    (void)call;
    return round;
}

void mpiox_window_read(mpiox_call *call, mpiox_buffer_slot *slot)
{
    (void)call, (void)slot;
}

/* A request that ends when another one is in progress, or one was before. */
void mpiox_window_write(mpiox_call *call, mpiox_buffer_slot *slot)
{
    const int which = mpiox_slot_local(call->b, slot), now = atomic_fetch_add(&writing, 1) + 1;
    const int64_t window = atomic_load(&slot->window);
    const double end = mpiox_now() + LIMIT_S;

    if (owners)
        CHECK_EQUAL(call->b->file->topology->rank, which);
    CHECK_EQUAL(atomic_load(&filled[which][window]), RANKS);
    CHECK_EQUAL(atomic_fetch_add(&written[which][window], 1), 0);
    for (int before = atomic_load(&most); before < now && !atomic_compare_exchange_weak(&most, &before, now);)
        continue;
    while (atomic_load(&most) < 2 && !atomic_load(&alone)) {
        nanosleep(&(struct timespec){0, 100000}, NULL);
        if (mpiox_now() >= end)
            atomic_store(&alone, true);
    }
    atomic_fetch_sub(&writing, 1);
}

static void *one_rank(void *number)
{
    mpiox_topology topology = {.rank = *(const int *)number};
    mpiox_file file = {.topology = &topology};
    mpiox_buffers b = {.file = &file,
                       .aggregators = aggregators,
                       .local = local,
                       .n_local = LOCALS,
                       .n_aggregators = LOCALS,
                       .per_aggregator = EACH,
                       .slots = slots};
    mpiox_progress progress[LOCALS] = {0};
    mpiox_call call = {.b = &b, .write = true, .participants = RANKS, .rounds = WINDOWS, .progress = progress};

    file.hints.io_rank = owners ? MPIOX_IO_OWNER : MPIOX_IO_ANY;
    for (int64_t window = 0; window < WINDOWS; window++)
        for (int i = 0; i < LOCALS; i++) {
            const uint32_t sequence = progress[i].begun++;
            mpiox_buffer_slot *slot = mpiox_slot_of(&b, i, sequence);

            mpiox_slot_await(&call, slot, sequence, window);
            atomic_fetch_add(&filled[i][window], 1);
            atomic_store(&slot->window, window);
            mpiox_slot_arrive(&call, slot);
        }
    mpiox_slots_finish(&call);
    for (int i = 0; i < LOCALS; i++) /* what a rank may write is written when it leaves */
        for (int64_t window = 0; may_do_io(&call, i) && window < WINDOWS; window++)
            CHECK_EQUAL(atomic_load(&written[i][window]), 1);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[RANKS];
    int numbers[RANKS];

    owners = argc > 1 && argv[1][0] == 'o';
    for (int i = 0; i < RANKS; i++) {
        numbers[i] = i;
        CHECK_EQUAL(pthread_create(&threads[i], NULL, one_rank, &numbers[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < LOCALS * WINDOWS; i++)
        CHECK_EQUAL(atomic_load(&written[i / WINDOWS][i % WINDOWS]), 1);
    CHECK(atomic_load(&most) >= 2);
    return check_exit();
}
