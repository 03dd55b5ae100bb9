/*
 * mpiox_forwarded_balance.c - page ranges move from busy delegates to idle ones.
 *
 * Problem.   The file domains give every delegate the same number of units, not the same number of accesses.
 * Algorithm. Each rank counts its page accesses per range. When the ranks synchronise the file, rank 0 sums them up. It
 *            moves the busiest ranges of the busiest delegate to the idlest one, as long as that evens the load out,
 *            and at most MOST_MOVES a time. A rank learns of a move when the old owner redirects it.
 * Guarantee. A range has one owner at a time: its pages are in the file, and dropped, before the next delegate owns it.
 */
#include <string.h>

#include "mpiox_forwarded_impl.h"

enum { MOST_MOVES = 8, LEAST_ACCESSES = 4096 };
static const double uneven = 1.25; /* busiest delegate to average, from which on moving pays */

typedef struct loads {
    int64_t of_range[MPIOX_FILE_RANGES], of_owner[MPIOX_FILE_RANGES];
    int16_t owner[MPIOX_FILE_RANGES];
    int64_t total;
} loads;

static void sum_up(const mpiox_forwarded *forwarded, loads *out)
{
    memset(out->of_owner, 0, sizeof out->of_owner);
    out->total = 0;
    for (int32_t r = 0; r < forwarded->ranges; r++) {
        out->owner[r] = forwarded->placed[r];
        out->of_owner[out->owner[r]] += out->of_range[r];
        out->total += out->of_range[r];
    }
}

/* The busiest (sign 1) or idlest (-1) delegate that serves. -1: none. */
static int32_t extreme(const mpiox_forwarded *forwarded, const loads *now, int sign)
{
    int32_t found = -1;

    for (int32_t i = 0; i < forwarded->owners; i++)
        if (!atomic_load(&forwarded->lost[i]) && !forwarded->idle[i] &&
            (found < 0 || sign * now->of_owner[i] > sign * now->of_owner[found]))
            found = i;
    return found;
}

/* The range whose move evens the two out best; -1: none does. */
static int32_t best_range(const mpiox_forwarded *forwarded, const loads *now, int32_t from, int32_t to)
{
    const int64_t gap = now->of_owner[from] - now->of_owner[to];
    int32_t best = -1;

    for (int32_t r = 0; r < forwarded->ranges; r++)
        if (now->owner[r] == from && now->of_range[r] > 0 && now->of_range[r] < gap &&
            (best < 0 || now->of_range[r] > now->of_range[best]))
            best = r;
    return best;
}

static int32_t serving(const mpiox_forwarded *forwarded)
{
    int32_t count = 0;

    for (int32_t i = 0; i < forwarded->owners; i++)
        count += !atomic_load(&forwarded->lost[i]) && !forwarded->idle[i];
    return count;
}

static void even_out(mpiox_forwarded *forwarded, loads *now)
{
    for (int moves = 0; moves < MOST_MOVES; moves++) {
        sum_up(forwarded, now);
        const int32_t from = extreme(forwarded, now, 1), to = extreme(forwarded, now, -1);

        if (now->total < LEAST_ACCESSES || from < 0 || from == to ||
            (double)now->of_owner[from] * serving(forwarded) < uneven * (double)now->total)
            return;
        const int32_t range = best_range(forwarded, now, from, to);

        if (range < 0)
            return;
        if (!mpiox_forwarded_migrate_range(forwarded, range, from, to, 0)) {
            mpiox_forwarded_ask_owner(forwarded, from); /* another opening of the file may have moved it */
            return;
        }
        mpiox_forwarded_count_up(&forwarded->stats.moved_ranges, 1);
    }
}

void mpiox_forwarded_balance(mpiox_forwarded *forwarded)
{
    const mpiox_topology *topology = forwarded->file->topology;
    int64_t mine[MPIOX_FILE_RANGES];
    loads now;

    /* Copies stay where the first owners placed them, and a page moves through the file. */
    if (forwarded->owners < 2 || forwarded->replica)
        return;
    for (int32_t r = 0; r < forwarded->ranges; r++)
        mine[r] = atomic_exchange_explicit(&forwarded->accesses[r], 0, memory_order_relaxed);
    if (PMPI_Reduce(mine, now.of_range, forwarded->ranges, MPI_INT64_T, MPI_SUM, 0, topology->comm) != MPI_SUCCESS ||
        topology->rank != 0)
        return;
    mpiox_forwarded_migrate_lock();
    even_out(forwarded, &now);
    mpiox_forwarded_migrate_unlock();
}
