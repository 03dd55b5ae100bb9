/*
 * mpiox_aggregators.c - which ranks are aggregators: cb_nodes of them, spread over the nodes, as cb_config_list allows.
 *
 * cb_config_list is ROMIO's: a comma-separated list of NAME[:MAX]; NAME is a processor name or '*' (any node), MAX a
 * number or '*' (all ranks of the node), 1 when left out. The first entry that matches a node counts. Aggregator i goes
 * to node i mod nodes, then to the next rank of that node, so that consecutive file domains lie on different nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_exchange_impl.h"

/* Aggregators that the list allows on a node of this name; `ranks` when it allows all. */
static int allowed(const char *list, const char *name, int ranks) {
    if (!*list)
        return ranks;
    const size_t name_length = strlen(name);
    for (const char *entry = list; *entry;) {
        const size_t length = strcspn(entry, ",");
        const char *colon = memchr(entry, ':', length);
        const size_t word = colon ? (size_t) (colon - entry) : length;
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

/* The number when the hints leave it open: on a local file system two per node keep two cores' caches busy; on a
 * striped one, as many as there are servers if the nodes can carry them. */
static int default_number(const mpiox_exchange *x) {
    const mpiox_team *team = x->team;
    if (x->layout.coherent || x->layout.servers <= 1)
        return team->n_nodes * 2;
    int number = x->layout.servers;
    while (number * 2 <= team->n_nodes)
        number *= 2;
    return number;
}

/* How many aggregators every node may carry: collective, since names of other nodes are not known here. */
static int gather_capacity(const mpiox_exchange *x, int *capacity) {
    const mpiox_team *team = x->team;
    int mine = allowed(x->hints.cb_config_list, team->node_name ? team->node_name : "", team->node_size);
    if (team->n_nodes == 1) {
        capacity[0] = mine;
        return MPIOX_OK;
    }
    if (team->leader_comm != MPI_COMM_NULL &&
        PMPI_Allgather(&mine, 1, MPI_INT, capacity, 1, MPI_INT, team->leader_comm) != MPI_SUCCESS)
        return MPIOX_E_MPI;
    return PMPI_Bcast(capacity, team->n_nodes, MPI_INT, 0, team->node_comm) == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

int mpiox_aggregators_choose(mpiox_exchange *x) {
    mpiox_team *team = x->team;
    int *capacity = calloc((size_t) team->n_nodes, sizeof *capacity);
    int total = 0, code = capacity ? gather_capacity(x, capacity) : MPIOX_E_NOMEM;
    for (int n = 0; code == MPIOX_OK && n < team->n_nodes; n++)
        total += capacity[n];
    if (code == MPIOX_OK && total == 0) { /* a list that matches no node would leave nobody to do the I/O */
        for (int n = 0; n < team->n_nodes; n++)
            total += capacity[n] = 1;
    }
    int wanted = x->hints.cb_nodes > 0 ? x->hints.cb_nodes : default_number(x);
    wanted = wanted < total ? wanted : total;
    x->aggregators = calloc((size_t) (wanted > 0 ? wanted : 1), sizeof *x->aggregators);
    x->local = calloc((size_t) (wanted > 0 ? wanted : 1), sizeof *x->local);
    if (code == MPIOX_OK && (!x->aggregators || !x->local))
        code = MPIOX_E_NOMEM;
    for (int round = 0; code == MPIOX_OK && x->n_aggregators < wanted; round++)
        for (int n = 0; n < team->n_nodes && x->n_aggregators < wanted; n++)
            if (round < capacity[n]) {
                if (n == team->node)
                    x->local[x->n_local++] = x->n_aggregators;
                x->aggregators[x->n_aggregators++] = team->node_ranks[team->node_start[n] + round];
            }
    free(capacity);
    return code;
}
