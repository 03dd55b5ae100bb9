/*
 * mpiox_topology.h - the nodes of a file's ranks, and the operations of a node's ranks together.
 *
 * A topology is made for a group of ranks once and then reused: the opening of a second file on the same group costs
 * nothing here. Rank 0 chooses the topology, so that all ranks use the same one even if several threads open files.
 * Beside the maps of ranks and nodes it owns
 *   - a small shared page per node for barriers, agreements and the shared file pointer (mpiox_topology_page.c),
 *   - one shared segment per node, which contains the collective buffers of the file in use,
 *   - if the group spans several nodes, communicators of this library. The ranks of one node need none: communicators
 *     are scarce (MPICH has 2048 in all), and the program could not have those that this library uses.
 *
 * A process keeps the topologies that it used last, for the next file of the same group (mpiox_topology_keep.c).
 * MPIOX_RANKS_PER_NODE (hint mpiox_ranks_per_node) splits a node into pretended ones for tests.
 *
 * Every function deals with any number of nodes, so that callers need not: between nodes the leader (rank 0 of each
 * node) communicates with the other leaders while the ranks of its node wait.
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
#include "mpiox_text.h"
#include "mpiox_wait.h"

typedef struct mpiox_topology_page mpiox_topology_page; /* in shared memory */

enum { MPIOX_TOPOLOGY_BEFORE_BYTES = 128 };

typedef struct mpiox_topology {
    MPI_Group group;      /* its ranks, in their order */
    MPI_Comm comm;        /* only this library uses it; with one node MPI_COMM_NULL until mpiox_topology_own_comm() */
    MPI_Comm node_comm;   /* several nodes: the ranks of this one, in rank order; else MPI_COMM_NULL */
    MPI_Comm leader_comm; /* several nodes: rank 0 of every node, in node order; MPI_COMM_NULL on other ranks */
    int rank, size;       /* this rank in the group; ranks of the group */
    int node, n_nodes;    /* this rank's node; nodes of the group */
    int node_rank, node_size; /* this rank in its node; ranks of its node */
    int *node_of;             /* [size] node of a rank */
    int *local_of;            /* [size] rank within its node */
    int *node_start;          /* [n_nodes + 1] into node_ranks */
    int *node_ranks;          /* [size] ranks, grouped by node, ascending */
    char *node_name;          /* processor name of this node; NULL without memory */
    int nics;                 /* several nodes: network cards of the node with the fewest; 0: not known */
    int ranks_per_node;       /* the hint for which this topology was made */
    bool threads;             /* every rank's MPI library supports MPI_THREAD_MULTIPLE */
    bool one_opener;          /* no rank's does: no rank can open two files at once (mpiox_topology_bcast) */
    bool foreground;          /* of the file in use: a tool hides MPI_Wait, so that nonblocking accesses are not ours */
    mpiox_wait_limit limit;   /* of waits for other ranks; `seconds` is of the file in use */
    mpiox_segment page_segment; /* memory of `page` */
    mpiox_topology_page *page;  /* of this node; shared unless there is one rank */
    _Atomic uint32_t steps;     /* steps that this rank has ended so far (mpiox_topology_end_step()) */
    uint32_t published;         /* calls of mpiox_topology_bcast() so far; the same on every rank */
    uint64_t agreements;        /* of the leaders on lowest values, so far; the same on every leader */
    MPI_Request *answers;    /* of the other nodes, from the next one on, while this leader waits for them; or NULL */
    mpiox_segment segment;   /* collective buffers; empty until mpiox_topology_segment() */
    bool segment_placed;     /* the ranks that use its pages most have touched them */
    uint64_t segment_layout; /* the layout number of the segment */
    uint64_t id;             /* the same on every rank */
    uint64_t last_used;      /* on this rank: counts uses of all topologies */
    bool temporary;          /* freed with the file for which it was made; the same on every rank */
    bool in_use;             /* a file has reserved it */
    uint32_t views; /* views of all its files, opening included, counted on: selects the shared file pointer in use */
    unsigned char file_before[MPIOX_TOPOLOGY_BEFORE_BYTES]; /* facts of its last file; the same on every rank */
    bool knows_file_before;                                 /* file_before is valid; the same on every rank */
    struct mpiox_topology *next;                            /* of the cached ones */
} mpiox_topology;

