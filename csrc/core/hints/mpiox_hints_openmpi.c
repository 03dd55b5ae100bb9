/*
 * mpiox_hints_openmpi.c - see mpiox_hints_openmpi.h.
 *
 * The folder is fixed when Open MPI is built, and no function returns it. OPAL_SYSCONFDIR and OPAL_PREFIX move it, as
 * they do for Open MPI; else it is etc beside the folder of libmpi, or /etc/openmpi, where distributions put it.
 */
#include "mpiox_hints_openmpi.h"

#include <mpi.h>
#include <stddef.h>

#ifdef OPEN_MPI

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[PATH_MAX];

static bool has_parameters(const char *path)
{
    char file[PATH_MAX + 32];

    snprintf(file, sizeof file, "%s/openmpi-mca-params.conf", path);
    return access(file, F_OK) == 0;
}

/* etc beside the folder of the library that has PMPI_Init. */
static bool beside_library(void)
{
    char library[PATH_MAX];
    Dl_info found;

    if (dladdr((void *)(size_t)PMPI_Init, &found) == 0 || found.dli_fname == NULL ||
        realpath(found.dli_fname, library) == NULL)
        return false;
    snprintf(folder, sizeof folder, "%.*s/etc", (int)sizeof folder - 8, dirname(dirname(library)));
    return has_parameters(folder);
}

static void find_folder(void)
{
    const char *given = getenv("OPAL_SYSCONFDIR"), *prefix = getenv("OPAL_PREFIX");

    if (given != NULL && given[0] != '\0')
        snprintf(folder, sizeof folder, "%s", given);
    else if (prefix != NULL && prefix[0] != '\0')
        snprintf(folder, sizeof folder, "%s/etc", prefix);
    else if (!beside_library())
        snprintf(folder, sizeof folder, "/etc/openmpi");
}

const char *mpiox_hints_openmpi_folder(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_folder);
    return folder;
}

#else

const char *mpiox_hints_openmpi_folder(void)
{
    return NULL;
}

#endif
