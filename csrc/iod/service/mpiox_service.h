/*
 * mpiox_service.h - the delegates of a job, as a process of the program sees them: where they are, how they were
 * started.
 *
 *   mpiox_service.c           the service of this process; choosing a mode
 *   mpiox_service_plan.c      how many delegates, on which nodes, with which settings
 *   mpiox_service_settings.c  the settings in force, and later hints
 *   mpiox_service_join.c      becoming a client of all of them, and leaving
 *   mpiox_service_patience.c  reports of long waits for a delegate
 *   mpiox_service_starting.c  reports of long waits while delegates start
 *   mpiox_service_thread.c    delegates in threads of the program's own processes
 *   mpiox_service_split.c     delegates on ranks of the program's own launch
 *   mpiox_service_spawn.c     delegates that MPI spawns
 *   mpiox_service_check.c     whether this MPI can spawn
 *   mpiox_service_call.c      connections of spawned processes to rank 0
 *   mpiox_service_heap.c      the program's malloc after a spawn
 *   mpiox_service_main.c      the program mpiio-ext-delegate
 *   mpiox_service_totals.c    the delegates' counters, for the statistics of the run
 *
 * There is one service per job, over all ranks of MPI_COMM_WORLD, for all its files. It starts in MPI_Init when the
 * environment requests delegates (every rank sees the same variables), otherwise at the first opening of a file by all
 * ranks with the hint. After that it needs the MPI library no more: clients of a delegate's node map its memory, others
 * connect to it (mpiox_link.h); spawned delegates disconnect from the program at once, so that neither side's
 * MPI_Finalize waits for the other.
 */
#ifndef MPIOX_SERVICE_H
#define MPIOX_SERVICE_H

#include <mpi.h>
#include <stdatomic.h>

#include "mpiox_process.h"
#include "mpiox_hints.h"

typedef enum mpiox_service_mode {
    MPIOX_SERVICE_NONE = 0,
    MPIOX_SERVICE_SPAWN,
    MPIOX_SERVICE_SPLIT,
    MPIOX_SERVICE_PROCESS,
    MPIOX_SERVICE_THREAD
} mpiox_service_mode;

typedef struct mpiox_service {
    int32_t count;                 /* delegates of the job */
    mpiox_process *delegates;      /* [count] */
    mpiox_service_mode mode;       /* how they were started; NONE: there are none */
    int64_t page_bytes, cap_bytes; /* of each delegate: bytes of a page of its cache, bytes of its segment */
    int32_t ranks;                 /* of the program */
    int32_t nodes;                 /* that MPI_COMM_WORLD runs on, pretended ones too */
    bool first;                    /* this process is its rank 0 */
    int64_t process;               /* its id: a child made by fork() is no client */
    char id[64];                   /* names the service for `mpiio-ext delegates status` */
    char reason[160];              /* why this mode, or why there is no service */
    mpiox_hints hints;             /* those it was started with */
} mpiox_service;

/* Are delegates requested: by the hint, or, if no source sets the hint, by a program that has made its ranks delegates?
 * Local; the same on all ranks. */
bool mpiox_service_wanted(const mpiox_hints *hints);
/* Collective over comm, blocking, agreed by all ranks: the service of the job, started if need be. comm must contain
 * all ranks of MPI_COMM_WORLD unless the service exists already. hints: the same on all ranks. NULL: there are no
 * delegates, and *reason (static or in the process's service, never NULL) explains why. No step waits longer than
 * hints->delegate_timeout; nothing hangs; a service that could not be started is not tried again. */
mpiox_service *mpiox_service_get(MPI_Comm comm, const mpiox_hints *hints, const char **reason);
/* The service if it exists. Local, without a lock. */
mpiox_service *mpiox_service_current(void);
/* The same, after MPI_Finalize too: until they end, the memory of this node's delegates is mapped, and they answer
 * requests; those of other nodes (delegate->left) do not. Callers after MPI_Finalize, or in threads that MPI does not
 * know, call it between these two functions. Local, without a lock. */
mpiox_service *mpiox_service_last(void);
void mpiox_service_begin_asking(void);
void mpiox_service_end_asking(void);
extern atomic_bool mpiox_service_was_there __attribute__((visibility("hidden"))); /* for a check at no cost */
/* Why it was started so, or why there is none. Local. */
const char *mpiox_service_reason(void);
const char *mpiox_service_mode_name(mpiox_service_mode mode);
/* Do the variables and files that are the same for every rank request delegates? Local. */
bool mpiox_service_is_asked_for(void);
/* MPI_Init is done, and they do: start the service. Collective over MPI_COMM_WORLD, all of whose ranks must have this
 * library. */
void mpiox_service_init(void);
/* MPI_Finalize begins: leave. Local, except in thread mode, where a process that hosts a delegate waits until everyone
 * has left. */
void mpiox_service_finalize(void);
/* split mode: split comm (MPI_COMM_WORLD as a rule): on the ranks that become delegates this serves until the program
 * ends, then returns with *mine == MPI_COMM_NULL; on the others *mine is the program's communicator: all ranks of comm,
 * when delegates could not be started. Collective; `delegates` is the same on all ranks. 0, MPIOX_E_ARG (no rank would
 * be left, or there are delegates already), MPIOX_E_UNSUPPORTED (not here) or MPIOX_E_MPI, the same on all ranks. */
int mpiox_service_split(MPI_Comm comm, int delegates, MPI_Comm *mine);

#endif
