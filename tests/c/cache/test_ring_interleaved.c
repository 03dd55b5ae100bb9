/*
 * test_ring_interleaved.c - two clients and a delegate at the ring, in every order of their steps: no wake-up is lost,
 *                           no posted token overlooked or served twice.
 *
 * Problem.   What goes wrong between threads goes wrong once in a million runs. Here all runs are made.
 * Algorithm. mpiox_ring.c and mpiox_wait.c themselves are compiled into this program, with every atomic operation and
 *            futex call a step. A step belongs to a thread (a context with a stack of its own); before each the
 *            scheduler chooses who makes the next one. The search is depth first; a run is made again from its start up
 *            to the last choice with another way to go. A state that was seen is not entered again: it is the ring's
 *            bits and words, and for each thread a hash of all values that it has read, which determines where it is.
 *            The delegate's loop reads nothing from one round to the next but the ring, so that it forgets there.
 *            Sleeping has no limit of time: who is not woken sleeps for ever.
 * Guarantee. When nobody can go on, all clients have ended and every token was served as often as it was posted.
 *            Operations are sequentially consistent, as in the sources, where the ring says nothing else (the loads of
 *            a word's value acquire only; a wait looks again by one that is consistent before it sleeps).
 * Limits.    The loop of the delegate is that of mpiox_server_run.c without its work. The few pauses before a sleep,
 *            which only read, are left out. Death of a client is not part of it.
 *
 *   test_ring_interleaved [late]       late: the delegate reads the bell when it has looked, which is a mistake
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

static void step(void);
static void note(uint64_t value);
static long model_futex(_Atomic uint32_t *word, int operation, uint32_t value);

#ifdef __clang__
#define MODEL_LOAD(p) __c11_atomic_load(p, __ATOMIC_SEQ_CST)
#define MODEL_STORE(p, v) __c11_atomic_store(p, v, __ATOMIC_SEQ_CST)
#define MODEL_FETCH(what, p, v) __c11_atomic_fetch_##what(p, v, __ATOMIC_SEQ_CST)
#define MODEL_SWAP(p, e, v) __c11_atomic_compare_exchange_strong(p, e, v, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#else
#define MODEL_LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define MODEL_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define MODEL_FETCH(what, p, v) __atomic_fetch_##what(p, v, __ATOMIC_SEQ_CST)
#define MODEL_SWAP(p, e, v) __atomic_compare_exchange_n(p, e, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#endif
/* What is returned is part of the thread's history where the sources look at it: they do not at sums, nor at the words
 * of 64 bits into which a bit is put. */
#define MODEL_SILENT(operation)                                                                                        \
    __extension__({                                                                                                    \
        step();                                                                                                        \
        __auto_type value_ = (operation);                                                                              \
        note(0);                                                                                                       \
        value_;                                                                                                        \
    })
#define MODEL_STEP(operation)                                                                                          \
    __extension__({                                                                                                    \
        step();                                                                                                        \
        __auto_type value_ = (operation);                                                                              \
        note((uint64_t)value_);                                                                                        \
        value_;                                                                                                        \
    })
#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_fetch_or
#undef atomic_fetch_and
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_compare_exchange_strong
#define atomic_load(p) MODEL_STEP(MODEL_LOAD(p))
#define atomic_load_explicit(p, order) MODEL_STEP(MODEL_LOAD(p))
#define atomic_store(p, v) (step(), MODEL_STORE(p, v), note(0))
#define atomic_fetch_or(p, v)                                                                                          \
    (sizeof *(p) == 4 ? MODEL_STEP(MODEL_FETCH(or, p, v)) : MODEL_SILENT(MODEL_FETCH(or, p, v)))
#define atomic_fetch_and(p, v) MODEL_STEP(MODEL_FETCH(and, p, v))
#define atomic_fetch_add(p, v) MODEL_SILENT(MODEL_FETCH(add, p, v))
#define atomic_fetch_sub(p, v) MODEL_SILENT(MODEL_FETCH(sub, p, v))
#define atomic_compare_exchange_strong(p, e, v) MODEL_STEP(MODEL_SWAP(p, e, v))
#define syscall(number, word, operation, value, limit, other, bits)                                                    \
    ((void)(number), (void)(limit), model_futex(word, operation, (uint32_t)(value)))

