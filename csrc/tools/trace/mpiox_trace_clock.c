/* mpiox_trace_clock.c - see mpiox_trace_clock.h. */
#include "mpiox_trace_clock.h"

#include <stdlib.h>
#include <string.h>

#if defined __x86_64__
#include <cpuid.h>
#endif

#include "mpiox_trace_system.h"

enum {
    SHORTEST_NS = 2000000, /* between the two moments of a line: each is known to some tens of ns */
    LONGEST_NS = 8000000,  /* that a line holds */
    TRIES = 4,
    CLOSE_NS = 1000, /* that a reading of both may take: else the thread was interrupted within */
    SAME = 64        /* paces that differ by one part in so many are not of one counter */
};

mpiox_trace_line mpiox_trace_clock_line;

static bool usable;
static uint64_t last_ticks; /* the last moment; 0: there is none. Under an odd sequence number, as what follows. */
static int64_t last_ns;
static double pace; /* ns a tick; 0: not known */

#if defined __x86_64__
/* Of one pace, whatever the processor does to save power. */
static bool is_steady(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1U << 8) != 0;
}
#else
static bool is_steady(void)
{
    return MPIOX_TRACE_HAS_TICKS;
}
#endif

/* The kernel leaves a counter that is not the same on all processors. */
static bool kernel_uses_it(void)
{
    static const char *const names[] = {"tsc\n", "kvm-clock\n", "arch_sys_counter\n"};
    char text[64];

    if (mpiox_trace_read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", text, sizeof text) <=
        0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

void mpiox_trace_clock_begin(void)
{
    const char *wanted = getenv("MPIOX_TRACE_CLOCK");

    usable = (wanted == NULL || strcmp(wanted, "system") != 0) && is_steady() && kernel_uses_it();
}

void mpiox_trace_clock_reset(void)
{
    mpiox_trace_line *line = &mpiox_trace_clock_line;

    last_ticks = 0;
    pace = 0;
    atomic_store(&line->span, 0);
    atomic_store(&line->sequence, 0);
}

/* Read both at one moment. False: the thread was interrupted each time. */
static bool read_both(uint64_t *ticks, int64_t *ns)
{
    for (int i = 0; i < TRIES; i++) {
        const int64_t begun = mpiox_trace_monotonic();
        const uint64_t read = mpiox_trace_ticks();
        const int64_t ended = mpiox_trace_monotonic();

        *ticks = read;
        *ns = begun + (ended - begun) / 2;
        if (ended - begun < CLOSE_NS)
            return true;
    }
    return false;
}

static bool fits(double each)
{
    return (each - pace) * SAME < pace && (pace - each) * SAME < pace;
}

/* The line through the last moment and this one; none where they are too near, or where the counter was set anew
 * between them: a machine that was moved, or slept. */
static void draw(mpiox_trace_line *line, uint64_t ticks, int64_t ns)
{
    const double passed = (double)(int64_t)(ticks - last_ticks), passed_ns = (double)(ns - last_ns);
    const double each = passed > 0 ? passed_ns / passed : 0;
    uint64_t span = 0;

    if (last_ticks != 0 && passed_ns < SHORTEST_NS)
        return;
    if (last_ticks != 0 && each > 0 && (pace == 0 || fits(each)))
        span = (uint64_t)((passed_ns < LONGEST_NS ? passed_ns : LONGEST_NS) / each);
    const uint64_t rate = span > 0 ? (uint64_t)(each * (double)(UINT64_C(1) << MPIOX_TRACE_CLOCK_SHIFT)) : 0;
    pace = span > 0 ? each : 0;
    last_ticks = ticks;
    last_ns = ns;
    atomic_store_explicit(&line->ticks, ticks, memory_order_relaxed);
    atomic_store_explicit(&line->ns, ns, memory_order_relaxed);
    atomic_store_explicit(&line->rate, rate, memory_order_relaxed);
    atomic_store_explicit(&line->span, span, memory_order_relaxed);
}

int64_t mpiox_trace_clock_ask(void)
{
    mpiox_trace_line *line = &mpiox_trace_clock_line;
    unsigned sequence = atomic_load_explicit(&line->sequence, memory_order_relaxed);
    uint64_t ticks = 0;
    int64_t ns = 0;

    if (!usable || (sequence & 1) != 0 ||
        !atomic_compare_exchange_strong_explicit(&line->sequence, &sequence, sequence + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return mpiox_trace_monotonic();
    atomic_thread_fence(memory_order_release);
    if (read_both(&ticks, &ns))
        draw(line, ticks, ns);
    atomic_store_explicit(&line->sequence, sequence + 2, memory_order_release);
    return ns;
}
