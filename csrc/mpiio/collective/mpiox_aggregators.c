/*
 * mpiox_aggregators.c - the choice of aggregators: their number is from cb_nodes or the rules of `auto`; they are
 * spread over the nodes that cb_config_list allows.
 *
 * cb_config_list is ROMIO's: a comma-separated list of NAME[:MAX]; NAME is a processor name or '*' (any node), MAX a
 * number or '*' (all ranks of the node), 1 when left out. The first entry that matches a node counts. Aggregator i goes
 * to node i mod nodes, then to the next rank of that node, so that consecutive file domains lie on different nodes.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_collective_impl.h"
#include "mpiox_print.h"

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

bool mpiox_aggregators_are_local(const mpiox_file *file)
{
    return mpiox_topology_one_node(file->topology) || !*file->hints.cb_config_list;
}

/* The number of aggregators that each node may have. Without a list it is the number of its ranks, which every rank
 * knows; a list's numbers for other nodes are not known here: collective, if there are several. `all` is NULL without
 * memory; no rank leaves the others waiting. */
static int gather_capacities(const mpiox_buffers *b, int *all)
{
    mpiox_topology *topology = b->file->topology;
    const char *list = b->file->hints.cb_config_list; /* the same on every rank */
    const char *name = topology->node_name ? topology->node_name : "";
    const int mine = allowed(list, name, topology->node_size);
    if (mpiox_aggregators_are_local(b->file)) {
        for (int n = 0; all && n < topology->n_nodes; n++)
            all[n] = *list ? mine : topology->node_start[n + 1] - topology->node_start[n];
        return all ? MPIOX_OK : MPIOX_E_NOMEM;
    }
    const int code = mpiox_topology_lowest(topology, all ? MPIOX_OK : MPIOX_E_NOMEM);
    if (code != MPIOX_OK || !all)
        return code;
    if (topology->leader_comm != MPI_COMM_NULL &&
        PMPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, topology->leader_comm) != MPI_SUCCESS)
        all[0] = -1; /* for the ranks of this node to see */
    if (PMPI_Bcast(all, topology->n_nodes, MPI_INT, 0, topology->node_comm) != MPI_SUCCESS || all[0] < 0)
        return MPIOX_E_MPI;
    return MPIOX_OK;
}

int mpiox_aggregators_choose(mpiox_buffers *b)
{
    mpiox_topology *topology = b->file->topology;
    int *capacities = calloc((size_t)topology->n_nodes, sizeof *capacities);
    int total = 0, code = gather_capacities(b, capacities);
    for (int n = 0; code == MPIOX_OK && n < topology->n_nodes; n++)
        total += capacities[n];
    if (code == MPIOX_OK && total == 0) { /* a list that matches no node would leave no rank to do the I/O */
        static atomic_bool printed;
        if (topology->rank == 0 && !atomic_exchange(&printed, true))
            mpiox_print("mpiio_ext: cb_config_list=%s allows no node of the job: each has one aggregator\n",
                        b->file->hints.cb_config_list);
        for (int n = 0; n < topology->n_nodes; n++)
            total += capacities[n] = 1;
    }
    int32_t wanted = 0;
    if (code == MPIOX_OK)
        code = mpiox_choose_settings(b, total, topology->nics, &wanted);
    b->aggregators = calloc((size_t)(wanted > 0 ? wanted : 1), sizeof *b->aggregators);
    b->local = calloc((size_t)(wanted > 0 ? wanted : 1), sizeof *b->local);
    if (code == MPIOX_OK && (!b->aggregators || !b->local))
        code = MPIOX_E_NOMEM;
    for (int round = 0; code == MPIOX_OK && b->n_aggregators < wanted; round++)
        for (int n = 0; n < topology->n_nodes && b->n_aggregators < wanted; n++)
            if (round < capacities[n]) {
                if (n == topology->node)
                    b->local[b->n_local++] = b->n_aggregators;
                b->aggregators[b->n_aggregators++] = topology->node_ranks[topology->node_start[n] + round];
            }
    free(capacities);
    return code;
}