#define NDEBUG /* what an assertion reads would be a step, too */
#include "mpiox_wait.c"
#include "mpiox_ring.c"

/* ---- what the sources need besides ------------------------------------------------------------------------------- */

int mpiox_cache_make_mutex(pthread_mutex_t *mutex)
{
    return pthread_mutex_init(mutex, NULL);
}

bool mpiox_cache_is_serving(const mpiox_cache *cache, bool look)
{
    return cache != NULL || look;
}

void mpiox_cache_wait_step(const mpiox_cache *cache, mpiox_cache_wait *wait, int32_t op, int32_t file, int64_t page)
{
    (void)cache, (void)wait, (void)op, (void)file, (void)page;
}

void mpiox_cache_wait_end(const mpiox_cache *cache, mpiox_cache_wait *wait)
{
    (void)cache, (void)wait;
}

/* ---- what is played ---------------------------------------------------------------------------------------------- */

enum { CLIENTS = 2, THREADS = CLIENTS + 1, DELEGATE = CLIENTS, MOST_POSTS = 2, STACK = 64 * 1024, MOST_STEPS = 4000 };

typedef struct play {
    const char *name;
    int32_t slots, frames;
    uint32_t turn;
    int posts[CLIENTS];
    uint32_t tokens[CLIENTS][MOST_POSTS]; /* those below `slots` are slots */
    bool calls;                           /* of a slot: the client waits for the answer */
} play;

static const play *now;
static mpiox_cache cache;
static size_t ring_bytes;
static bool late;
static unsigned served[CLIENTS][MOST_POSTS], strange;

static mpiox_slot *slot_number(uint32_t token)
{
    return slot_of(cache.ring, token);
}

static void forget(uint64_t place);

static void client(int self)
{
    for (int i = 0; i < now->posts[self]; i++) {
        const uint32_t token = now->tokens[self][i];
        forget((uint64_t)i + 1);
        if (token >= (uint32_t)now->slots) {
            mpiox_ring_push_frame(&cache, token - (uint32_t)now->slots);
        } else if (!now->calls) {
            mpiox_ring_post(&cache, slot_number(token));
        } else { /* mpiox_ring_call() */
            mpiox_slot *slot = slot_number(token);
            atomic_store(&slot->done.value, 0);
            push(cache.ring, token);
            forget((uint64_t)i + 10);
            while (mpiox_futex_get(&slot->done) == 0)
                sleep_on(&slot->done, 0, 0);
            strange += slot->result != 0;
        }
    }
}

static void count(uint32_t token)
{
    for (int c = 0; c < CLIENTS; c++) {
        for (int i = 0; i < now->posts[c]; i++) {
            if (now->tokens[c][i] == token && (i + 1 == now->posts[c] || served[c][i] == 0)) {
                served[c][i]++;
                return;
            }
        }
    }
    strange++;
}

static void delegate(void)
{
    for (;;) {
        mpiox_slot *slot;
        uint32_t frame;
        forget(1);
        uint32_t seen = late ? 0 : mpiox_futex_get(&cache.ring->bell);
        while (mpiox_ring_next(&cache, &slot, &frame)) {
            forget(2 + seen);
            count(slot != NULL ? token_of(cache.ring, slot) : frame + (uint32_t)now->slots);
            if (slot != NULL)
                mpiox_ring_answer(slot, 0);
        }
        if (late)
            seen = mpiox_futex_get(&cache.ring->bell);
        sleep_on(&cache.ring->bell, seen, 0);
    }
}

/* ---- threads and steps ------------------------------------------------------------------------------------------- */

static struct thread {
    ucontext_t context; /* for its start */
    jmp_buf where;      /* from then on: swapcontext() makes a system call each time */
    bool started, ended;
    const _Atomic uint32_t *sleeps_on; /* NULL: awake */
    uint64_t history;
    char stack[STACK];
} threads[THREADS];
static jmp_buf scheduler;
static int current = -1; /* -1: outside of all threads */

