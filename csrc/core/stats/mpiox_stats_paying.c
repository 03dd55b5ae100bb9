/*
 * mpiox_stats_paying.c - see mpiox_stats_paying.h. The constants of delegates are measured:
 * docs/explanation/delegates.md.
 */
#include "mpiox_stats_paying.h"

#include <stdio.h>
#include <sys/resource.h>

enum {
    PAGE_BYTES = 256 * 1024, /* of delegates, the smaller ones: requests are no shorter */
    SMALL_BYTES = 16 * 1024, /* longer accesses may take their time by their bytes */
    FEWEST = 1000,           /* accesses: the start of delegates takes a while, too */
    DELEGATES = 2
};

static const double least_wait_s = 10e-6;                     /* of an access; less is no request to a server */
static const double delegated_call_s = 2e-6, copied_s = 1e-9; /* of an access and of a byte through a delegate */
/* until all delegates have answered that it is done */
static const double close_s = 5e-3;
static const double slowest_byte_s = 1e-8, fastest_byte_s = 1e-9; /* of a large request: 1 MiB in 10 ms, in 1 ms */
static const double least_gain = 1.5;

void mpiox_stats_trail_add(mpiox_stats_trail *trail, int64_t first, int64_t last, int64_t nanoseconds)
{
    const int64_t previous = atomic_exchange_explicit(&trail->previous, first, memory_order_relaxed);
    const int64_t step = first > previous ? first - previous : previous - first;

    if (step <= PAGE_BYTES)
        atomic_fetch_add_explicit(&trail->near, 1, memory_order_relaxed);
    if (last > atomic_load_explicit(&trail->highest, memory_order_relaxed))
        atomic_store_explicit(&trail->highest, last, memory_order_relaxed); /* of two threads' one: an estimate */
    if (INT64_MAX - first > atomic_load_explicit(&trail->lowest_from_top, memory_order_relaxed))
        atomic_store_explicit(&trail->lowest_from_top, INT64_MAX - first, memory_order_relaxed);
    atomic_fetch_add_explicit(&trail->nanoseconds, nanoseconds, memory_order_relaxed);
}

int64_t mpiox_stats_waits(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/* Small, one near the other, and dense: pages of delegates would be filled, or be used whole. A hole in a page makes
 * requests of what lies around it when it is written; a page that is read is read whole. */
static bool is_delegates_kind(const mpiox_stats_paying_way *way, bool write)
{
    return way->bytes <= SMALL_BYTES * way->accesses && way->near >= 0.9 * way->accesses &&
           way->bytes >= (write ? 0.95 : 0.5) * (way->last - way->first);
}

static double with_delegates(const mpiox_stats_paying_way *way, double ranks, double byte_s)
{
    const double rank_s = (way->accesses * delegated_call_s + way->bytes * copied_s) / ranks;
    const double requests = way->bytes / PAGE_BYTES + 1.0, request_s = way->seconds / way->accesses;

    return close_s + rank_s + (requests * request_s + way->bytes * byte_s) / DELEGATES;
}

bool mpiox_stats_paying_times(const mpiox_stats_paying *seen, double *least, double *most)
{
    double now_s = 0.0, slow_s = 0.0, fast_s = 0.0, all_s = 0.0, accesses = 0.0;

    for (int write = 0; write < 2; write++) {
        const mpiox_stats_paying_way *way = &seen->ways[write];

        all_s += way->seconds;
        if (way->accesses < 1.0 || !is_delegates_kind(way, write))
            continue;
        accesses += way->accesses;
        now_s += way->seconds;
        slow_s += with_delegates(way, seen->ranks, slowest_byte_s);
        fast_s += with_delegates(way, seen->ranks, fastest_byte_s);
    }
    if (accesses < FEWEST || now_s < 0.9 * all_s || now_s < least_wait_s * accesses || seen->waits < 0.5)
        return false;
    now_s /= seen->ranks;
    *least = now_s / slow_s;
    *most = now_s / fast_s;
    return *least >= least_gain;
}

void mpiox_stats_paying_text(const mpiox_stats_paying *seen, char *text, int64_t text_bytes)
{
    const mpiox_stats_paying_way *ways = seen->ways;
    const double accesses = ways[0].accesses + ways[1].accesses, bytes = ways[0].bytes + ways[1].bytes;
    double least, most;

    text[0] = '\0';
    if (!mpiox_stats_paying_times(seen, &least, &most))
        return;
    snprintf(text, (size_t)text_bytes,
             "would pay here: %.0f accesses of %.0f bytes took %.0f us each; with mpiox_delegates=%d they become about "
             "%.*f to %.*f times faster, if the file system moves 1 MiB in 10 to 1 ms",
             accesses, bytes / accesses, 1e6 * (ways[0].seconds + ways[1].seconds) / accesses, DELEGATES, least < 10.0,
             least, most < 10.0, most);
}
