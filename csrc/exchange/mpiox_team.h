/*
 * mpiox_team.h - the ranks that share a file, by node, with the shared memory of each node.
 *
 * A team is made for a group of ranks once and then reused: opening a second file on the same group costs nothing here.
 * Rank 0 picks the team, so that all ranks pick the same one even when several threads open files.
 * MPIOX_RANKS_PER_NODE (hint mpiox_ranks_per_node) splits a node into pretended ones for tests.
 */
#ifndef MPIOX_TEAM_H
#define MPIOX_TEAM_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_lobby.h"
#include "mpiox_segment.h"

typedef struct mpiox_team {
    MPI_Comm comm;        /* only this library uses it; MPI_COMM_SELF when there is one rank */
    MPI_Comm node_comm;   /* the ranks of this node, in rank order; comm itself when there is one node */
    MPI_Comm leader_comm; /* rank 0 of every node, in node order; MPI_COMM_NULL on other ranks and with one node */
    int rank, size;
    int node, n_nodes;
    int node_rank, node_size;
    int *node_of;    /* [size] node of a rank */
    int *local_of;   /* [size] rank within its node */
    int *node_start; /* [n_nodes + 1] into node_ranks */
    int *node_ranks; /* [size] ranks, grouped by node, ascending */
    char *node_name; /* processor name of this node */
    int ranks_per_node; /* the hint it was made for */
    mpiox_segment segment; /* collective buffers; empty until mpiox_team_segment() */
    bool segment_placed;     /* its pages have been touched by those who use them most */
    uint64_t segment_layout; /* what the segment was laid out for */
    mpiox_segment lobby_segment;
    mpiox_lobby lobby;     /* one node of several ranks; page NULL: there is none, on every rank */
    bool lobby_of_group;   /* no rank may open two files at once: rank 0 may tell through it what its choice is */
    uint64_t id;
    bool temporary;        /* goes with the file that it was made for; the same on every rank */
    bool in_use;
    uint32_t turn; /* views of all its files, opening included, counted on: which shared file pointer is in use */
    struct mpiox_team *next;
} mpiox_team;

/* Rank 0's choice, local: the id of a free team of this group, now reserved, or a new id with *fresh set. */
uint64_t mpiox_team_offer(MPI_Comm comm, int ranks_per_node, int32_t *fresh);
/* What rank 0 has chosen, on every rank. Local unless it is fresh; then collective over comm and blocking: MPIOX_E_NOMEM or
 * MPIOX_E_MPI (no communicator left, say), the same on all ranks. */
int mpiox_team_join(MPI_Comm comm, uint64_t id, bool fresh, int ranks_per_node, mpiox_team **out);
/* Local: what the ranks of `comm` may speak through before a team is chosen, NULL when there is nothing; the same answer on
 * every rank. Programs with MPI_THREAD_MULTIPLE get NULL: two threads may open files on one group in any order. */
mpiox_lobby *mpiox_team_lobby(MPI_Comm comm);
/* Local: is it known that all ranks of MPI_COMM_WORLD are on one node, as the hint has it? False where nothing says. */
bool mpiox_team_world_on_one_node(int ranks_per_node);
/* Collective by order (each rank releases once every rank is done with the team); local in cost. */
void mpiox_team_release(mpiox_team *team);
/* Collective over the node: make team->segment `bytes` bytes laid out as `layout` says (any number that differs when the
 * layout does). The present segment stays, with what is in it, if it was made for the same layout; otherwise a new,
 * zero-filled one takes its place, so that no byte of an old layout is read as something else. All ranks of the node get
 * the same answer: 0, MPIOX_E_FULL (no room), MPIOX_E_UNSUPPORTED (ranks do not see the memory of each other),
 * MPIOX_E_NOMEM or MPIOX_E_MPI. */
int mpiox_team_segment(mpiox_team *team, int64_t bytes, uint64_t layout, mpiox_error *error);
/* Free every team that is not in use, and each of the others when it is released. While MPI_Finalize runs. */
void mpiox_team_finalize(void);

#endif
