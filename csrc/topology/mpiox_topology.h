/*
 * mpiox_topology.h - which ranks of a file share a node, and what they do together there.
 *
 * A topology is made for a group of ranks once and then reused: opening a second file on the same group costs nothing
 * here. Rank 0 chooses the topology, so that all ranks use the same one even when several threads open files. Beside
 * the maps of ranks and nodes it owns
 *   - the communicators of this library,
 *   - a small shared page per node for barriers, agreements and the shared file pointer (mpiox_topology_page.c),
 *   - one shared segment per node, which the collective buffers of the file in use lie in.
 * MPIOX_RANKS_PER_NODE (hint mpiox_ranks_per_node) splits a node into pretended ones for tests.
 *
 * Every function takes the number of nodes into account, so that callers need not: between nodes the leader (rank 0 of
 * each node) talks to the other leaders while the ranks of its node wait.
 */
#ifndef MPIOX_TOPOLOGY_H
#define MPIOX_TOPOLOGY_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_segment.h"

typedef struct mpiox_topology_page mpiox_topology_page; /* in shared memory */

typedef struct mpiox_topology {
    MPI_Comm comm;        /* only this library uses it; MPI_COMM_SELF when there is one rank */
    MPI_Comm node_comm;   /* the ranks of this node, in rank order; comm itself when there is one node */
    MPI_Comm leader_comm; /* rank 0 of every node, in node order; MPI_COMM_NULL on other ranks and with one node */
    int rank, size;
    int node, n_nodes;
    int node_rank, node_size;
    int *node_of;       /* [size] node of a rank */
    int *local_of;      /* [size] rank within its node */
    int *node_start;    /* [n_nodes + 1] into node_ranks */
    int *node_ranks;    /* [size] ranks, grouped by node, ascending */
    char *node_name;    /* processor name of this node; NULL without memory */
    int ranks_per_node; /* the hint it was made for */
    bool threads;       /* every rank's MPI library supports MPI_THREAD_MULTIPLE */
    bool one_opener;    /* no rank's does: no rank can open two files at once (mpiox_topology_bcast) */
    bool foreground;    /* of the file in use: no thread of this library shall carry out its collectives */
    mpiox_segment page_segment;
    mpiox_topology_page *page; /* of this node; shared unless there is one rank */
    uint32_t told;             /* calls of mpiox_topology_bcast() so far; the same on every rank */
    mpiox_segment segment;     /* collective buffers; empty until mpiox_topology_segment() */
    bool segment_placed;       /* its pages have been touched by those who use them most */
    uint64_t segment_layout;   /* what the segment was laid out for */
    uint64_t id;
    bool temporary; /* goes with the file that it was made for; the same on every rank */
    bool in_use;
    uint32_t views; /* views of all its files, opening included, counted on: selects the shared file pointer in use */
    struct mpiox_topology *next;
} mpiox_topology;

/* ---- making one (mpiox_topology_make.c) -------------------------------------------------------------------------- */

/* Rank 0's choice, which the caller brings to the other ranks. */
typedef struct mpiox_topology_choice {
    uint64_t id;
    int32_t fresh; /* no free topology of this group: a new one has to be made */
    int32_t ranks_per_node;
} mpiox_topology_choice;

/* Rank 0 only, local: a free topology of this group, now reserved, or a fresh one. mpiox_topology_join() must follow on
 * all ranks. */
mpiox_topology_choice mpiox_topology_choose(MPI_Comm comm, int ranks_per_node);
/* Follow rank 0's choice, on every rank. Local unless it is fresh; then collective over comm and blocking. 0,
 * MPIOX_E_FULL (no room for shared memory), MPIOX_E_UNSUPPORTED (ranks of a node do not see the memory of each other),
 * MPIOX_E_NOMEM or MPIOX_E_MPI (no communicator left, say), the same on all ranks. */
int mpiox_topology_join(MPI_Comm comm, const mpiox_topology_choice *choice, mpiox_topology **out);
/* Each rank releases once every rank is done with the topology. Local; NULL-safe. */
void mpiox_topology_release(mpiox_topology *topology);
/* Collective over the node, blocking: make topology->segment `bytes` bytes laid out as `layout` says (any number
 * that differs when the layout does). The present segment stays, with what is in it, if it was made for the same
 * layout; otherwise a new, zero-filled one takes its place, so that no byte of an old layout is read as something
 * else. Codes as of mpiox_topology_join(), the same on all ranks. */
int mpiox_topology_segment(mpiox_topology *topology, int64_t bytes, uint64_t layout, mpiox_error *error);
/* Free every topology that is not in use, and each of the others when it is released. While MPI_Finalize runs. */
void mpiox_topology_finalize(void);

/* Can a thread of this library carry out a collective while the program goes on? With one node no MPI call is
 * needed, with several the MPI library must support threads. The same on all ranks; local. */
