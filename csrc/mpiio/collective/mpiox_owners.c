/*
 * mpiox_owners.c - the aggregator of each file domain, if the method leaves it open.
 *
 * Problem.   Between nodes bytes cross the network needlessly if a domain's aggregator is on another node than the
 *            ranks that access it, as with blocks of an array.
 * Algorithm. The estimate of a node's bytes in a domain spreads the node's bytes evenly over the node's range. One
 *            after the other, each domain goes to the node that accesses most of the domain and has an aggregator left;
 *            among equal nodes the default node has precedence. A cyclic domain counts with the part of the region that
 *            it covers: the sub-region of a group. If all nodes' ranges span nearly all of the region (interleaved
 *            pieces) there is no choice. Every rank computes the same from the nodes' contributions; a call like the
 *            one before keeps its order. The nodes are sorted by the ranks' ranges, with the furthest end so far. So a
 *            search finds the few nodes whose ranges can meet a domain: with ten thousand nodes and twice as many
 *            domains it does not compare every pair.
 * Guarantee. Every node has as many domains as in the default order. Work in proportion to n log n of the nodes, and to
 *            the pairs of domain and node between the first and the last range that meet. Local.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective_impl.h"

typedef struct ranged { /* a node that accesses something */
    mpiox_interval range;
    int64_t reach; /* the furthest end of this range and those before it */
    int node;
} ranged;

typedef struct placing {
    const mpiox_buffers *b;
    int *left;         /* [n_nodes] aggregators without a domain */
    ranged *ranges;    /* [n_ranges] ascending beginnings */
    int n_ranges, any; /* any: no node below it has an aggregator left */
    int64_t looks;     /* at a node for a domain, so far */
} placing;

/* From the first to the last byte of the domain; empty: it has none. */
static mpiox_interval span(const placing *p, int domain)
{
    const mpiox_domain *d = &p->b->plan->domains[domain];
    if (d->n_sets == 0)
        return (mpiox_interval){0, 0};
    const mpiox_stripe_set *last = &d->sets[d->n_sets - 1];
    return (mpiox_interval){d->sets[0].offset, last->offset + (last->count - 1) * last->stride + last->length};
}

/* Bytes that the node accesses of the span, estimated. */
static double accesses(placing *p, mpiox_interval domain, int node)
{
    const mpiox_node_access *access = &p->b->nodes[node];
    const int64_t from = domain.first > access->range.first ? domain.first : access->range.first,
                  to = domain.last < access->range.last ? domain.last : access->range.last;
    p->looks++;
    return from < to
               ? (double)access->bytes * ((double)(to - from) / (double)(access->range.last - access->range.first))
               : 0;
}

/* Do some nodes' ranges leave an eighth of the region or more? */
static bool has_choice(const placing *p)
{
    const mpiox_geometry *g = &p->b->plan->geometry;
    for (int n = 0; n < p->b->file->topology->n_nodes; n++) {
        const mpiox_interval range = p->b->nodes[n].range;
        if (range.first < range.last && range.last - range.first <= (g->end - g->start) / 8 * 7)
            return true;
    }
    return false;
}

static int by_beginning(const void *a, const void *b)
{
    const ranged *p = a, *q = b;
    if (p->range.first != q->range.first)
        return p->range.first < q->range.first ? -1 : 1;
    return p->node - q->node;
}

static void sort_ranges(placing *p)
{
    int64_t reach = INT64_MIN;
    p->n_ranges = 0;
    for (int n = 0; n < p->b->file->topology->n_nodes; n++)
        if (p->b->nodes[n].range.first < p->b->nodes[n].range.last)
            p->ranges[p->n_ranges++] = (ranged){p->b->nodes[n].range, 0, n};
    qsort(p->ranges, (size_t)p->n_ranges, sizeof *p->ranges, by_beginning);
    for (int i = 0; i < p->n_ranges; i++) {
        reach = p->ranges[i].range.last > reach ? p->ranges[i].range.last : reach;
        p->ranges[i].reach = reach;
    }
}