/* Number of cards of a fast network (Slingshot, InfiniBand, RoCE, Omni-Path, EFA) with a link on this host
 * (mpiox_topology_nics.c); 0: not known. Local. */
int mpiox_topology_nics(void);

/* ---- making one and keeping it (mpiox_topology_make.c, ..._keep.c, ..._memory.c) --------------------------------- */

/* Rank 0's choice, which the caller sends to the other ranks. */
typedef struct mpiox_topology_choice {
    uint64_t id;                /* of the topology */
    int32_t fresh;              /* no free topology of this group: the ranks have to make a new one */
    int32_t ranks_per_node;     /* the hint */
    mpiox_segment_address page; /* fresh: address of a page for the whole group on one node; bytes 0: none */
} mpiox_topology_choice;

/* Rank 0 only, local: a free topology of this group, now reserved, or a fresh one. mpiox_topology_join() must follow on
 * all ranks. */
mpiox_topology_choice mpiox_topology_choose(MPI_Comm comm, int ranks_per_node);
/* Follow rank 0's choice, on every rank. Local unless it is fresh; then collective over comm and blocking. 0,
 * MPIOX_E_FULL (no room for shared memory), MPIOX_E_UNSUPPORTED (ranks of a node do not see the memory of each other),
 * MPIOX_E_NOMEM or MPIOX_E_MPI (for example, no communicator left), the same on all ranks. */
int mpiox_topology_join(MPI_Comm comm, const mpiox_topology_choice *choice, mpiox_topology **out);
/* Make topology->comm if there is none yet. Collective over comm, which has the same ranks, blocking. 0 or MPIOX_E_MPI
 * (for example, no communicator left), the same on all ranks. */
int mpiox_topology_own_comm(mpiox_topology *topology, MPI_Comm comm);
/* A communicator of the same ranks for this library alone, which returns its errors. Collective over comm, blocking. 0,
 * or MPIOX_E_MPI and *out == MPI_COMM_NULL; the ranks do not agree on the result. */
int mpiox_topology_copy_comm(MPI_Comm comm, MPI_Comm *out);
/* Release the topology on this rank, once every rank is done with it. Local; NULL-safe. */
void mpiox_topology_release(mpiox_topology *topology);
/* Collective over the node, blocking: make topology->segment `bytes` bytes with the layout number `layout` (any number
 * that differs when the layout does). The present segment stays, with its contents, if it was made for the same layout;
 * otherwise a new, zero-filled one takes its place, so that no byte of an old layout is misread. Codes as of
 * mpiox_topology_join(), the same on all ranks. */
int mpiox_topology_segment(mpiox_topology *topology, int64_t bytes, uint64_t layout, mpiox_error *error);
/* Does the present segment have this size and layout, so that mpiox_topology_segment() would keep it? Local, the same
 * on all ranks of the node. */
bool mpiox_topology_segment_fits(const mpiox_topology *topology, int64_t bytes, uint64_t layout);
/* Free every topology that is not in use now, and each other one at its release. While MPI_Finalize runs. */
void mpiox_topology_finalize(void);

/* Can a thread of this library carry out a collective while the program goes on? With one node no MPI call is
 * needed, with several the MPI library must support threads. The same on all ranks; local. */
static inline bool mpiox_topology_background(const mpiox_topology *topology)
{
    return !topology->foreground && (topology->n_nodes == 1 || topology->threads);
}
/* May this library carry out every access, so that the MPI library need not know views and pointers? The same on all
 * ranks; local. */
static inline bool mpiox_topology_takes_all(const mpiox_topology *topology)
{
    return !topology->foreground;
}
/* Do all ranks share memory? Local. */
static inline bool mpiox_topology_one_node(const mpiox_topology *topology)
{
    return topology->n_nodes == 1;
}
/* Does the hint show that all ranks of MPI_COMM_WORLD are on one node? False if it is unknown. Local. */
bool mpiox_topology_world_on_one_node(int ranks_per_node);

/* ---- collectives of this library (mpiox_topology_page.c) ------------------------------------------------------------
 *
 * Each is collective over the topology's ranks, blocking and synchronising, and lets MPI progress while a rank waits.
 * As MPI's collectives: every rank calls the same ones in the same order, one at a time; while a collective runs in the
 * background, none of them may be called by another thread. */

