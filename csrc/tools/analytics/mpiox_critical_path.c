/* mpiox_critical_path.c - the sweep line over the intervals of many groups; see mpiox_critical_path.h. */
#include "mpiox_critical_path.h"

#include <math.h>
#include <stdlib.h>

#include "mpiox_error.h"

enum { SHORT_GROUP = 24 }; /* intervals up to which insertion is quicker than the C library's sort */

typedef struct interval {
    double start, end;
    int64_t row;
} interval;

/* In the order of the sweep: by start, then the farthest end, then the input's order. A total order. */
static int compare(const void *left, const void *right)
{
    const interval *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static void insert_sorted(interval *all, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        interval one = all[i];
        int64_t k = i;
        for (; k > 0 && compare(&one, &all[k - 1]) < 0; k--)
            all[k] = all[k - 1];
        all[k] = one;
    }
}

static void sort(interval *all, int64_t n)
{
    int64_t i = 1;
    while (i < n && compare(&all[i - 1], &all[i]) < 0)
        i++;
    if (i >= n)
        return;
    if (n <= SHORT_GROUP)
        insert_sorted(all, n);
    else
        qsort(all, (size_t)n, sizeof *all, compare);
}

static int8_t classify(double start, double end)
{
    if (isnan(start) || isnan(end))
        return MPIOX_CRITICAL_PATH_UNKNOWN;
    if (isinf(start) || isinf(end))
        return MPIOX_CRITICAL_PATH_ENDLESS;
    if (end < start)
        return MPIOX_CRITICAL_PATH_REVERSED;
    return end > start ? MPIOX_CRITICAL_PATH_COVERED : MPIOX_CRITICAL_PATH_EMPTY;
}

static void take(const interval *file, double from, double *exclusive, double *since, int8_t *state)
{
    exclusive[file->row] = file->end - from;
    if (since != NULL)
        since[file->row] = from;
    state[file->row] = MPIOX_CRITICAL_PATH_CRITICAL;
}

/* The sweep over sorted intervals. It visits every interval once: of those that have started only the one that ends
 * last matters. */
static void sweep(const interval *all, int64_t n, double *exclusive, double *since, int8_t *state)
{
    int64_t next = 0;
    while (next < n) {
        const interval *current = &all[next++]; /* a path begins: first to start, of those the last to end */
        take(current, current->start, exclusive, since, state);
        for (;;) {
            const interval *farthest = current;
            for (; next < n && all[next].start <= current->end; next++)
                if (all[next].end > farthest->end)
                    farthest = &all[next];
            if (farthest == current)
                break; /* nothing open goes on: a pause, or the end */
            take(farthest, current->end, exclusive, since, state);
            current = farthest;
        }
    }
}

/* The end of the group that begins at `from`. */
static int64_t group_end(const int64_t *group, int64_t from, int64_t n)
{
    int64_t to = from + 1;
    if (group == NULL)
        return n;
    while (to < n && group[to] == group[from])
        to++;
    return to;
}

int mpiox_critical_path(const int64_t *group, const double *start, const double *end, int64_t n, double *exclusive,
                        double *since, int8_t *state)
{
    interval *all = NULL;
    int64_t capacity = 0;
    for (int64_t from = 0; from < n;) {
        int64_t to = group_end(group, from, n), found = 0;
        if (to - from > capacity) {
            capacity = to - from > 2 * capacity ? to - from : 2 * capacity;
            free(all); /* nothing of it is needed any more */
            all = malloc((size_t)capacity * sizeof *all);
            if (all == NULL)
                return MPIOX_E_NOMEM;
        }
        for (int64_t row = from; row < to; row++) {
            exclusive[row] = 0;
            if (since != NULL)
                since[row] = NAN;
            state[row] = classify(start[row], end[row]);
            if (state[row] == MPIOX_CRITICAL_PATH_COVERED)
                all[found++] = (interval){.start = start[row], .end = end[row], .row = row};
        }
        sort(all, found);
        sweep(all, found, exclusive, since, state);
        from = to;
    }
    free(all);
    return MPIOX_OK;
}
