/*
 * mpiox_launcher.c - see mpiox_launcher.h.
 *
 * Algorithm. Launchers set the number of processes in the environment. A process is alone by mistake if MPI_COMM_WORLD
 *            has one rank, some launcher has set more processes, and no launcher has set one. The number of ranks
 *            decides, not the kind of launcher: an MPI library that understands another library's launcher (by PMIx)
 *            has all its ranks, and the library prints no line.
 */
#include "mpiox_launcher.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_other_abi.h"
#include "mpiox_print.h"

static const struct {
    const char *size, *rank, *words;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's"},
    {"PMI_SIZE", "PMI_RANK", "the launcher of MPICH or its kin"},
};

void mpiox_launcher_check(void)
{
    int size = 0, chosen = -1;

    if (PMPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS || size != 1)
        return;
    for (int i = 0; i < (int)(sizeof launchers / sizeof launchers[0]); i++) {
        const char *value = getenv(launchers[i].size);

        if (value != NULL && atoi(value) == 1)
            return;
        if (value != NULL && atoi(value) > 1 && chosen < 0)
            chosen = i;
    }
    if (chosen >= 0) {
        const char *rank = getenv(launchers[chosen].rank);

        if (rank == NULL || strcmp(rank, "0") == 0)
            mpiox_print(
                "mpiio_ext: this program uses %s and its launcher is %s: each of the %s processes is a job of one "
                "rank and writes every file completely; start it with the mpiexec of its own MPI\n",
                mpiox_other_abi_own(), launchers[chosen].words, getenv(launchers[chosen].size));
    }
}