enum {
    MPIOX_TOPOLOGY_VALUES = 6,
    MPIOX_TOPOLOGY_SUMS = 2,
    MPIOX_TOPOLOGY_NODE_VALUES = 5,
    MPIOX_TOPOLOGY_NOTE_BYTES = 512,
    MPIOX_TOPOLOGY_TEXT_BYTES = 8192
};

/* Barrier over the ranks of this node. `serial` (may be NULL) runs on one rank after all have arrived and before any
 * leaves: with several nodes on the leader, which may communicate with the other leaders there. */
void mpiox_topology_barrier(mpiox_topology *topology, void (*serial)(void *context), void *context);
/* Append the ranks that this one waits for at a barrier: "rank 1", "ranks 1, 3-5", of other nodes "some of ranks 4-7".
 * False: there are none, or a lower rank of this node waits for the same ones. For the thread that waits. */
bool mpiox_topology_put_awaited(const mpiox_topology *topology, mpiox_text *out);
/* Each of the n <= MPIOX_TOPOLOGY_VALUES values becomes the lowest that any rank brings; `note` (NULL: none, on all
 * ranks; at most MPIOX_TOPOLOGY_NOTE_BYTES) becomes rank 0's. 0, or MPIOX_E_MPI and both are as before; the same on
 * all ranks of a node. */
int mpiox_topology_min(mpiox_topology *topology, int n, int *values, void *note, int64_t bytes);
/* True if it is true on every rank. */
bool mpiox_topology_all(mpiox_topology *topology, bool mine);
/* True if every rank brings the same value and the same word. */
bool mpiox_topology_same(mpiox_topology *topology, int64_t value, int word);
/* The lowest code of all ranks; at most MPIOX_E_MPI if the ranks cannot agree. */
int mpiox_topology_lowest(mpiox_topology *topology, int code);
/* The `bytes` <= MPIOX_TOPOLOGY_NOTE_BYTES bytes of rank `root` reach every rank. 0 or MPIOX_E_MPI. */
int mpiox_topology_spread(mpiox_topology *topology, int root, void *data, int64_t bytes);
/* before[i] = sum of mine[i] of all lower ranks; total[i]: of all ranks. 0 or MPIOX_E_MPI. */
int mpiox_topology_sums(mpiox_topology *topology, const int64_t mine[MPIOX_TOPOLOGY_SUMS],
                        int64_t before[MPIOX_TOPOLOGY_SUMS], int64_t total[MPIOX_TOPOLOGY_SUMS]);
/* Every rank gets the error of the lowest rank that has one, with the rank filled in; returns its code. */
int mpiox_topology_agree_error(mpiox_topology *topology, mpiox_error *error);
/* The same; meanwhile each of the n < MPIOX_TOPOLOGY_VALUES values becomes the lowest that any rank brings. */
int mpiox_topology_agree(mpiox_topology *topology, mpiox_error *error, int n, int *values);
/* Steps that overlap, if mpiox_topology_one_node(): a rank ends its part of a step without waiting. Before its next
 * step it waits until every rank has ended as many. Local; _wait_steps() blocks, in any thread that may call MPI, or
 * with a wait that does not call it. */
void mpiox_topology_end_step(mpiox_topology *topology);
void mpiox_topology_wait_steps(mpiox_topology *topology);
/* Only inside the `serial` function of a barrier, on the rank that runs it; false: MPI failed. The leaders: all[i] =
 * the data of node i, `bytes` bytes each (up to 16 nodes: a message from each to each); each of n <=
 * MPIOX_TOPOLOGY_NODE_VALUES values becomes the lowest of all nodes; *error becomes that of `node` on each leader that
 * calls this, after the same agreement on which node has one: none waits for a leader that does not know. */
bool mpiox_topology_gather_nodes(mpiox_topology *topology, const void *mine, size_t bytes, void *all);
bool mpiox_topology_lowest_of_nodes(mpiox_topology *topology, int n, int64_t *values);
bool mpiox_topology_spread_error(mpiox_topology *topology, int node, mpiox_error *error);

