/*
 * mpiox_owners.c - which aggregator has which file domain, where the method leaves that open.
 *
 * Problem.   Between nodes bytes cross for nothing when a domain's aggregator is on another node than the ranks that
 *            access it, as with blocks of an array.
 * Algorithm. What a node accesses of a domain is estimated: its bytes are spread evenly over its range. Domain after
 *            domain goes to the node that accesses most of it and has an aggregator left; the one that would have it
 *            anyway has precedence among equals. Of cyclic domains what counts is the part of the region that they are
 *            dealt over: the sub-region of a group. Where all nodes' ranges span nearly all of the region (pieces in
 *            turn) there is no choice. Every rank computes the same, from what the nodes bring; a call like the one
 *            before keeps its order.
 * Guarantee. As many domains on every node as without. Local.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective_impl.h"

typedef struct placing {
    const mpiox_buffers *b;
    int *left; /* [n_nodes] aggregators without a domain */
} placing;

/* Bytes that the node accesses between the first and the last byte of the domain, estimated. */
static double accesses(const placing *p, int domain, int node)
{
    const mpiox_node_access *access = &p->b->nodes[node];
    const mpiox_domain *d = &p->b->plan->domains[domain];
    if (d->n_sets == 0 || access->range.first >= access->range.last)
        return 0;
    const mpiox_stripe_set *last = &d->sets[d->n_sets - 1];
    const int64_t begin = d->sets[0].offset, end = last->offset + (last->count - 1) * last->stride + last->length;
    const int64_t from = begin > access->range.first ? begin : access->range.first,
                  to = end < access->range.last ? end : access->range.last;
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

/* The node for a domain that `usual` has by default. */
static int choose(const placing *p, int domain, int usual)
{
    int best = p->left[usual] > 0 ? usual : -1;
    double most = best < 0 ? -1 : accesses(p, domain, best);
    for (int n = 0; n < p->b->file->topology->n_nodes; n++) {
        const double bytes = p->left[n] > 0 ? accesses(p, domain, n) : -1;
        if (bytes > most) {
            most = bytes;
            best = n;
        }
    }
    return best;
}

/* b->aggregators in a new order; next[n]: in `order`, from which on to look for an aggregator of node n. */
static void place(const placing *p, mpiox_buffers *b, const int *order, int *next)
{
    const int *node_of = b->file->topology->node_of;
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
    const placing p = {b, scratch};
    const int code = scratch && collective->order && collective->owners_nodes ? MPIOX_OK : MPIOX_E_NOMEM;
    if (code == MPIOX_OK) {
        memcpy(b->aggregators, collective->order, sizeof *b->aggregators * n);
        if (b->plan->method->any_owner && b->plan->method->any_owner(b->plan) && has_choice(&p))
            place(&p, b, collective->order, scratch + nodes);
        list_local(b);
    }
    free(scratch);
    return code;
}
