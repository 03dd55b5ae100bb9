/*
 * mpiox_trace_clock.h - the time of CLOCK_MONOTONIC.
 *
 * Problem.   Two readings of the clock are half of the cost of recording a call: the C library's clock waits for every
 *            earlier load, reads its parameters from a page of the kernel, and is called through two tables.
 * Algorithm. If the kernel itself takes the time from the processor's counter, that is read here, and converted to ns
 *            by a straight line through the last two moments at which both were read. A line is used for 8 ms at most;
 *            then the clock is read again. The line has a sequence number, for which no thread waits: a thread that
 *            finds it odd, or changed, reads the clock. With another counter or processor the clock is always read.
 * Guarantee. The time is that of clock_gettime() within some tens of ns. The times of a thread never go back.
 */
#ifndef MPIOX_TRACE_CLOCK_H
#define MPIOX_TRACE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_trace_lock.h"

#if defined __x86_64__
#define MPIOX_TRACE_HAS_TICKS 1
static inline uint64_t mpiox_trace_ticks(void)
{
    return __builtin_ia32_rdtsc();
}
#elif defined __aarch64__
#define MPIOX_TRACE_HAS_TICKS 1
static inline uint64_t mpiox_trace_ticks(void)
{
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#else
#define MPIOX_TRACE_HAS_TICKS 0
static inline uint64_t mpiox_trace_ticks(void)
{
    return 0;
}
#endif

enum { MPIOX_TRACE_CLOCK_SHIFT = 32 };

/* ns = line.ns + (ticks - line.ticks) * rate / 2^32, for `span` ticks; span 0: the clock has to be asked. */
typedef struct mpiox_trace_line {
    _Alignas(64) atomic_uint sequence; /* odd: being changed */
    _Atomic uint64_t ticks, span, rate;
    _Atomic int64_t ns;
} mpiox_trace_line;

extern mpiox_trace_line mpiox_trace_clock_line;

/* Whether the processor's counter can be used; before the first reading. Without it: the clock is asked always. */
void mpiox_trace_clock_begin(void);
/* In the child of a fork: another thread may have been changing the line. */
void mpiox_trace_clock_reset(void);
int64_t mpiox_trace_clock_ask(void);

/* Now, in ns. */
static inline __attribute__((always_inline)) int64_t mpiox_trace_now(void)
{
    mpiox_trace_line *line = &mpiox_trace_clock_line;
    const unsigned before = atomic_load_explicit(&line->sequence, memory_order_acquire);
    const uint64_t ticks = mpiox_trace_ticks() - atomic_load_explicit(&line->ticks, memory_order_relaxed);
    const uint64_t rate = atomic_load_explicit(&line->rate, memory_order_relaxed);
    const bool holds = ticks < atomic_load_explicit(&line->span, memory_order_relaxed);
    int64_t ns = atomic_load_explicit(&line->ns, memory_order_relaxed) +
                 (int64_t)(ticks * rate >> MPIOX_TRACE_CLOCK_SHIFT);

    atomic_thread_fence(memory_order_acquire);
    if (__builtin_expect(
            !holds || (before & 1) != 0 || atomic_load_explicit(&line->sequence, memory_order_relaxed) != before, 0))
        ns = mpiox_trace_clock_ask();
    if (ns < mpiox_trace_self.time)
        ns = mpiox_trace_self.time;
    mpiox_trace_self.time = ns;
    return ns;
}

#endif
