/*
 * mpiox_reduction.c - all ranks' parts of a collective together, and its outcome.
 *
 * Problem.   Before the rounds all ranks need the aggregate access region and must know of each other's errors; after
 *            rounds no rank may leave before all know the outcome.
 * Algorithm. Two barriers of the topology. In their serial part a node's contributions are reduced, then the reductions
 *            of all nodes are gathered and reduced in node order, everywhere alike. After the rounds the same is done
 *            with the first error. If every rank goes ahead (mpiox_choose.c) there is the first barrier alone. The next
 *            call then begins with the few numbers that show whether all ranks go ahead again, and gathers the rest
 *            only if some rank does not.
 * Guarantee. Every rank has the same reduction, and after the second barrier the same error; a rank with a local error
 *            takes part.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective_impl.h"
#include "mpiox_typemap_edges.h"

int mpiox_interval_by_first(const void *a, const void *b)
{
    const mpiox_interval *p = a, *q = b;
    return p->first < q->first ? -1 : p->first > q->first;
}

/* Sort and merge intervals in place, then close the smallest gaps until at most `max` are left; *overlap is set when
 * two of them shared a byte. Returns their number. */
static int32_t merge_intervals(mpiox_interval *list, int32_t n, int32_t max, int32_t *overlap)
{
    int32_t kept = 0;
    qsort(list, (size_t)n, sizeof *list, mpiox_interval_by_first);
    for (int32_t i = 0; i < n; i++) {
        if (kept && list[i].first <= list[kept - 1].last) {
            if (list[i].first < list[kept - 1].last)
                *overlap = 1;
            if (list[i].last > list[kept - 1].last)
                list[kept - 1].last = list[i].last;
        } else {
            list[kept++] = list[i];
        }
    }
    while (kept > max) {
        int32_t best = 1;
        for (int32_t i = 2; i < kept; i++)
            if (list[i].first - list[i - 1].last < list[best].first - list[best - 1].last)
                best = i;
        list[best - 1].last = list[best].last;
        memmove(&list[best], &list[best + 1], sizeof *list * (size_t)(kept - best - 1));
        kept--;
    }
    return kept;
}

static void add_intervals(mpiox_reduction *into, const mpiox_interval *more, int32_t n, int32_t *overlap)
{
    mpiox_interval both[2 * MPIOX_OCCUPIED_MAX];
    memcpy(both, into->occupied, sizeof *both * (size_t)into->n_occupied);
    memcpy(both + into->n_occupied, more, sizeof *both * (size_t)n);
    into->n_occupied = merge_intervals(both, into->n_occupied + n, MPIOX_OCCUPIED_MAX, overlap);
    memcpy(into->occupied, both, sizeof *both * (size_t)into->n_occupied);
}

static void reduction_clear(mpiox_reduction *s)
{
    memset(s, 0, sizeof *s);
    s->start = INT64_MAX;
    s->end = INT64_MIN;
    s->disjoint = 1;
    s->period = INT64_MAX;
}

/* *overlap is set when the accesses of the two sides have file ranges that overlap. */
static void reduction_add(mpiox_reduction *into, const mpiox_reduction *s, int32_t *overlap)
{
    into->start = s->start < into->start ? s->start : into->start;
    into->end = s->end > into->end ? s->end : into->end;
    into->bytes += s->bytes;
    into->pieces += s->pieces;
    into->granule = mpiox_common_divisor(into->granule, s->granule);
    into->longest = s->longest > into->longest ? s->longest : into->longest;
    into->widest = s->widest > into->widest ? s->widest : into->widest;
    into->edges += s->edges;
    if (into->period == INT64_MAX)
        into->period = s->period;
    else if (s->period != INT64_MAX && s->period != into->period)
        into->period = 0;
    into->flags |= s->flags;
    into->active += s->active;
    into->disjoint &= s->disjoint;
    into->interleaved |= s->interleaved;
    if (into->error.code == MPIOX_OK)
        into->error = s->error;
    add_intervals(into, s->occupied, s->n_occupied, overlap);
}

