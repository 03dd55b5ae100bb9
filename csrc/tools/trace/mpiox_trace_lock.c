/* mpiox_trace_lock.c - see mpiox_trace_lock.h. */
#include "mpiox_trace_lock.h"

#include "mpiox_trace_system.h"

enum { SPINS = 64 };

_Thread_local mpiox_trace_thread mpiox_trace_self __attribute__((tls_model("initial-exec")));

atomic_uintptr_t mpiox_trace_lock_word;

void mpiox_trace_lock_wait(void)
{
    const uintptr_t self = (uintptr_t)&mpiox_trace_self;
    int spins = 0;

    for (uintptr_t owner = 0; !atomic_compare_exchange_weak_explicit(&mpiox_trace_lock_word, &owner, self,
                                                                     memory_order_acquire, memory_order_relaxed);
         owner = 0) {
        if (owner == self) {
            mpiox_trace_self.again++;
            return;
        }
        if (++spins > SPINS)
            mpiox_trace_pause();
    }
}
