/*
 * mpiox_windows.c - the window of its domain that an aggregator works on in a round, the window's extents, and copying
 * to and from it.
 *
 * Problem.   If nodes access large pieces in turn, the windows at the same place of each domain may contain data of the
 *            same few nodes. If one round worked on these windows, all bytes of the round would pass through the links
 *            of these nodes, while the links of the other nodes are idle.
 * Algorithm. The pieces of each rank may come back after the same number of windows, the period. Then, between nodes
 *            and where domains are contiguous, aggregators begin with windows that are spread over the period. In each
 *            round the windows of cyclic domains lie side by side. If each node accesses a block of the region, a round
 *            has bytes of one node: then aggregators begin with windows that are spread over their whole domains. After
 *            the last window of the domain they continue with its first. The plan contains the extents of an
 *            aggregator's file domain that belong to a window. Parts that no rank accesses are left out: they take no
 *            room in the collective buffer, and no rank reads or writes them.
 * Guarantee. Every rank computes the same; every window has one round. Local, constant work but for the extents.
 */
#include "mpiox_buffers.h"
#include "mpiox_copy.h"
#include "mpiox_parts.h"

/* ---- rounds and windows ------------------------------------------------------------------------------------------ */

/* Do half of the nodes at most, on average, access what lies at a place of the region? */
static bool in_blocks(const mpiox_buffers *b)
{
    const mpiox_geometry *geometry = &b->plan->geometry;
    const int nodes = b->file->topology->n_nodes;
    double spanned = 0;
    for (int n = 0; n < nodes; n++)
        if (b->nodes[n].range.first < b->nodes[n].range.last)
            spanned += (double)(b->nodes[n].range.last - b->nodes[n].range.first);
    return 2 * spanned <= (double)nodes * (double)(geometry->end - geometry->start);
}

void mpiox_windows_turn(mpiox_call *call)
{
    const mpiox_buffers *b = call->b;
    const int64_t period = call->reduction.period;
    bool cyclic = false;
    call->turn = 0;
    if (mpiox_topology_one_node(b->file->topology) || call->n_used > 0)
        return;
    for (int a = 0; a < b->n_aggregators; a++) {
        const mpiox_domain *domain = &b->plan->domains[a];
        if (domain->n_sets > 1)
            return;
        cyclic |= domain->n_sets == 1 && domain->sets[0].count > 1;
    }
    if (cyclic)
        call->turn = in_blocks(b) ? MPIOX_TURN_CYCLIC : 0;
    else if (period != INT64_MAX && period / b->window_bytes >= 2)
        call->turn = period / b->window_bytes;
}

static int64_t share_of(int64_t whole, int64_t part, int64_t parts)
{
    return whole / parts * part + whole % parts * part / parts;
}

/* The window that the aggregator begins with. Of cyclic domains: its part of the windows. Where a domain has a whole
 * period: its part of the period behind the period's beginning. Else domains begin at as many places of the period as
 * `places`, one after the other; of those that begin at the same one each goes on by its part of the way to the next
 * place. */
static int64_t first_window(const mpiox_call *call, int aggregator, int64_t *windows)
{
    const mpiox_buffers *b = call->b;
    const mpiox_geometry *geometry = &b->plan->geometry;
    const int64_t n = b->n_aggregators, turn = call->turn;
    *windows = mpiox_plan_windows(b->plan, aggregator, b->window_bytes);
    if (turn == 0 || *windows == 0)
        return 0;
    if (turn == MPIOX_TURN_CYCLIC)
        return share_of(*windows, aggregator, n);
    if (*windows < turn) {
        const int64_t each = (geometry->end - geometry->start) / n / b->window_bytes,
                      way = mpiox_common_divisor(each > 0 ? each : 1, turn), places = turn / way;
        return share_of(way, aggregator / places, (n + places - 1) / places) % *windows;
    }
    const int64_t domain = b->plan->domains[aggregator].sets[0].offset,
                  at = (domain > geometry->start ? domain : geometry->start) / b->window_bytes % turn,
                  wanted = share_of(turn, aggregator, n);
    return (wanted >= at ? wanted - at : wanted - at + turn) % *windows;
}

/* Past the domain's windows: a number past them, too. */
static int64_t window_of(const mpiox_call *call, int aggregator, int64_t round)
{
    int64_t windows;
    if (call->turn == 0)
        return round;
    const int64_t begin = first_window(call, aggregator, &windows);
    if (round >= windows)
        return round;
    return round < windows - begin ? round + begin : round + begin - windows;
}

