/*
 * mpiox_delegated_balance.c - page ranges move from busy delegates to idle ones.
 *
 * Problem.   The file domains give every delegate the same number of units, not the same number of accesses.
 * Algorithm. Each rank counts its page accesses per range. When the ranks synchronise the file, rank 0 sums them up and
 *            moves the busiest ranges of the busiest delegate to the idlest one, as long as that evens the load out and
 *            at most MOST_MOVES a time. The ranks learn of it when the old owner sends them on.
 * Guarantee. A range has one owner at a time: its pages are in the file, and dropped, before the next one has it.
 */
#include <string.h>

#include "mpiox_delegated_impl.h"

enum { MOST_MOVES = 8, LEAST_ACCESSES = 4096 };
static const double uneven = 1.25; /* busiest delegate to average, from which on moving pays */

typedef struct loads {
    int64_t of_range[MPIOX_FILE_RANGES], of_owner[MPIOX_FILE_RANGES];
    int16_t owner[MPIOX_FILE_RANGES];
    int64_t total;
} loads;

static void sum_up(const mpiox_delegated *delegated, loads *out)
{
    memset(out->of_owner, 0, sizeof out->of_owner);
    out->total = 0;
    for (int32_t r = 0; r < delegated->ranges; r++) {
        out->owner[r] = delegated->placed[r];
        out->of_owner[out->owner[r]] += out->of_range[r];
        out->total += out->of_range[r];
    }
}

/* The busiest (sign 1) or idlest (-1) delegate that serves. -1: none. */
static int32_t extreme(const mpiox_delegated *delegated, const loads *now, int sign)
{
    int32_t found = -1;

    for (int32_t i = 0; i < delegated->owners; i++)
        if (!atomic_load(&delegated->lost[i]) && !delegated->idle[i] &&
            (found < 0 || sign * now->of_owner[i] > sign * now->of_owner[found]))
            found = i;
    return found;
}

/* The range whose move evens the two out best; -1: none does. */
static int32_t best_range(const mpiox_delegated *delegated, const loads *now, int32_t from, int32_t to)
{
    const int64_t gap = now->of_owner[from] - now->of_owner[to];
    int32_t best = -1;

    for (int32_t r = 0; r < delegated->ranges; r++)
        if (now->owner[r] == from && now->of_range[r] > 0 && now->of_range[r] < gap &&
            (best < 0 || now->of_range[r] > now->of_range[best]))
            best = r;
    return best;
}

static int32_t serving(const mpiox_delegated *delegated)
{
    int32_t count = 0;

    for (int32_t i = 0; i < delegated->owners; i++)
        count += !atomic_load(&delegated->lost[i]) && !delegated->idle[i];
    return count;
}

static void even_out(mpiox_delegated *delegated, loads *now)
{
    for (int moves = 0; moves < MOST_MOVES; moves++) {
        sum_up(delegated, now);
        const int32_t from = extreme(delegated, now, 1), to = extreme(delegated, now, -1);

        if (now->total < LEAST_ACCESSES || from < 0 || from == to ||
            (double)now->of_owner[from] * serving(delegated) < uneven * (double)now->total)
            return;
        const int32_t range = best_range(delegated, now, from, to);

        if (range < 0)
            return;
        if (!mpiox_delegated_move_range(delegated, range, from, to, 0)) {
            mpiox_delegated_ask_owner(delegated, from); /* another opening of the file may have moved it */
            return;
        }
        mpiox_delegated_count_up(&delegated->stats.moved_ranges, 1);
    }
}

void mpiox_delegated_balance(mpiox_delegated *delegated)
{
    const mpiox_topology *topology = delegated->file->topology;
    int64_t mine[MPIOX_FILE_RANGES];
    loads now;

    if (delegated->owners < 2 || delegated->replica) /* buddies keep copies by the owners of the beginning */
        return;
    for (int32_t r = 0; r < delegated->ranges; r++)
        mine[r] = atomic_exchange_explicit(&delegated->accesses[r], 0, memory_order_relaxed);
    if (PMPI_Reduce(mine, now.of_range, delegated->ranges, MPI_INT64_T, MPI_SUM, 0, topology->comm) != MPI_SUCCESS ||
        topology->rank != 0)
        return;
    mpiox_delegated_move_lock();
    even_out(delegated, &now);
    mpiox_delegated_move_unlock();
}
