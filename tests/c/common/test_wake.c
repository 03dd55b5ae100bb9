/*
 * test_wake.c - no wake-up is lost, wherever between the look at a word and the sleep it comes.
 *
 * The waits are those that sleep until they are woken (mpiox_wait_at_most(), for a minute); the others sleep for a
 * millisecond at most, which would hide it. The system call is ours, so that something can happen right before it, and
 * so are the operations on atomic words: threads dawdle before each of them, so that many orders of them come about.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static long hooked(long number, void *address, int operation, unsigned value, const struct timespec *limit, void *other,
                   int more);
static void dawdle(void);
#undef atomic_load
#undef atomic_store
#undef atomic_fetch_add
#undef atomic_fetch_sub
#define atomic_load(at) (dawdle(), atomic_load_explicit(at, memory_order_seq_cst))
#define atomic_store(at, value) (dawdle(), atomic_store_explicit(at, value, memory_order_seq_cst))
#define atomic_fetch_add(at, value) (dawdle(), atomic_fetch_add_explicit(at, value, memory_order_seq_cst))
#define atomic_fetch_sub(at, value) (dawdle(), atomic_fetch_sub_explicit(at, value, memory_order_seq_cst))
#define syscall hooked
#include "mpiox_wait.c"
#undef syscall

static _Thread_local unsigned seed; /* 0: this thread does not dawdle */

enum { MINUTE_S = 60, THREADS = 6, TURNS = 1500, CROWD_TURNS = 400 };

static void (*before_sleep)(void), (*before_wake)(void);
static _Atomic int falls, sleeps, refused, wakes; /* falls: asleep, or about to */

static long hooked(long number, void *address, int operation, unsigned value, const struct timespec *limit, void *other,
                   int more)
{
    const int is_sleep = operation == FUTEX_WAIT;
    void (*const before)(void) = is_sleep ? before_sleep : before_wake;

    if (before)
        before();
    falls += is_sleep;
    const long result = syscall(number, address, operation, value, limit, other, more);
    if (is_sleep) {
        const int saved = errno;
        atomic_fetch_add(&sleeps, 1);
        atomic_fetch_add(&refused, result != 0 && saved == EAGAIN);
        errno = saved;
    } else {
        atomic_fetch_add(&wakes, 1);
    }
    return result;
}

static void start(void (*sleeping)(void), void (*waking)(void))
{
    before_sleep = sleeping;
    before_wake = waking;
    falls = sleeps = refused = wakes = 0;
}

/* ---- at the worst moment ----------------------------------------------------------------------------------------- */

static mpiox_futex word;

static void set_it(void)
{
    before_sleep = NULL;
    mpiox_futex_set(&word, 5);
}

/* The word changes when the waiter has looked for the last time: the kernel must not let it sleep. */
static void between_look_and_sleep(void)
{
    word = (mpiox_futex){0};
    start(set_it, NULL);
    CHECK_EQUAL(mpiox_wait_at_most(&word, 0, MINUTE_S), 5);
    CHECK_EQUAL(sleeps, 1);
    CHECK_EQUAL(refused, 1);
    CHECK_EQUAL(wakes, 1); /* the sleeper was counted before it looked */
    CHECK_EQUAL(word.sleepers, 0);
}

static void add_two(void)
{
    before_sleep = NULL;
    mpiox_futex_add(&word);
    mpiox_futex_add(&word);
}

static void twice_between(void)
{
    word = (mpiox_futex){.value = UINT32_MAX}; /* it wraps around */
    start(add_two, NULL);
    CHECK_EQUAL(mpiox_wait_at_most(&word, UINT32_MAX, MINUTE_S), 1);
    CHECK_EQUAL(refused, 1);
}

/* Nobody sleeps: no system call. */
static void nobody_sleeps(void)
{
    word = (mpiox_futex){0};
    start(NULL, NULL);
    mpiox_futex_add(&word);
    CHECK_EQUAL(mpiox_wait_at_most(&word, 0, MINUTE_S), 1);
    CHECK_EQUAL(sleeps + wakes, 0);
}

/* ---- many threads ------------------------------------------------------------------------------------------------ */

static mpiox_futex ring[THREADS], gate, arrived;
static _Atomic int lost;

static unsigned draw(unsigned below)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % below;
}

static void dawdle(void)
{
    const struct timespec nap = {0, 1000 * (long)(seed ? draw(60) : 0)};

    switch (seed ? draw(16) : 15) {
    case 0:
        nanosleep(&nap, NULL);
        break;
    case 1:
        sched_yield();
        break;
    case 2:
        for (unsigned i = draw(2000); i > 0; i--)
            atomic_signal_fence(memory_order_seq_cst);
        break;
    default:
        break;
    }
}

static void await(mpiox_futex *at, uint32_t target)
{
    for (uint32_t now = mpiox_futex_get(at); (int32_t)(now - target) < 0 && !lost;) {
        const uint32_t next = mpiox_wait_at_most(at, now, MINUTE_S);
        if (next == now)
            atomic_store(&lost, 1);
        now = next;
    }
}

/* On a busy machine a thread may find each word set when it comes to it: at least one shall sleep. */
static void let_one_sleep(void)
{
    while (falls == 0 && !lost)
        sched_yield();
}

/* A token goes round: each wakes the next. */
static void *pass_on(void *context)
{
    const int own = (int)(intptr_t)context;

    seed = 7u + (unsigned)own;
    for (uint32_t turn = 1; turn <= TURNS && !lost; turn++) {
        await(&ring[own], turn);
        if (own == 0 && turn == 1)
            let_one_sleep();
        mpiox_futex_set(&ring[(own + 1) % THREADS], own + 1 == THREADS ? turn + 1 : turn);
    }
    return NULL;
}

/* All wait for one word, and one for all of them. */
static void *meet(void *context)
{
    const int own = (int)(intptr_t)context;

    seed = 77u + (unsigned)own;
    for (uint32_t turn = 1; turn <= CROWD_TURNS && !lost; turn++) {
        mpiox_futex_add(&arrived);
        if (own == 0) {
            await(&arrived, turn * THREADS);
            if (turn == 1)
                let_one_sleep();
            mpiox_futex_set(&gate, turn);
        } else {
            await(&gate, turn);
        }
    }
    return NULL;
}

static void run(void *(*what)(void *))
{
    pthread_t threads[THREADS];

    start(NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, what, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQUAL(lost, 0);
    CHECK(sleeps > 0 && wakes > 0);
}

int main(void)
{
    between_look_and_sleep();
    twice_between();
    nobody_sleeps();
    mpiox_futex_set(&ring[0], 1);
    run(pass_on);
    run(meet);
    return check_exit();
}