static inline bool mpiox_topology_background(const mpiox_topology *topology)
{
    return !topology->foreground && (topology->n_nodes == 1 || topology->threads);
}
/* Do all ranks share memory? Local. */
static inline bool mpiox_topology_one_node(const mpiox_topology *topology)
{
    return topology->n_nodes == 1;
}
/* Is it known that all ranks of MPI_COMM_WORLD are on one node, as the hint has it? False where nothing says so.
 * Local. */
bool mpiox_topology_world_on_one_node(int ranks_per_node);

/* ---- collectives of this library (mpiox_topology_page.c) ------------------------------------------------------------
 *
 * Each is collective over the topology's ranks, blocking and synchronising, and lets MPI progress while a rank waits.
 * As MPI's collectives: every rank calls the same ones in the same order, one at a time; while a collective runs in the
 * background, none of them may be called by another thread. */

enum { MPIOX_TOPOLOGY_VALUES = 3, MPIOX_TOPOLOGY_NOTE_BYTES = 256, MPIOX_TOPOLOGY_TEXT_BYTES = 8192 };

/* Barrier over the ranks of this node. `serial` (may be NULL) runs on one rank when all have arrived and before any
 * leaves: with several nodes on the leader, which may talk to the other leaders there. */
void mpiox_topology_barrier(mpiox_topology *topology, void (*serial)(void *context), void *context);
/* Each of the n <= MPIOX_TOPOLOGY_VALUES values becomes the lowest that any rank brings; `note` (NULL: none; at most
 * MPIOX_TOPOLOGY_NOTE_BYTES) becomes rank 0's. 0 or MPIOX_E_MPI, the same on all ranks of a node. */
int mpiox_topology_min(mpiox_topology *topology, int n, int *values, void *note, int64_t bytes);
/* True if every rank says so. */
bool mpiox_topology_all(mpiox_topology *topology, bool mine);
/* The lowest code of all ranks; at most MPIOX_E_MPI when that cannot be found out. */
int mpiox_topology_lowest(mpiox_topology *topology, int code);
/* Every rank gets the error of the lowest rank that has one, with the rank filled in; returns its code. */
int mpiox_topology_agree_error(mpiox_topology *topology, mpiox_error *error);
/* The same; meanwhile each of the n < MPIOX_TOPOLOGY_VALUES values becomes the lowest that any rank brings. */
int mpiox_topology_agree(mpiox_topology *topology, mpiox_error *error, int n, int *values);
/* all[i] = what node i's leader brings, `bytes` bytes each. Only inside the `serial` function of a barrier, on the
 * rank that runs it. False: MPI failed. */
bool mpiox_topology_gather_nodes(mpiox_topology *topology, const void *mine, size_t bytes, void *all);

/* Rank 0's `bytes` bytes reach every rank of comm: MPI_Bcast, without the MPI library when a file was open on these
 * ranks before, they are on one node, none has MPI_THREAD_MULTIPLE, and the bytes are at most
 * MPIOX_TOPOLOGY_TEXT_BYTES. Rank 0 does not wait for the others unless they have not read what came before.
 * MPI_SUCCESS or MPI's error code. */
int mpiox_topology_bcast(MPI_Comm comm, void *data, int64_t bytes);

/* The shared file pointer of a file whose ranks share one node: a word of the page, in etypes. */
_Atomic int64_t *mpiox_topology_pointer(mpiox_topology *topology, uint32_t view);

/* ---- waiting (mpiox_topology_wait.c) ----------------------------------------------------------------------------- */

/* Idle work of a rank that waits in shared memory: other ranks may need this one's MPI library on their way. Always
 * false. Does nothing in a thread that must not call MPI. */
bool mpiox_topology_progress(void *topology);
/* From now on (or, with false, no longer) the calling thread must not call MPI: it is one of this library's, and
 * the MPI library does not support threads. Local. */
void mpiox_topology_forbid_mpi(bool forbid);
/* Wait for requests, doing `work` (may be NULL) meanwhile. MPI_Wait of some libraries spins, which starves the very
 * rank that it waits for when ranks outnumber cores. Local. 0, or MPIOX_E_MPI when one of them has failed: then
 * what it was to bring is not there. */
int mpiox_topology_wait(int n, MPI_Request *requests, bool (*work)(void *context), void *context);
/* The same for one nonblocking operation, which MPI returned `code` for. */
int mpiox_topology_finish(int code, MPI_Request *request);

/* ---- inside this folder ------------------------------------------------------------------------------------------ */

int64_t mpiox_topology_page_bytes(int node_size);
/* Rank 0's bytes reach every rank of a topology of one node; see mpiox_topology_bcast(). */
void mpiox_topology_tell(mpiox_topology *topology, void *data, int64_t bytes);
/* The topology of `comm` whose page carries mpiox_topology_bcast(), NULL when there is none; the same on every rank. */
mpiox_topology *mpiox_topology_of(MPI_Comm comm);

#endif
