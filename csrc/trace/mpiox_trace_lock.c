/* mpiox_trace_lock.c - see mpiox_trace_lock.h. */
#include "mpiox_trace_lock.h"

#include <stdatomic.h>

#include "mpiox_trace_system.h"

enum { SPINS = 64 };

_Thread_local mpiox_trace_thread mpiox_trace_self __attribute__((tls_model("initial-exec")));

static atomic_int word;

void mpiox_trace_lock(void)
{
    int spins = 0, unlocked = 0;

    mpiox_trace_self.inside++;
    while (!atomic_compare_exchange_weak_explicit(&word, &unlocked, 1, memory_order_acquire, memory_order_relaxed)) {
        unlocked = 0;
        if (++spins > SPINS)
            mpiox_trace_pause();
    }
}

void mpiox_trace_unlock(void)
{
    atomic_store_explicit(&word, 0, memory_order_release);
    mpiox_trace_self.inside--;
}