/* Descriptions of the node's ranks from their contributions, NULL for views without data; false when one is too large
 * for a contribution. */
static bool views_of_contributions(mpiox_buffers *b, mpiox_typemap **views)
{
    for (int i = 0; i < b->file->topology->node_size; i++)
        if (!(b->contributions[i].flags & MPIOX_CONTRIBUTION_EMPTY) &&
            (b->contributions[i].view_bytes == 0 ||
             mpiox_typemap_from_blob(b->contributions[i].view, b->contributions[i].view_bytes, &views[i]) != MPIOX_OK))
            return false;
    return true;
}

/* Does a pair of ranks share a byte, as far as can be proven: whole views, or only what this call accesses of them? */
static bool pair_disjoint(const mpiox_contribution *p, const mpiox_typemap *a, const mpiox_contribution *q,
                          const mpiox_typemap *b, bool whole)
{
    if (!a || !b)
        return true;
    if (whole)
        return mpiox_typemap_disjoint(a, p->displacement, b, q->displacement);
    if (p->length == 0 || q->length == 0 || p->last <= q->first || q->last <= p->first)
        return true;
    const mpiox_range mine = {a, p->displacement, p->position, p->length};
    const mpiox_range other = {b, q->displacement, q->position, q->length};
    return mpiox_typemap_disjoint_ranges(&mine, &other);
}

static bool all_pairs_disjoint(mpiox_buffers *b, mpiox_typemap **views, bool whole)
{
    for (int i = 0; i < b->file->topology->node_size; i++)
        for (int j = i + 1; j < b->file->topology->node_size; j++)
            if (!pair_disjoint(&b->contributions[i], views[i], &b->contributions[j], views[j], whole))
                return false;
    return true;
}

/* Is it proven that no two ranks of this node access the same byte? Whole views are compared once per view, since
 * most programs access one view many times; if that fails (tiles that run into each other, say), this call's
 * ranges. Bounded: about a microsecond a pair, for at most 91 and 32 ranks' pairs; beyond that, coverage is marked. */
static int32_t views_disjoint(mpiox_buffers *b)
{
    enum { RANKS_WHOLE = 91, RANKS_RANGES = 32 };
    const int n = b->file->topology->node_size;
    mpiox_call_state *state = b->state;
    if (n > RANKS_WHOLE || state->views_disjoint > 0 || (state->views_disjoint == 0 && n > RANKS_RANGES))
        return state->views_disjoint > 0;
    mpiox_typemap **views = calloc((size_t)n, sizeof *views);
    int32_t proven = views && views_of_contributions(b, views);
    if (proven && state->views_disjoint < 0)
        state->views_disjoint = all_pairs_disjoint(b, views, true);
    if (proven && state->views_disjoint <= 0)
        proven = n <= RANKS_RANGES && all_pairs_disjoint(b, views, false);
    for (int i = 0; i < n && views; i++)
        mpiox_typemap_free(views[i]);
    free(views);
    return proven;
}

bool mpiox_reduction_is_filled(const mpiox_reduction *s)
{
    return !(s->flags & MPIOX_CONTRIBUTION_NO_EDGES) && s->bytes == s->end - s->start &&
           s->edges == mpiox_typemap_edge(s->end) - mpiox_typemap_edge(s->start);
}

