/* mpiox_trace_lock.c - see mpiox_trace_lock.h. */
#include "mpiox_trace_lock.h"

#include "mpiox_trace_system.h"

enum { SPINS = 64 };

_Thread_local mpiox_trace_thread mpiox_trace_self __attribute__((tls_model("initial-exec")));

atomic_int mpiox_trace_lock_word;

void mpiox_trace_lock_wait(void)
{
    int spins = 0, unlocked = 0;

    while (!atomic_compare_exchange_weak_explicit(&mpiox_trace_lock_word, &unlocked, 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
        unlocked = 0;
        if (++spins > SPINS)
            mpiox_trace_pause();
    }
}