static int choose(void); /* who goes on; -1: nobody, or this state was seen */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static void note(uint64_t value)
{
    if (current >= 0)
        threads[current].history = mix(threads[current].history, value + 1);
}

/* All that the thread has read before does not matter from here on. */
static void forget(uint64_t place)
{
    threads[current].history = place;
}

static void go_on(int next)
{
    const int before = current;
    if (next == before)
        return;
    if (_setjmp(before < 0 ? scheduler : threads[before].where) != 0)
        return;
    current = next;
    if (next < 0)
        _longjmp(scheduler, 1);
    if (threads[next].started)
        _longjmp(threads[next].where, 1);
    threads[next].started = true;
    setcontext(&threads[next].context);
}

static bool starting; /* each thread goes to before its first step */

static void step(void)
{
    if (current >= 0)
        go_on(starting ? -1 : choose());
}

static long model_futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    step();
    if (operation == FUTEX_WAKE) {
        for (int t = 0; t < THREADS; t++) {
            if (threads[t].sleeps_on == word)
                threads[t].sleeps_on = NULL;
        }
    } else if (MODEL_LOAD(word) == value) {
        threads[current].sleeps_on = word;
        note(2);
        step();
    }
    note(3);
    return 0;
}

static void begin(int self)
{
    if (self == DELEGATE)
        delegate();
    else
        client(self);
    threads[self].ended = true;
    step();
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static struct {
    int who;
    unsigned others; /* bits of threads that have not been tried here */
} path[MOST_STEPS];
static int depth, steps; /* choices of the path; steps of this run */
static uint64_t *seen_states;
static size_t seen_room, seen_count;
static int64_t runs;
static bool known, stuck, too_long;

static uint64_t state(void)
{
    const char *bits = (const char *)cache.ring + cache.ring->pending_at;
    uint64_t hash = mix(cache.ring->cursor, MODEL_LOAD(&cache.ring->bell.value));
    hash = mix(hash, MODEL_LOAD(&cache.ring->bell.sleepers));
    for (size_t at = 0; at < ring_bytes - (size_t)cache.ring->pending_at; at += 8)
        hash = mix(hash, *(const uint64_t *)(const void *)(bits + at));
    for (int32_t i = 0; i < now->slots; i++) {
        mpiox_slot *slot = slot_number((uint32_t)i);
        hash = mix(hash, MODEL_LOAD(&slot->taken));
        hash = mix(hash, (uint64_t)MODEL_LOAD(&slot->done.value) << 32 | MODEL_LOAD(&slot->done.sleepers));
    }
    for (int c = 0; c < CLIENTS; c++) {
        for (int i = 0; i < now->posts[c]; i++) {
            const uint32_t token = now->tokens[c][i];
            hash = mix(hash, served[c][i]);
            if (token >= (uint32_t)now->slots)
                hash = mix(hash, MODEL_LOAD(&cache.frames[token - (uint32_t)now->slots].flags));
        }
    }
    for (int t = 0; t < THREADS; t++)
        hash = mix(mix(mix(hash, threads[t].ended), threads[t].sleeps_on != NULL), threads[t].history);
    return mix(hash, strange) | 1;
}

static bool is_new(uint64_t value)
{
    if (seen_count * 2 >= seen_room) {
        uint64_t *before = seen_states;
        const size_t room = seen_room;
        seen_room = room == 0 ? 1 << 16 : room * 2;
        seen_states = calloc(seen_room, sizeof *seen_states);
        seen_count = 0;
        for (size_t i = 0; i < room; i++) {
            if (before[i] != 0)
                (void)is_new(before[i]);
        }
        free(before);
    }
    size_t at = (size_t)(value >> 8) % seen_room;
    while (seen_states[at] != 0 && seen_states[at] != value)
        at = (at + 1) % seen_room;
    if (seen_states[at] == value)
        return false;
    seen_states[at] = value;
    seen_count++;
    return true;
}

static int choose(void)
{
    unsigned able = 0;
    if (steps < depth)
        return path[steps++].who;
    for (int t = 0; t < THREADS; t++)
        able |= !threads[t].ended && threads[t].sleeps_on == NULL ? 1u << t : 0;
    stuck = able == 0;
    too_long |= depth == MOST_STEPS;
    known = !is_new(state());
    if (known || stuck || too_long)
        return -1;
    path[depth].who = __builtin_ctz(able);
    path[depth].others = able & ~(1u << path[depth].who);
    depth++;
    return path[steps++].who;
}

static void set_up(void)
{
    memset(cache.ring, 0, ring_bytes);
    memset(served, 0, sizeof served);
    for (int c = 0; c < CLIENTS; c++) {
        for (int i = 0; i < now->posts[c]; i++) {
            if (now->tokens[c][i] >= (uint32_t)now->slots)
                memset(&cache.frames[now->tokens[c][i] - (uint32_t)now->slots], 0, sizeof *cache.frames);
        }
    }
    if (mpiox_ring_format(cache.ring, now->slots, now->frames) != 0)
        abort();
    cache.ring->cursor = now->turn;
    for (int t = 0; t < THREADS; t++) {
        threads[t].started = threads[t].ended = false;
        threads[t].sleeps_on = NULL;
        threads[t].history = 1;
        getcontext(&threads[t].context);
        threads[t].context.uc_stack.ss_sp = threads[t].stack;
        threads[t].context.uc_stack.ss_size = STACK;
        threads[t].context.uc_link = NULL;
        makecontext(&threads[t].context, (void (*)(void))(uintptr_t)begin, 1, t);
        starting = true;
        go_on(t);
        starting = false;
    }
}

/* One run; true: it ended well, or where another one has been. */
static bool run_once(void)
{
    bool well = true;
    set_up();
    steps = 0;
    stuck = known = false;
    runs++;
    const int first = choose();
    if (first >= 0)
        go_on(first);
    if (too_long)
        return false;
    if (!stuck)
        return strange == 0;
    for (int c = 0; c < CLIENTS; c++) {
        well &= threads[c].ended;
        for (int i = 0; i < now->posts[c]; i++)
            well &= served[c][i] == 1;
    }
    return well && strange == 0;
}

static bool search(const play *what)
{
    now = what;
    ring_bytes = (size_t)mpiox_ring_bytes(what->slots, what->frames);
    cache.ring = calloc(1, ring_bytes);
    cache.frames = calloc((size_t)what->frames + 1, sizeof *cache.frames);
    depth = 0;
    strange = 0;
    too_long = false;
    runs = 0;
    bool well = run_once();
    while (well && depth > 0) {
        if (path[depth - 1].others == 0) {
            depth--;
            continue;
        }
        path[depth - 1].who = __builtin_ctz(path[depth - 1].others);
        path[depth - 1].others &= path[depth - 1].others - 1;
        well = run_once();
    }
    printf("%s: %lld runs, %zu states\n", what->name, (long long)runs, seen_count);
    fflush(stdout);
    if (!well)
        fprintf(stderr, "%s: %s after %d steps: served %u %u %u %u\n", what->name, too_long ? "no end" : "lost", steps,
                served[0][0], served[0][1], served[1][0], served[1][1]);
    free(seen_states);
    seen_states = NULL;
    seen_room = seen_count = 0;
    free(cache.frames);
    free(cache.ring);
    return well;
}

int main(int argc, char **argv)
{
    static const play plays[] = {
        {"a call each", 2, 0, 0, {1, 1}, {{0}, {1}}, true},
        {"two calls and a call", 2, 0, 1, {2, 1}, {{0, 0}, {1}}, true},
        {"two posts each, one word", 4, 0, 3, {2, 2}, {{0, 2}, {1, 3}}, false},
        {"a call and a frame, two words", 2, 100, 70, {2, 1}, {{101, 0}, {64}}, true},
        {"many pages, from the last words on", 2, 4200, 4160, {1, 1}, {{0}, {64}}, true},
        {"many pages, from before the last words", 2, 4200, 4090, {1, 1}, {{1}, {4201}}, true},
        {"three groups of words", 2, 8300, 8200, {1, 1}, {{0}, {8210}}, true},
    };
    late = argc > 1 && strcmp(argv[1], "late") == 0;
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++)
        CHECK(search(&plays[i]));
    return check_exit();
}
