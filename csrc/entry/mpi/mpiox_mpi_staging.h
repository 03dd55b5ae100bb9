/* mpiox_mpi_staging.h - for who looks past MPI for a file that may have another name until it is whole. */
#ifndef MPIOX_MPI_STAGING_H
#define MPIOX_MPI_STAGING_H

#include "mpiox_opener.h"

/* What does not look by MPI may look now: the file has its own name, and all that is closed is in it, also where it was
 * a scratch file, which a line tells. Not where others of the job have it open for too long. True: delegates have
 * nothing of it. Local, blocking. */
static inline bool mpiox_mpi_staging_await_path(const char *path)
{
    return mpiox_staged_opener.await == NULL || mpiox_staged_opener.await(path);
}

#endif
