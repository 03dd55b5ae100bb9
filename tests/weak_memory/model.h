/*
 * model.h - what a model of a lock-free protocol is written in: C11 for GenMC, which explores every execution that the
 * memory model allows, and C++ for Relacy, which explores every interleaving with few preemptions; a load returns the
 * last value there, or the one before where the order allows it.
 *
 * A model defines `struct model` with all shared memory, THREADS, and the functions prepare(), run(thread) and
 * verdict(). The functions of csrc that its head names are in functions.h, which tests/support/weak_memory.py writes:
 * their text as it is, except that each atomic operation names its order, and `_Atomic T` is ATOMIC(T). An order that
 * the head names as a mutant, by its function and its place there among those that are not relaxed, can be weakened.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __cplusplus /* ---- GenMC --------------------------------------------------------------------------------- */

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define ATOMIC(type) _Atomic(type)
#define PLAIN(type) type
#define CHECK(condition) assert(condition)
#define PAUSE() ((void)0)
/* A wait without end is an error. GenMC's own search for loops that wait takes others for such, and is switched off. */
void __VERIFIER_loop_begin(void);
void __VERIFIER_spin_start(void);
void __VERIFIER_spin_end(bool again);
#define WAIT_WHILE(condition)                                                                                          \
    for (__VERIFIER_loop_begin(); __VERIFIER_spin_start(), (condition) || (__VERIFIER_spin_end(1), 0);                 \
         __VERIFIER_spin_end(0)) {                                                                                     \
    }
#ifndef MUTANT
#define MUTANT 0
#endif
#define MUTANT_ORDER(number, order) ((number) == MUTANT ? memory_order_relaxed : (order))

/* A model whose threads differ by their numbers only is symmetric: GenMC explores one of the executions that are alike
 * but for those numbers, or a few more. It needs equal arguments, and no store between the creations. */
#ifndef SYMMETRIC
#define SYMMETRIC 0
#endif
#define MODEL                                                                                                          \
    static struct model memory, *const m = &memory;                                                                    \
    static void prepare(void);                                                                                         \
    static void run(int thread);                                                                                       \
    static void verdict(void);                                                                                         \
    static void *begin(void *same)                                                                                     \
    {                                                                                                                  \
        (void)same;                                                                                                    \
        run((int)pthread_self() - 1);                                                                                  \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    static void threads(int thread)                                                                                    \
    {                                                                                                                  \
        pthread_t id;                                                                                                  \
        pthread_create(&id, NULL, begin, (void *)(intptr_t)(SYMMETRIC ? 0 : thread));                                  \
        if (thread + 1 < THREADS)                                                                                      \
            threads(thread + 1);                                                                                       \
        pthread_join(id, NULL);                                                                                        \
    }                                                                                                                  \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        prepare();                                                                                                     \
        threads(0);                                                                                                    \
        verdict();                                                                                                     \
    }

#else /* ---- Relacy ---------------------------------------------------------------------------------------------- */

#include <relacy/relacy.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

static int mutant; /* its number; 0: the library as it is */

#define memory_order_relaxed rl::mo_relaxed
#define memory_order_acquire rl::mo_acquire
#define memory_order_release rl::mo_release
#define memory_order_acq_rel rl::mo_acq_rel
#define memory_order_seq_cst rl::mo_seq_cst
#define MUTANT_ORDER(number, order) ((number) == mutant ? rl::mo_relaxed : (order))
#define CHECK(condition) RL_ASSERT(condition)
#define PAUSE() rl::yield(1, $)
#define WAIT_WHILE(condition)                                                                                          \
    while (condition)                                                                                                  \
    PAUSE()

/* Memory begins as zeros. */
template <class T> struct shared : rl::atomic<T> {
    shared() { this->store(0, rl::mo_relaxed, $); }
};
/* Two accesses of it at once, one of which writes, are a race. */
template <class T> struct plain {
    rl::var<T> value;
    plain() { value($) = 0; }
    operator T() { return value($).load(); }
    T operator=(T to)
    {
        value($) = to;
        return to;
    }
};
#define ATOMIC(type) shared<type>
#define PLAIN(type) plain<type>

#define atomic_load_explicit(at, order) (at)->load(order, $)
#define atomic_store_explicit(at, value, order) (at)->store(value, order, $)
#define atomic_exchange_explicit(at, value, order) (at)->exchange(value, order, $)
#define atomic_fetch_add_explicit(at, value, order) (at)->fetch_add(value, order, $)
#define atomic_fetch_sub_explicit(at, value, order) (at)->fetch_sub(value, order, $)
#define atomic_fetch_or_explicit(at, value, order) (at)->fetch_or(value, order, $)
#define atomic_fetch_and_explicit(at, value, order) (at)->fetch_and(value, order, $)
#define atomic_compare_exchange_strong_explicit(at, old, value, order, failed)                                         \
    (at)->compare_exchange_strong(*(old), value, order, $, failed, $)
#define atomic_compare_exchange_weak_explicit atomic_compare_exchange_strong_explicit
#define atomic_thread_fence(order) rl::atomic_thread_fence(order, $)

#define MODEL                                                                                                          \
    static struct model *m;                                                                                            \
    static void prepare(void);                                                                                         \
    static void run(int thread);                                                                                       \
    static void verdict();                                                                                             \
    struct suite : rl::test_suite<suite, THREADS> {                                                                    \
        model memory;                                                                                                  \
        void before()                                                                                                  \
        {                                                                                                              \
            m = &memory;                                                                                               \
            prepare();                                                                                                 \
        }                                                                                                              \
        void thread(unsigned index) { run((int)index); }                                                               \
        void after() { verdict(); }                                                                                    \
    };                                                                                                                 \
    int main(int, char **arguments)                                                                                    \
    {                                                                                                                  \
        rl::test_params with;                                                                                          \
        with.search_type = rl::fair_context_bound_scheduler_type;                                                      \
        with.context_bound = atoi(arguments[1]);                                                                       \
        mutant = atoi(arguments[2]);                                                                                   \
        const bool good = rl::simulate<suite>(with);                                                                   \
        printf("%s: %lu executions\n", good ? "passed" : "failed", (unsigned long)with.stop_iteration);                \
        return good ? 0 : 1;                                                                                           \
    }

#endif
#endif
