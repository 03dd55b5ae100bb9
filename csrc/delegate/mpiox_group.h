/*
 * mpiox_group.h - the delegates of a job, as a process of the program sees them: where they are, how they were started.
 *
 *   mpiox_group.c        the group of this process; joining and leaving; choosing a mode
 *   mpiox_group_spawn.c  MPI_Comm_spawn of the executable mpiio-ext-delegate
 *   mpiox_group_split.c  ranks of MPI_COMM_WORLD that serve instead of computing
 *   mpiox_group_thread.c threads of the program's own processes
 *   mpiox_group_check.c  pre-flight checks: can this MPI, under this launcher, spawn so many processes?
 *   mpiox_delegate_main.c what a delegate process does from its start to its end
 *
 * There is one group per job, over all ranks of MPI_COMM_WORLD, for all its files. It starts in MPI_Init when the
 * environment asks for delegates (every rank sees the same variables), otherwise at the first opening of a file by all
 * ranks with the hint. After that the MPI library is needed no more: clients of a delegate's node map its memory,
 * others connect to it (mpiox_link.h); spawned delegates disconnect from the program at once, so that neither side's
 * MPI_Finalize waits for the other.
 */
#ifndef MPIOX_GROUP_H
#define MPIOX_GROUP_H

#include <mpi.h>

#include "mpiox_cache.h"
#include "mpiox_hints.h"
#include "mpiox_link.h"
#include "mpiox_segment.h"

typedef struct mpiox_delegate { /* one delegate, seen from this process */
    int32_t index, node;        /* node: as in the topology of MPI_COMM_WORLD (pretended nodes count) */
    bool local;                 /* this process maps its memory */
    mpiox_segment segment;      /* local */
    mpiox_cache cache;          /* local */
    int client;                 /* id by mpiox_ring_join() (local) */
    mpiox_link *link;           /* not local */
    char host[64];
    int64_t pid;
} mpiox_delegate;

typedef enum mpiox_group_mode {
    MPIOX_GROUP_NONE = 0,
    MPIOX_GROUP_SPAWN,
    MPIOX_GROUP_SPLIT,
    MPIOX_GROUP_THREAD
} mpiox_group_mode;

typedef struct mpiox_group {
    int32_t count;
    mpiox_delegate *delegates; /* [count] */
    mpiox_group_mode mode;
    int64_t page_bytes, cap_bytes; /* of each delegate */
    char id[64];                   /* names the group for `mpiio-ext delegates status` */
    char reason[160];              /* why this mode, or why there is no group */
} mpiox_group;

bool mpiox_group_wanted(const mpiox_hints *hints); /* more than 0 delegates are asked for; local */
/* Collective over comm, blocking, agreed by all ranks: the group of the job, started if need be. comm must hold all
 * ranks of MPI_COMM_WORLD unless the group is there already. NULL: there are none, and *reason (static or in the process's
 * group, never NULL) says why. No step waits longer than hints->delegate_timeout; nothing hangs; a group that could not
 * be started is not tried again. */
mpiox_group *mpiox_group_get(MPI_Comm comm, const mpiox_hints *hints, const char **reason);
/* The group if it exists. Local. */
mpiox_group *mpiox_group_current(void);
/* MPI_Init is done: start the group if the environment asks for it. Collective over MPI_COMM_WORLD. */
void mpiox_group_init(void);
/* MPI_Finalize begins: leave. Local, except in thread mode, where a process that hosts a delegate waits until everyone
 * has left. */
void mpiox_group_finalize(void);
/* Is that delegate serving? If it has died, rescue its pages first (local) or wait until that is done (not local).
 * Local; may block while pages are being rescued. */
bool mpiox_delegate_is_serving(mpiox_delegate *delegate);

/* split mode: carve comm (MPI_COMM_WORLD as a rule): on the ranks that become delegates this serves until the program
 * ends, then returns with *mine == MPI_COMM_NULL; on the others *mine is the communicator of the program. Collective. */
int mpiox_group_split(MPI_Comm comm, int delegates, MPI_Comm *mine);

#endif
