/*
 * mpiox_preload_check.h - do all ranks of a communicator have this library?
 *
 * Problem.   Opening a file is a collective of the library beside that of the MPI library. Ranks that were started
 *            without it do not take part, and the others would hang: children of MPI_Comm_spawn, which no launcher
 *            preloads; partners of MPI_Comm_connect; some of the programs of one mpiexec line.
 * Algorithm. The ranks in question cannot be queried, so every rank judges alone, by facts that are the same for all
 *            ranks. Ranks outside its own MPI_COMM_WORLD count as ranks without it. Inside it, the rank finds the
 *            processes of its node in /proc: one that has an MPI library mapped and not this one was started without
 *            it. That is certain, because the library is mapped before MPI_Init, and MPI_Init returns only when all
 *            ranks have called it.
 * Promise.   If some ranks of a group do not have it, every rank that has the library refuses the group. A rank without
 *            it on another node is not detected.
 */
#ifndef MPIOX_PRELOAD_CHECK_H
#define MPIOX_PRELOAD_CHECK_H

#include <mpi.h>
#include <stdbool.h>

typedef struct mpiox_preload_check {
    const char *without_library; /* why the file must be left to the MPI library; NULL: every rank has the library */
    bool first;                  /* of the ranks that are known to have it, this one is the lowest */
    bool whole_world;            /* the group is that of MPI_COMM_WORLD */
} mpiox_preload_check;

/* comm: an intracommunicator. Local, without communication. */
void mpiox_preload_check_examine(MPI_Comm comm, mpiox_preload_check *out);
/* MPI_COMM_WORLD may be used: MPI_Init has been called (a session does not do) and MPI_Finalize is not over. */
bool mpiox_preload_check_world(void);

#endif
