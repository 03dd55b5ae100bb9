/*
 * mpiox_rounds_used.c - the rounds of a two-phase call in which some window has bytes that a rank accesses.
 *
 * Problem.   The region has one round for each of its windows. If ranks access a few places far from each other (a
 *            header at the front, data at 2^50) nearly all windows are empty, and passing them takes longer than the
 *            I/O: half a minute for 2^30 of them.
 * Algorithm. The reduction has a few intervals that contain all accesses, the same on every rank, one for each rank at
 *            first. The plan contains which windows of a set of stripes an interval can meet. The ranks run the rounds
 *            of these windows, merged. If an interval lies between the stripes of a window, the window is empty all the
 *            same, and the ranks pass it.
 * Guarantee. Every rank runs the same rounds, and no window with data is left out.
 */
#include <stdlib.h>

#include "mpiox_collective_impl.h"

/* With fewer rounds, or more intervals than these, all rounds are run. */
enum { LEAST_ROUNDS = 16, MOST_SPANS = 1 << 16 };

static int64_t merge(mpiox_interval *spans, int64_t n)
{
    int64_t kept = 0;
    qsort(spans, (size_t)n, sizeof *spans, mpiox_interval_by_first);
    for (int64_t i = 0; i < n; i++) {
        if (kept && spans[i].first <= spans[kept - 1].last)
            spans[kept - 1].last = spans[i].last > spans[kept - 1].last ? spans[i].last : spans[kept - 1].last;
        else
            spans[kept++] = spans[i];
    }
    return kept;
}

/* Into list; returns their number. */
static int64_t spans_of_aggregator(const mpiox_call *call, int aggregator, mpiox_interval *list)
{
    const mpiox_buffers *b = call->b;
    const mpiox_reduction *s = &call->reduction;
    int64_t n = 0;
    for (int64_t set = 0; set < b->plan->domains[aggregator].n_sets; set++)
        for (int32_t i = 0; i < s->n_occupied; i++)
            n += mpiox_plan_windows_between(b->plan, aggregator, b->window_bytes, set, s->occupied[i], &list[n]);
    return n;
}

int mpiox_rounds_used(mpiox_call *call)
{
    const mpiox_buffers *b = call->b;
    int64_t spans = 0, sets = 0;
    call->n_used = 0;
    for (int a = 0; a < b->n_aggregators; a++)
        sets += b->plan->domains[a].n_sets;
    if (call->reduction.n_occupied < 2 || call->rounds < LEAST_ROUNDS ||
        sets > MOST_SPANS / (int64_t)call->reduction.n_occupied)
        return MPIOX_OK;
    call->used = malloc(sizeof *call->used * (size_t)(sets * call->reduction.n_occupied + 1));
    if (!call->used)
        return MPIOX_E_NOMEM;
    for (int a = 0; a < b->n_aggregators; a++)
        spans += spans_of_aggregator(call, a, call->used + spans);
    call->n_used = merge(call->used, spans);
    return MPIOX_OK;
}
