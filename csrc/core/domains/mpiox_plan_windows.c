/*
 * mpiox_plan_windows.c - the rounds in which an aggregator passes through its domain.
 *
 * In every round every rank looks up the window of every aggregator, so a look-up is arithmetic on one set: windows are
 * never listed. Clipping to the region can only empty windows at the two ends of a set (sets touch the region with
 * every piece), and only if stripes are cut into several windows; their number is subtracted from both ends. A domain
 * of many sets (transpose over many servers) would be scanned set by set; mpiox_plan_prepare() numbers the windows of
 * all sets once, and a look-up then bisects.
 */
#include <assert.h>
#include <stdlib.h>

#include "mpiox_plan_build.h"
#include "mpiox_integer.h"

static bool window_bytes_is_valid(int64_t window_bytes)
{
    return window_bytes >= 1 && window_bytes <= MPIOX_PARTITION_MAX_OFFSET;
}

static bool aggregator_is_valid(const mpiox_plan *plan, int aggregator)
{
    return aggregator >= 0 && aggregator < plan->geometry.aggregators;
}

/* Windows of the set's first piece that end before the region begins (pieces larger than a window). */
static int64_t windows_clipped_before(const mpiox_geometry *geometry, const mpiox_stripe_set *set, int64_t window_bytes)
{
    return set->offset < geometry->start ? (geometry->start - set->offset) / window_bytes : 0;
}

static int64_t set_windows(const mpiox_geometry *geometry, const mpiox_stripe_set *set, int64_t window_bytes)
{
    if (set->count == 1) {
        int64_t first = mpiox_max(set->offset, geometry->start),
                end = mpiox_min(set->offset + set->length, geometry->end);
        return (end - 1) / window_bytes - first / window_bytes + 1;
    }
    if (set->length <= window_bytes) {
        int64_t stripes = window_bytes / set->length;
        return (set->count - 1) / stripes + 1;
    }
    int64_t last = set->offset + (set->count - 1) * set->stride;
    int64_t last_bytes = mpiox_min(set->length, geometry->end - last);
    return (set->count - 1) * ((set->length - 1) / window_bytes + 1) + (last_bytes - 1) / window_bytes + 1 -
           windows_clipped_before(geometry, set, window_bytes);
}

static int64_t emit(const mpiox_geometry *geometry, int64_t from, int64_t to, mpiox_extent *extent)
{
    extent->offset = mpiox_max(from, geometry->start);
    extent->length = mpiox_min(to, geometry->end) - extent->offset;
    return 1;
}

/* Window `index` of one set; the index is in range. */
static int64_t set_window(const mpiox_geometry *geometry, const mpiox_stripe_set *set, int64_t window_bytes,
                          int64_t index, mpiox_extent *extents, int64_t max)
{
    assert(index >= 0 && index < set_windows(geometry, set, window_bytes));
    if (max < 1)
        return MPIOX_E_FULL;
    if (set->count == 1) {
        int64_t from = (mpiox_max(set->offset, geometry->start) / window_bytes + index) * window_bytes;
        return emit(geometry, mpiox_max(from, set->offset), mpiox_min(from + window_bytes, set->offset + set->length),
                    extents);
    }
    if (set->length > window_bytes) {
        int64_t per_piece = (set->length - 1) / window_bytes + 1;
        index += windows_clipped_before(geometry, set, window_bytes);
        int64_t piece = set->offset + index / per_piece * set->stride;
        int64_t from = index % per_piece * window_bytes;
        return emit(geometry, piece + from, piece + mpiox_min(from + window_bytes, set->length), extents);
    }
    int64_t stripes = window_bytes / set->length, first = index * stripes;
    int64_t n = mpiox_min(stripes, set->count - first);
    if (n > max)
        return MPIOX_E_FULL;
    int64_t offset = set->offset + first * set->stride;
    for (int64_t i = 0; i < n; i++)
        extents[i] = (mpiox_extent){.offset = offset + i * set->stride, .length = set->length};
    /* Only the ends of the set can stick out of the region. */
    emit(geometry, extents[0].offset, extents[0].offset + set->length, &extents[0]);
    emit(geometry, extents[n - 1].offset, offset + (n - 1) * set->stride + set->length, &extents[n - 1]);
    return n;
}

/* The set that holds window *index of the domain; *index becomes its number inside the set. NULL when out of range. */
static const mpiox_stripe_set *find_set(const mpiox_plan *plan, const mpiox_domain *domain, int64_t window_bytes,
                                        int64_t *index)
{
    const struct mpiox_plan_store *store = plan->store;
    int64_t low = 0;
    if (store->window_bytes == window_bytes && domain->n_sets > 1) {
        const int64_t *base = store->window_base + (domain->sets - store->sets);
        int64_t high = domain->n_sets;
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            if (base[middle] <= *index)
                low = middle;
            else
                high = middle;
        }
        *index -= base[low];
    }
    for (; low < domain->n_sets; low++) {
        int64_t n = set_windows(&plan->geometry, &domain->sets[low], window_bytes);
        if (*index < n)
            return &domain->sets[low];
        *index -= n;
    }
    return NULL;
}

