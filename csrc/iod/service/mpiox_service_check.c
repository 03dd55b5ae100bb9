/* mpiox_service_check.c - see mpiox_service_check.h. */
#include "mpiox_service_check.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Numbers of the release that runs; this library may have been compiled with another one. */
static int release(const char *name, int *major, int *minor)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    const char *at;
    int length = 0;

    if (PMPI_Get_library_version(text, &length) != MPI_SUCCESS || (at = strstr(text, name)) == NULL)
        return 0;
    at += strcspn(at, "0123456789");
    return sscanf(at, "%d.%d", major, minor) == 2;
}

#ifdef OPEN_MPI

/* mpirun of Open MPI 4 hands its daemon's address to the ranks; a program that was started without it has a daemon too,
 * its own, which finds its executables only where PATH leads to them. */
mpiox_service_launcher mpiox_service_check_launcher(const char **reason)
{
    int major = 0, minor = 0;

    *reason = NULL;
    if (!release("Open MPI", &major, &minor) || major != 4)
        *reason = "spawning is known to be safe only with Open MPI 4 and MPICH 4.1 or later";
    else if (getenv("OMPI_COMM_WORLD_SIZE") == NULL || getenv("OMPI_MCA_orte_hnp_uri") == NULL)
        *reason = "the program was not started by mpirun, which would have to spawn";
    else if (getenv("OMPI_MCA_orte_rankfile") != NULL || getenv("OMPI_MCA_rmaps") != NULL ||
             getenv("OMPI_MCA_rmaps_rank_file_path") != NULL)
        *reason = "mpirun places processes by a list, in which spawned ones are missing";
    return *reason == NULL ? MPIOX_LAUNCHER_ORTE : MPIOX_LAUNCHER_NONE;
}

#else

/* Is this process in another process-id namespace than its proxy? Then the socket between them has no peer process,
 * seen from here, and MPI_Comm_spawn of MPICH ends with a segmentation fault. */
static bool apart_from_proxy(void)
{
    const char *fd = getenv("PMI_FD");
    struct ucred maker = {.pid = 1};
    socklen_t bytes = sizeof maker;

    return fd != NULL && getsockopt(atoi(fd), SOL_SOCKET, SO_PEERCRED, &maker, &bytes) == 0 && maker.pid == 0;
}

/* Hydra's proxies control their ranks by a pipe, but for those that srun has started in an allocation. Slurm's PMI-2
 * names its job, which Hydra does not (MPICH 5.0.2, Slurm 22.05.8). */
static bool under_slurm(void)
{
    return getenv("HYDI_CONTROL_FD") == NULL && getenv("SLURM_STEP_ID") != NULL && getenv("PMI_JOBID") == NULL;
}

mpiox_service_launcher mpiox_service_check_launcher(const char **reason)
{
    int major = 0, minor = 0;

    *reason = NULL;
    if (!release("MPICH Version", &major, &minor) || major < 4 || (major == 4 && minor < 1))
        *reason = "spawning is known to be safe only with Open MPI 4 and MPICH 4.1 or later";
    else if (getenv("PMI_RANK") == NULL)
        *reason = "the program was not started by mpiexec, which would have to spawn";
    else if (getenv("MPI_LOCALNRANKS") == NULL || (getenv("HYDI_CONTROL_FD") == NULL && !under_slurm()))
        *reason = "the program was not started by MPICH's own mpiexec (Hydra)";
    else if (under_slurm() && getenv("SLURM_OVERLAP") == NULL)
        *reason = "Slurm lets the step of spawned processes wait for the end of the program's; SLURM_OVERLAP=1 before "
                  "mpiexec lets both run";
    else if (apart_from_proxy())
        *reason = "the ranks have process ids of their own, with which MPI_Comm_spawn of MPICH fails";
    return *reason == NULL ? MPIOX_LAUNCHER_HYDRA : MPIOX_LAUNCHER_NONE;
}

#endif