static void reduce_node(mpiox_buffers *b, mpiox_reduction *s)
{
    reduction_clear(s);
    for (int i = 0; i < b->file->topology->node_size; i++) {
        const mpiox_contribution *contribution = &b->contributions[i];
        mpiox_reduction one;
        reduction_clear(&one);
        one.flags = contribution->flags | (contribution->error.code != MPIOX_OK ? MPIOX_CONTRIBUTION_FAILED : 0);
        one.error = contribution->error;
        if (contribution->length > 0) {
            one.start = contribution->first;
            one.end = contribution->last;
            one.bytes = one.longest = contribution->length;
            one.widest = contribution->last - contribution->first;
            one.pieces = contribution->pieces;
            one.granule = contribution->granule;
            one.edges = contribution->edges;
            one.period = contribution->period;
            one.active = 1;
            one.n_occupied = contribution->n_spans;
            memcpy(one.occupied, contribution->spans, sizeof *one.occupied * (size_t)contribution->n_spans);
        }
        reduction_add(s, &one, &s->interleaved);
    }
    if (s->flags & MPIOX_CONTRIBUTION_NEW_VIEW)
        b->state->views_disjoint = -1;
    if (!s->interleaved || !(s->flags & MPIOX_CONTRIBUTION_WRITE) || mpiox_reduction_is_filled(s))
        return;
    s->disjoint = (s->flags & MPIOX_CONTRIBUTION_WAITS) && views_disjoint(b); /* not needed if all went ahead */
}

/* Leaders: the used part of all nodes' reductions, one every so many bytes: mostly a seventh of one. 0: MPI failed. */
static size_t gather(mpiox_topology *topology, const mpiox_reduction *s, char *all)
{
    enum { FEW = 4 }; /* intervals */
    const size_t brief = offsetof(mpiox_reduction, occupied) + FEW * sizeof *s->occupied;
    if (!mpiox_topology_gather_nodes(topology, s, brief, all))
        return 0;
    for (int n = 0; n < topology->n_nodes; n++) {
        const mpiox_reduction *one = (const mpiox_reduction *)(const void *)(all + (size_t)n * brief);
        if (one->n_occupied > FEW || (one->flags & MPIOX_CONTRIBUTION_FAILED))
            return mpiox_topology_gather_nodes(topology, s, sizeof *s, all) ? sizeof *s : 0;
    }
    return brief;
}

/* All nodes' reductions into one, the same everywhere. */
static void combine_nodes(mpiox_collective *collective, mpiox_reduction *s)
{
    mpiox_topology *topology = collective->buffers.file->topology;
    int32_t overlap = 0;
    if (mpiox_topology_one_node(topology))
        return;
    const size_t bytes = gather(topology, s, collective->reductions);
    if (bytes == 0) /* without the others' reductions this node does not know their next step: they would hang */
        mpiox_file_give_up(collective->buffers.file, MPIOX_E_MPI, -1, -1, "agreeing on the access region");
    for (int n = 0; n < topology->n_nodes; n++) {
        mpiox_reduction one = {.error = {.code = MPIOX_OK}};
        memcpy(&one, collective->reductions + (size_t)n * bytes, bytes);
        collective->buffers.nodes[n] = (mpiox_node_access){{one.start, one.end}, one.bytes};
        if (n == 0)
            *s = one;
        else
            reduction_add(s, &one, &overlap);
    }
    s->interleaved |= overlap;
    if (overlap) /* views are compared inside a node only */
        s->disjoint = 0;
}

/* Numbers whose lowest values show that every rank has gone ahead. */
enum { START, END, BYTES, NEW_VIEW, NOT_SO, NUMBERS };
_Static_assert((int)NUMBERS <= (int)MPIOX_TOPOLOGY_NODE_VALUES, "they are agreed on at once");

/* Has every rank of every node gone ahead, and without an error? Then *s has the facts that such a call needs: the
 * region, whether there were any bytes, whether a view is new. */