/* The first of the ranges that reaches beyond the offset. */
static int first_beyond(const placing *p, int64_t offset)
{
    int low = 0, high = p->n_ranges;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (p->ranges[middle].reach > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The node for a domain whose default is `usual`; among others that access equally much the lowest. */
static int choose(placing *p, int domain, int usual)
{
    const mpiox_interval of = span(p, domain);
    const bool keeps = p->left[usual] > 0;
    int best = usual;
    double most = keeps ? accesses(p, of, usual) : 0;
    if (!keeps) { /* the lowest, if none accesses the domain */
        while (p->left[p->any] == 0)
            p->any++;
        best = p->any;
    }
    for (int i = first_beyond(p, of.first); i < p->n_ranges && p->ranges[i].range.first < of.last; i++) {
        const int node = p->ranges[i].node;
        const double bytes = p->left[node] > 0 ? accesses(p, of, node) : 0;
        if (bytes > most || (bytes == most && bytes > 0 && !(keeps && best == usual) && node < best)) {
            most = bytes;
            best = node;
        }
    }
    return best;
}

/* b->aggregators in a new order; next[n]: where in `order` the search for an aggregator of node n begins. */
static void place(placing *p, mpiox_buffers *b, const int *order, int *next)
{
    const int *node_of = b->file->topology->node_of;
    sort_ranges(p);
    for (int a = 0; a < b->n_aggregators; a++)
        p->left[node_of[order[a]]]++;
    for (int d = 0; d < b->n_aggregators; d++) {
        const int node = choose(p, d, node_of[order[d]]);
        while (node_of[order[next[node]]] != node)
            next[node]++;
        b->aggregators[d] = order[next[node]++];
        p->left[node]--;
    }
}

static void list_local(mpiox_buffers *b)
{
    const mpiox_topology *topology = b->file->topology;
    b->n_local = 0;
    for (int a = 0; a < b->n_aggregators; a++)
        if (topology->node_of[b->aggregators[a]] == topology->node)
            b->local[b->n_local++] = a;
}

/* Are the nodes' accesses those that the present order was made for? Keeps them if not. */
static bool is_known(mpiox_collective *collective)
{
    const mpiox_buffers *b = &collective->buffers;
    const size_t bytes = sizeof *b->nodes * (size_t)b->file->topology->n_nodes;
    if (collective->owners_nodes && collective->owners_plan == b->plan->method &&
        memcmp(collective->owners_nodes, b->nodes, bytes) == 0)
        return true;
    if (!collective->owners_nodes)
        collective->owners_nodes = malloc(bytes);
    if (collective->owners_nodes)
        memcpy(collective->owners_nodes, b->nodes, bytes);
    collective->owners_plan = b->plan->method;
    return false;
}

int mpiox_owners_choose(mpiox_collective *collective)
{
    mpiox_buffers *b = &collective->buffers;
    const size_t n = (size_t)b->n_aggregators, nodes = (size_t)b->file->topology->n_nodes;
    if (mpiox_topology_one_node(b->file->topology) || is_known(collective))
        return MPIOX_OK;
    if (!collective->order) {
        collective->order = malloc(sizeof *collective->order * (n + 1));
        if (collective->order)
            memcpy(collective->order, b->aggregators, sizeof *collective->order * n);
    }
    int *scratch = calloc(2 * nodes, sizeof *scratch);
    placing p = {.b = b, .left = scratch, .ranges = malloc(sizeof *p.ranges * nodes)};
    const int code = scratch && p.ranges && collective->order && collective->owners_nodes ? MPIOX_OK : MPIOX_E_NOMEM;
    if (code == MPIOX_OK) {
        memcpy(b->aggregators, collective->order, sizeof *b->aggregators * n);
        if (b->plan->method->any_owner && b->plan->method->any_owner(b->plan) && has_choice(&p))
            place(&p, b, collective->order, scratch + nodes);
        list_local(b);
    }
    free(p.ranges);
    free(scratch);
    return code;
}