int64_t mpiox_plan_windows(const mpiox_plan *plan, int aggregator, int64_t window_bytes)
{
    if (!aggregator_is_valid(plan, aggregator) || !window_bytes_is_valid(window_bytes))
        return MPIOX_E_ARG;
    const struct mpiox_plan_store *store = plan->store;
    const mpiox_domain *domain = &plan->domains[aggregator];
    int64_t n = 0, i = 0;
    if (store->window_bytes == window_bytes && domain->n_sets > 1) {
        i = domain->n_sets - 1;
        n = store->window_base[domain->sets + i - store->sets];
    }
    for (; i < domain->n_sets; i++)
        n += set_windows(&plan->geometry, &domain->sets[i], window_bytes);
    return n;
}

int64_t mpiox_plan_window(const mpiox_plan *plan, int aggregator, int64_t window_bytes, int64_t index,
                          mpiox_extent *extents, int64_t max)
{
    if (!aggregator_is_valid(plan, aggregator) || !window_bytes_is_valid(window_bytes) || index < 0)
        return MPIOX_E_ARG;
    const mpiox_stripe_set *set = find_set(plan, &plan->domains[aggregator], window_bytes, &index);
    return set == NULL ? 0 : set_window(&plan->geometry, set, window_bytes, index, extents, max);
}

/* The number in its set of the window that holds byte `inner` of stripe `piece`. */
static int64_t window_of(const mpiox_geometry *geometry, const mpiox_stripe_set *set, int64_t window_bytes,
                         int64_t piece, int64_t inner)
{
    if (set->count == 1)
        return (set->offset + inner) / window_bytes - mpiox_max(set->offset, geometry->start) / window_bytes;
    if (set->length <= window_bytes)
        return piece / (window_bytes / set->length);
    return piece * ((set->length - 1) / window_bytes + 1) + inner / window_bytes -
           windows_clipped_before(geometry, set, window_bytes);
}

/* The first window of the domain's set number `set`. */
static int64_t window_base(const mpiox_plan *plan, const mpiox_domain *domain, int64_t window_bytes, int64_t set)
{
    const struct mpiox_plan_store *store = plan->store;
    assert(set >= 0 && set < domain->n_sets);
    if (store->window_bytes == window_bytes)
        return store->window_base[domain->sets + set - store->sets];
    int64_t base = 0;
    for (int64_t i = 0; i < set; i++)
        base += set_windows(&plan->geometry, &domain->sets[i], window_bytes);
    return base;
}

int mpiox_plan_windows_between(const mpiox_plan *plan, int aggregator, int64_t window_bytes, int64_t set,
                               mpiox_interval bytes, mpiox_interval *windows)
{
    const mpiox_geometry *geometry = &plan->geometry;
    const mpiox_domain *domain = &plan->domains[aggregator];
    const mpiox_stripe_set *stripes = &domain->sets[set];
    const int64_t from = mpiox_max(mpiox_max(bytes.first, geometry->start), stripes->offset),
                  to = mpiox_min(bytes.last, geometry->end);
    if (from >= to)
        return 0;
    const int64_t stride = stripes->count > 1 ? stripes->stride : stripes->length;
    int64_t low = (from - stripes->offset) / stride,
            high = mpiox_min((to - 1 - stripes->offset) / stride, stripes->count - 1);
    int64_t low_inner = from - stripes->offset - low * stride;
    if (low_inner >= stripes->length) { /* in the gap behind that stripe */
        low++;
        low_inner = 0;
    }
    if (low > high)
        return 0;
    const int64_t high_inner = mpiox_min(to - 1 - stripes->offset - high * stride, stripes->length - 1);
    const int64_t base = window_base(plan, domain, window_bytes, set);
    windows->first = base + window_of(geometry, stripes, window_bytes, low, low_inner);
    windows->last = base + window_of(geometry, stripes, window_bytes, high, high_inner) + 1;
    return 1;
}

int64_t mpiox_plan_window_extents_max(const mpiox_plan *plan, int64_t window_bytes)
{
    const struct mpiox_plan_store *store = plan->store;
    if (!window_bytes_is_valid(window_bytes))
        return MPIOX_E_ARG;
    if (store->strided_length == 0)
        return 1;
    return mpiox_max(1, mpiox_min(window_bytes / store->strided_length, store->max_count));
}

int mpiox_plan_prepare(mpiox_plan *plan, int64_t window_bytes)
{
    struct mpiox_plan_store *store = plan->store;
    if (!window_bytes_is_valid(window_bytes))
        return MPIOX_E_ARG;
    if (store->n_sets == 0 || store->window_bytes == window_bytes)
        return MPIOX_OK;
    if (store->window_base == NULL)
        store->window_base = calloc((size_t)store->n_sets, sizeof *store->window_base);
    if (store->window_base == NULL)
        return MPIOX_E_NOMEM;
    for (int32_t a = 0; a < plan->geometry.aggregators; a++) {
        const mpiox_domain *domain = &plan->domains[a];
        int64_t n = 0;
        for (int64_t i = 0; i < domain->n_sets; i++) {
            store->window_base[domain->sets + i - store->sets] = n;
            n += set_windows(&plan->geometry, &domain->sets[i], window_bytes);
        }
    }
    store->window_bytes = window_bytes;
    return MPIOX_OK;
}
