/*
 * mpiox_service_check.h - can this MPI, under this launcher, spawn processes, for certain?
 *
 * Problem.   MPI_Comm_spawn has no time limit, and if it fails the job is often lost with it. Observed:
 *              Open MPI 4.1, no free slot, host or executable: an error code, after which mpirun never ends.
 *              MPICH 5, an executable that is not there, or a program that no launcher has started: no return.
 *            MPI_UNIVERSE_SIZE does not help: it counts occupied slots, too.
 * Algorithm. Only combinations that are known to work are tried:
 *              Open MPI 4 under its own mpirun. Slots need not be free: the spawn's info requests oversubscription, and
 *              is stronger than mpirun's options. Hosts are named by their place in the allocation.
 *              MPICH 4.1 and later under Hydra, which knows no slots and starts processes on any host.
 *            Others, and srun, which cannot spawn for either, are refused with a reason.
 */
#ifndef MPIOX_SERVICE_CHECK_H
#define MPIOX_SERVICE_CHECK_H

typedef enum mpiox_service_launcher {
    MPIOX_LAUNCHER_NONE,
    MPIOX_LAUNCHER_ORTE,
    MPIOX_LAUNCHER_HYDRA
} mpiox_service_launcher;

/* The launcher that can spawn for this MPI; or NONE, and *reason explains why, in a few words. Local. */
mpiox_service_launcher mpiox_service_check_launcher(const char **reason);

#endif