/* Rank 0's `bytes` bytes reach every rank of comm. This is MPI_Bcast, or works without the MPI library if a file was
 * open on these ranks before, they are on one node, none has MPI_THREAD_MULTIPLE, and the bytes are at most
 * MPIOX_TOPOLOGY_TEXT_BYTES. Rank 0 does not wait for the others unless they have not read its last message.
 * MPI_SUCCESS or MPI's error code. */
int mpiox_topology_bcast(MPI_Comm comm, void *data, int64_t bytes);

/* The shared file pointer of a file whose ranks share one node: a word of the page, in etypes. */
_Atomic int64_t *mpiox_topology_pointer(mpiox_topology *topology, uint32_t view);

/* ---- waiting (mpiox_topology_wait.c) ----------------------------------------------------------------------------- */

/* Idle work of a rank that waits in shared memory: other ranks may need this rank's MPI library before they arrive.
 * Always false. Does nothing in a thread that must not call MPI. */
bool mpiox_topology_progress(void *topology);
/* From now on (or, with false, no longer) the calling thread must not call MPI: it is one of this library's, and
 * the MPI library does not support threads. Local. */
void mpiox_topology_forbid_mpi(bool forbid);
/* End the job, whose ranks would otherwise wait for ever; does not return (mpiox_topology_abort.c). */
_Noreturn void mpiox_topology_abort(const mpiox_topology *topology);
/* Wait for requests, doing `work` (may be NULL) meanwhile. MPI_Wait of some libraries spins; if ranks outnumber cores,
 * that starves the very rank that it waits for. Local. 0, or MPIOX_E_MPI if a request has failed: then its data has not
 * arrived. */
int mpiox_topology_wait(int n, MPI_Request *requests, bool (*work)(void *context), void *context);
/* The same for one nonblocking operation, for which MPI returned `code`. */
int mpiox_topology_finish(int code, MPI_Request *request);

/* ---- inside this folder ------------------------------------------------------------------------------------------ */

int64_t mpiox_topology_page_bytes(int node_size);
/* The calling process is this rank of the node. */
void mpiox_topology_introduce(mpiox_topology_page *page, int node_rank);
/* mpiox_wait_limit.is_over of a topology: has a rank of this node died? */
bool mpiox_topology_is_over(void *topology, const char *what, bool again);
/* Broadcast rank 0's bytes to every rank of a topology of one node; see mpiox_topology_bcast(). False, on a rank other
 * than 0: rank 0 has given the topology up, and sends its choices in another way. */
bool mpiox_topology_publish(mpiox_topology *topology, void *data, int64_t bytes);
/* One node, not in use. Rank 0: give it up, if every rank has read all messages; returns whether it has. */
bool mpiox_topology_page_give_up(mpiox_topology *topology);
/* Other ranks: has rank 0 given it up? _ask(): another rank asks rank 0 to give it up; rank 0: does a rank ask? */
bool mpiox_topology_page_given_up(const mpiox_topology *topology);
void mpiox_topology_page_ask(mpiox_topology *topology, bool give_up);
bool mpiox_topology_page_asked(const mpiox_topology *topology);

/* How many more topologies this process may cache, with communicators and without, and how many communicators it may
 * make. The process frees those that were not used for longest. Local. */
typedef struct mpiox_topology_room {
    int plain, with_comms, comms; /* topologies without communicators; topologies with them; communicators */
} mpiox_topology_room;
mpiox_topology_room mpiox_topology_make_room(void);
/* Cache a topology, in use now, for later files. */
void mpiox_topology_keep(mpiox_topology *topology);
/* The topology that rank 0 has chosen; NULL when it is fresh. */
mpiox_topology *mpiox_topology_find(MPI_Comm comm, const mpiox_topology_choice *choice);
/* Rank 0, once: the memory at choice->page. False: there is none. */
bool mpiox_topology_take_page(const mpiox_topology_choice *choice, mpiox_segment *out);
/* The topology of `comm` whose page carries mpiox_topology_bcast(), NULL when there is none; the same on every rank. */
mpiox_topology *mpiox_topology_of(MPI_Comm comm);
/* Free a topology, and remove it from the cached ones. Local. NULL-safe. */
void mpiox_topology_free(mpiox_topology *topology);

/* Collective over the node: zero-filled memory of all its ranks. Codes as of mpiox_topology_join(). */
int mpiox_topology_share(mpiox_topology *topology, int64_t bytes, mpiox_segment *out, mpiox_error *error);

#endif
