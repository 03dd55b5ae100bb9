/* mpiox_service_totals.c - see mpiox_service_totals.h. */
#include "mpiox_service_totals.h"

#include <string.h>

static const mpiox_stats_number names[] = {
#define X(name, unit, meaning) {#name, unit, meaning, 0},
    MPIOX_CACHE_COUNTERS(X)
#undef X
};

/* A row: 1 when the delegate's memory was seen, 1 when its death was, the counters, the requests by size. */
enum {
    COUNTERS = (int)(sizeof names / sizeof names[0]),
    COUNTERS_AT = 2,
    SIZES_AT = COUNTERS_AT + COUNTERS,
    WIDTH = SIZES_AT + MPIOX_STATS_SIZE_BUCKETS
};

_Static_assert((int)COUNTERS <= (int)MPIOX_STATS_DELEGATE_NUMBERS, "mpiox_stats_delegates.numbers is too short");
_Static_assert(sizeof(((mpiox_cache_counters *)0)->flush_size_log2) ==
                   MPIOX_STATS_SIZE_BUCKETS * sizeof(atomic_int_least64_t),
               "the same sizes of requests");

int mpiox_service_totals_width(void)
{
    return WIDTH;
}

static void see(const mpiox_cache *cache, int64_t *row)
{
    mpiox_cache_counters total, *counters = &total;

    mpiox_cache_sum(cache, &total);
    const int64_t values[] = {
#define X(name, unit, meaning) atomic_load_explicit(&counters->name, memory_order_relaxed),
        MPIOX_CACHE_COUNTERS(X)
#undef X
    };

    row[0] = 1;
    memcpy(row + COUNTERS_AT, values, sizeof values);
    for (int i = 0; i < MPIOX_STATS_SIZE_BUCKETS; i++)
        row[SIZES_AT + i] = atomic_load_explicit(&counters->flush_size_log2[i], memory_order_relaxed);
}

void mpiox_service_totals_see(const mpiox_service *service, int64_t *rows)
{
    memset(rows, 0, (size_t)service->count * WIDTH * sizeof *rows);
    for (int i = 0; i < service->count; i++) {
        rows[(int64_t)i * WIDTH + 1] = mpiox_process_has_died(&service->delegates[i]);
        if (service->delegates[i].local && service->delegates[i].cache.header != NULL)
            see(&service->delegates[i].cache, rows + (int64_t)i * WIDTH);
    }
}

void mpiox_service_totals_sum(const int64_t *rows, int delegates, mpiox_stats_delegates *out)
{
    *out = (mpiox_stats_delegates){.delegates = delegates, .count = COUNTERS};
    memcpy(out->numbers, names, sizeof names);
    for (int i = 0; i < delegates; i++, rows += WIDTH) {
        out->known += rows[0] != 0;
        out->died += rows[1] != 0;
        for (int k = 0; k < COUNTERS; k++)
            out->numbers[k].value += rows[COUNTERS_AT + k];
        for (int k = 0; k < MPIOX_STATS_SIZE_BUCKETS; k++)
            out->flush_size_log2[k] += rows[SIZES_AT + k];
    }
}