static bool all_ahead(mpiox_buffers *b, mpiox_reduction *s)
{
    int64_t lowest[NUMBERS] = {INT64_MAX, INT64_MAX, 0, 0, 0};
    for (int i = 0; i < b->file->topology->node_size; i++) {
        const mpiox_contribution *c = &b->contributions[i];
        const int64_t brought[NUMBERS] = {
            c->first, c->length > 0 ? -c->last : INT64_MAX, -c->length, c->flags & MPIOX_CONTRIBUTION_NEW_VIEW ? -1 : 0,
            c->error.code != MPIOX_OK || (c->flags & (MPIOX_CONTRIBUTION_WAITS | MPIOX_CONTRIBUTION_UNUSABLE)) ? -1
                                                                                                               : 0};
        for (int n = 0; n < NUMBERS; n++)
            lowest[n] = brought[n] < lowest[n] ? brought[n] : lowest[n];
    }
    if (lowest[NEW_VIEW] < 0)
        b->state->views_disjoint = -1;
    if (!mpiox_topology_lowest_of_nodes(b->file->topology, NUMBERS, lowest))
        mpiox_file_give_up(b->file, MPIOX_E_MPI, -1, -1, "agreeing on the access region");
    if (lowest[NOT_SO] < 0)
        return false;
    reduction_clear(s);
    s->start = lowest[START];
    s->end = lowest[BYTES] < 0 ? -lowest[END] : s->end;
    s->bytes = -lowest[BYTES];
    s->flags = lowest[NEW_VIEW] < 0 ? MPIOX_CONTRIBUTION_NEW_VIEW : 0;
    return true;
}

typedef struct closing {
    mpiox_collective *collective;
    mpiox_call *call;
    void (*then)(const mpiox_collective *, const mpiox_call *);
} closing;

/* One rank: the node's reduction, all nodes' reductions, and everything fresh for the rounds. */
static void close_contributions(void *context)
{
    mpiox_collective *collective = ((closing *)context)->collective;
    mpiox_call *call = ((closing *)context)->call;
    mpiox_buffers *b = call->b;
    if (collective->all_ahead[call->write] && all_ahead(b, &b->state->reduction)) {
        mpiox_individual_prepare(collective, &b->state->reduction);
        return;
    }
    reduce_node(b, &b->state->reduction);
    combine_nodes(collective, &b->state->reduction);
    mpiox_individual_prepare(collective, &b->state->reduction);
    mpiox_buffers_reset(b);
    collective->transport->ops->reset(collective->transport);
    call->reduction = b->state->reduction;
    ((closing *)context)->then(collective, call);
}

int mpiox_reduction_agree(mpiox_collective *collective, mpiox_call *call,
                          void (*then)(const mpiox_collective *, const mpiox_call *))
{
    mpiox_topology_barrier(call->b->file->topology, close_contributions, &(closing){collective, call, then});
    call->reduction = call->b->state->reduction;
    return call->reduction.error.code;
}

/* ---- after the rounds -------------------------------------------------------------------------------------------- */

/* One rank: the lowest node's error and the lowest end of file, on every node. A node that has an error sends it, also
 * if MPI fails for its leader: the others may have learnt that there is one, and wait for it. */
static void close_call(void *context)
{
    mpiox_buffers *b = context;
    mpiox_call_state *state = b->state;
    mpiox_topology *topology = b->file->topology;
    const int nodes = topology->n_nodes, none = 2 * nodes; /* a node that others have stopped comes after them */
    mpiox_error error = {.code = MPIOX_OK};
    int64_t lowest[] = {atomic_load(&state->eof), none};
    if (atomic_load(&state->failed)) {
        error = state->error;
        lowest[1] = error.code == MPIOX_E_STOPPED ? nodes + topology->node : topology->node;
    }
    const int64_t own = lowest[1];
    bool agreed = mpiox_topology_lowest_of_nodes(topology, 2, lowest);
    const int64_t first = agreed ? lowest[1] : own;
    if (agreed)
        atomic_store(&state->eof, lowest[0]);
    if (first < none)
        agreed = mpiox_topology_spread_error(topology, (int)first % nodes, &error);
    if (!agreed && error.code == MPIOX_OK) {
        mpiox_error_set(&error, MPIOX_E_MPI, 0, -1, -1, "agreeing on the outcome");
        error.rank = topology->rank;
    }
    if (error.code != MPIOX_OK) {
        state->error = error;
        atomic_store(&state->failed, 2);
    }
}

void mpiox_reduction_end(mpiox_collective *collective, mpiox_outcome *outcome)
{
    mpiox_buffers *b = &collective->buffers;
    mpiox_topology_barrier(b->file->topology, close_call, b);
    if (atomic_load(&b->state->failed))
        outcome->error = b->state->error;
}
