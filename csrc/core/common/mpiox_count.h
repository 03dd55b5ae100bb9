/*
 * mpiox_count.h - counters of a process, to which its threads add.
 *
 * Problem.   A locked addition takes as long as twenty instructions, and the access of a few bytes makes seven.
 * Algorithm. Additions are not locked as long as one thread at a time can add. This is so if the MPI library does not
 *            support MPI_THREAD_MULTIPLE and this library has started no thread that adds.
 * Guarantee. No addition is lost: before this library starts a thread that adds, it calls mpiox_count_threads(), whose
 *            effect lasts until the process ends.
 */
#ifndef MPIOX_COUNT_H
#define MPIOX_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern atomic_bool mpiox_count_is_plain;

/* Threads of this process may add at the same time; any thread, also several times. */
void mpiox_count_threads(void);

/* One thread at a time adds, unless mpiox_count_threads() was called. */
void mpiox_count_one_thread(void);

static inline void mpiox_count(_Atomic int64_t *counter, int64_t n)
{
    if (atomic_load_explicit(&mpiox_count_is_plain, memory_order_relaxed))
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif
