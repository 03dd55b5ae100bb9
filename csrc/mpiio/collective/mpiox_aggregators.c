/*
 * mpiox_aggregators.c - which ranks are aggregators: as many as cb_nodes or the rules of `auto` say, spread over the
 * nodes, as cb_config_list allows.
 *
 * cb_config_list is ROMIO's: a comma-separated list of NAME[:MAX]; NAME is a processor name or '*' (any node), MAX a
 * number or '*' (all ranks of the node), 1 when left out. The first entry that matches a node counts. Aggregator i goes
 * to node i mod nodes, then to the next rank of that node, so that consecutive file domains lie on different nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective_impl.h"

/* Aggregators that the list allows on a node of this name; `ranks` when it allows all. */
static int allowed(const char *list, const char *name, int ranks)
{
    if (!*list)
        return ranks;
    const size_t name_length = strlen(name);
    for (const char *entry = list; *entry;) {
        const size_t length = strcspn(entry, ",");
        const char *colon = memchr(entry, ':', length);
        const size_t word = colon ? (size_t)(colon - entry) : length;
        if ((word == 1 && *entry == '*') || (word == name_length && strncmp(entry, name, word) == 0)) {
            if (!colon)
                return 1;
            if (colon[1] == '*')
                return ranks;
            const int max = atoi(colon + 1);
            return max < 0 ? 0 : max < ranks ? max : ranks;
        }
        entry += length + (entry[length] == ',');
    }
    return 0;
}

typedef struct node_facts {
    int capacity; /* aggregators that it may carry */
    int nics;     /* its network cards; 0: none is known */
} node_facts;

/* Those of every node: collective, since other nodes are not known here. `all` is NULL without memory; no rank leaves
 * the others waiting. */
static int gather_facts(const mpiox_buffers *b, node_facts *all)
{
    mpiox_topology *topology = b->file->topology;
    node_facts mine = {.capacity = allowed(b->file->hints.cb_config_list,
                                           topology->node_name ? topology->node_name : "", topology->node_size)};
    if (mpiox_topology_one_node(topology)) {
        if (all)
            all[0] = mine;
        return all ? MPIOX_OK : MPIOX_E_NOMEM;
    }
    const int code = mpiox_topology_lowest(topology, all ? MPIOX_OK : MPIOX_E_NOMEM);
    if (code != MPIOX_OK || !all)
        return code;
    if (topology->leader_comm != MPI_COMM_NULL) {
        mine.nics = mpiox_topology_nics();
        if (PMPI_Allgather(&mine, 2, MPI_INT, all, 2, MPI_INT, topology->leader_comm) != MPI_SUCCESS)
            all[0].capacity = -1; /* for the ranks of this node to see */
    }
    if (PMPI_Bcast(all, 2 * topology->n_nodes, MPI_INT, 0, topology->node_comm) != MPI_SUCCESS || all[0].capacity < 0)
        return MPIOX_E_MPI;
    return MPIOX_OK;
}

/* Network cards of the node that has the fewest. */
static int fewest_nics(const node_facts *nodes, int n)
{
    int fewest = nodes[0].nics;
    for (int i = 1; i < n; i++)
        fewest = nodes[i].nics < fewest ? nodes[i].nics : fewest;
    return fewest;
}

int mpiox_aggregators_choose(mpiox_buffers *b)
{
    mpiox_topology *topology = b->file->topology;
    node_facts *nodes = calloc((size_t)topology->n_nodes, sizeof *nodes);
    int total = 0, code = gather_facts(b, nodes);
    for (int n = 0; code == MPIOX_OK && n < topology->n_nodes; n++)
        total += nodes[n].capacity;
    if (code == MPIOX_OK && total == 0) { /* a list that matches no node would leave nobody to do the I/O */
        for (int n = 0; n < topology->n_nodes; n++)
            total += nodes[n].capacity = 1;
    }
    int32_t wanted = 0;
    if (code == MPIOX_OK)
        code = mpiox_choose_settings(b, total, fewest_nics(nodes, topology->n_nodes), &wanted);
    b->aggregators = calloc((size_t)(wanted > 0 ? wanted : 1), sizeof *b->aggregators);
    b->local = calloc((size_t)(wanted > 0 ? wanted : 1), sizeof *b->local);
    if (code == MPIOX_OK && (!b->aggregators || !b->local))
        code = MPIOX_E_NOMEM;
    for (int round = 0; code == MPIOX_OK && b->n_aggregators < wanted; round++)
        for (int n = 0; n < topology->n_nodes && b->n_aggregators < wanted; n++)
            if (round < nodes[n].capacity) {
                if (n == topology->node)
                    b->local[b->n_local++] = b->n_aggregators;
                b->aggregators[b->n_aggregators++] = topology->node_ranks[topology->node_start[n] + round];
            }
    free(nodes);
    return code;
}