bool mpiox_window_rounds(const mpiox_call *call, int aggregator, int64_t set, mpiox_interval bytes,
                         mpiox_interval *rounds)
{
    const mpiox_buffers *b = call->b;
    int64_t windows;
    if (!mpiox_plan_windows_between(b->plan, aggregator, b->window_bytes, set, bytes, rounds))
        return false;
    if (call->turn == 0)
        return true;
    const int64_t begin = first_window(call, aggregator, &windows);
    if (rounds->first < begin && begin < rounds->last) { /* from before the first round's window to behind it */
        *rounds = (mpiox_interval){0, windows};
        return true;
    }
    const int64_t by = rounds->first >= begin ? -begin : windows - begin;
    rounds->first += by;
    rounds->last += by;
    return true;
}

int64_t mpiox_window_round_after(const mpiox_call *call, int aggregator, int64_t round, int64_t next)
{
    const mpiox_buffers *b = call->b;
    const mpiox_interval all = {call->first, call->last}, rest = {next, call->last};
    mpiox_interval found;
    int64_t windows;
    const int64_t begin = first_window(call, aggregator, &windows), window = window_of(call, aggregator, round),
                  end = window < begin ? begin : windows; /* windows up to there follow one another */
    if (mpiox_plan_windows_between(b->plan, aggregator, b->window_bytes, 0, rest, &found)) {
        const int64_t from = found.first > window ? found.first : window + 1;
        if (from < end)
            return round + from - window;
    }
    if (window < begin || !mpiox_plan_windows_between(b->plan, aggregator, b->window_bytes, 0, all, &found) ||
        found.first >= begin)
        return INT64_MAX;
    return windows - begin + found.first;
}

/* ---- what a window holds ----------------------------------------------------------------------------------------- */

int64_t mpiox_window_extents(const mpiox_call *call, int aggregator, int64_t round, mpiox_extent *list)
{
    const mpiox_buffers *b = call->b;
    const mpiox_reduction *s = &call->reduction;
    const int64_t room = b->extents_max - MPIOX_OCCUPIED_MAX;
    /* The plan's extents go to the end of the scratch list, the kept parts to its front: a window gains at most one
     * extent per occupied interval, so the two never meet. */
    mpiox_extent *planned = list + MPIOX_OCCUPIED_MAX;
    const int64_t n = mpiox_plan_window(b->plan, aggregator, b->window_bytes, window_of(call, aggregator, round),
                                        planned, room);
    int64_t kept = 0;
    int32_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        const mpiox_extent extent = planned[i];
        const int64_t end = extent.offset + extent.length;
        while (k < s->n_occupied && s->occupied[k].last <= extent.offset)
            k++;
        for (int32_t j = k; j < s->n_occupied && s->occupied[j].first < end; j++) {
            const int64_t from = s->occupied[j].first > extent.offset ? s->occupied[j].first : extent.offset;
            const int64_t to = s->occupied[j].last < end ? s->occupied[j].last : end;
            list[kept++] = (mpiox_extent){from, to - from};
        }
    }
    return kept;
}

int64_t mpiox_window_next_round(const mpiox_call *call, int64_t round)
{
    int64_t low = 0, high = call->n_used;
    if (call->n_used == 0)
        return round;
    while (low < high) { /* the first span that ends behind `round` */
        const int64_t middle = low + (high - low) / 2;
        if (call->used[middle].last <= round)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == call->n_used)
        return call->rounds;
    return call->used[low].first > round ? call->used[low].first : round;
}

bool mpiox_window_overlap(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                          mpiox_extent extent, int64_t *from, int64_t *to)
{
    int64_t p = mpiox_typemap_position(view, extent.offset - displacement);
    int64_t q = mpiox_typemap_position(view, extent.offset + extent.length - displacement);
    *from = p > position ? p : position;
    *to = q < position + length ? q : position + length;
    return *from < *to;
}

void mpiox_window_copy(mpiox_call *call, mpiox_buffer_slot *slot, const mpiox_extent *extents, int64_t n)
{
    mpiox_buffers *b = call->b;
    const mpiox_request *request = call->request;
    char *buffer = mpiox_slot_buffer(b, slot);
    const int64_t eof = call->write ? INT64_MAX : atomic_load(&slot->eof);
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_COPYING);
    for (int64_t i = 0, at = 0; i < n; at += extents[i++].length) {
        mpiox_extent extent = extents[i];
        int64_t from, to;
        if (extent.offset >= eof)
            break;
        if (extent.offset + extent.length > eof)
            extent.length = eof - extent.offset;
        if (extent.offset >= call->last || extent.offset + extent.length <= call->first ||
            !mpiox_window_overlap(b->file->view, b->file->displacement, request->position, request->length, extent,
                                  &from, &to))
            continue;
        const mpiox_memory_layout file = {buffer + at, b->file->view, b->file->displacement - extent.offset, from};
        if (mpiox_call_copy(call, &file, from, to - from) != MPIOX_OK)
            break;
        if (call->mark)
            mpiox_copy_mark(mpiox_slot_map(b, slot) + at / call->granule, 0, call->granule, &file, to - from);
    }
    mpiox_parts_on(before);
}
