/*
 * mpiox_mpi_staging.h - by which name a file is opened: its own, or that which it has until all of it is written.
 *
 * Problem.   With mpiox_close=staged a file that is made has a staging name until delegates have written it. The
 *            program knows it by its own name, all the time: it may open it again, in another way, or delete it.
 * Algorithm. A file with a staging name is open, or closed and being written; then it has its own name, and is as any
 *            other. Rank 0 looks before the file is opened. If it was closed, the rank waits until it has its name. If
 *            the file system refuses its bytes, the open is refused, and they stay with the delegates. If others have
 *            it open, or it is a scratch file, rank 0 has the delegates hold it until all ranks have opened it, and
 *            tells the others that the name is the staging one.
 *            Somebody may rename the folder meanwhile. Rank 0 makes the file in the folder that it has found first,
 *            and compares what it has opened, and so do the delegates of its node: if it is another one, all of it
 *            begins again.
 * Guarantee. Files that exist keep their name. Where no delegates serve no file gets another name.
 */
#ifndef MPIOX_MPI_STAGING_H
#define MPIOX_MPI_STAGING_H

#include <limits.h>
#include <mpi.h>
#include <stdbool.h>

#include "mpiox_forwarded.h"
#include "mpiox_hints.h"

/* What rank 0 tells the others. Plain data. */
typedef struct mpiox_mpi_staging {
    bool hidden;       /* the file is opened by its staging name, */
    bool scratch;      /* which it keeps: it is never written */
    bool made;         /* it was made for this opening */
    bool striped;      /* with the hints' striping */
    bool held;         /* others have it open, or it is a scratch file: delegates have bytes of it */
    bool late;         /* the delegates have to be started before it can be made */
    double patience;   /* seconds that one who opens it waits while the file system refuses its bytes */
    mpiox_error error; /* or it cannot be opened now: the delegates have bytes of it that they cannot write */
    int guard;         /* > 0: rank 0's descriptor that says so, until the delegates do */
    int folder;        /* > 0: rank 0's descriptor of the folder in which it was made, */
    uint64_t device;   /* and what was made there: the path may lead to another folder by now. Not of subfiles. */
    uint64_t inode;
    int32_t unnamed; /* errno: why it has its own name, where it should have had the other; 0: not so */
    int32_t parts;   /* > 0: it is still to be made, as subfiles, for so many delegates */
} mpiox_mpi_staging;

typedef struct mpiox_mpi_staging_opening {
    const char *filename; /* the program's */
    int amode;
    const mpiox_hints *hints;
    bool wanted;   /* the file is to be taken over */
    bool subfiles; /* it is made as several, if it is made */
} mpiox_mpi_staging_opening;

/* What does not look by MPI may look now: the file has its own name, and all that is closed is in it, also where it was
 * a scratch file, which a line tells. False: others of the job have it open for too long, or the file system refuses
 * it. Local, blocking. */
bool mpiox_mpi_staging_await_path(const char *path);
/* Rank 0: is it there, or shall it be made? *hold: to be given to mpiox_mpi_staging_opened(). Local, blocking. */
mpiox_mpi_staging mpiox_mpi_staging_begin(const mpiox_mpi_staging_opening *opening, mpiox_forwarded_hold **hold);
/* Where `late`: start the delegates, then make it. Collective over comm. False: MPI has failed. */
bool mpiox_mpi_staging_start(MPI_Comm comm, const mpiox_mpi_staging_opening *opening, mpiox_mpi_staging *staging);
/* The name to open it by: `filename` itself, or one that lies in `room`. The same on all ranks. Local. */
const char *mpiox_mpi_staging_name(const mpiox_mpi_staging *staging, const char *filename, char room[PATH_MAX]);
/* The file has been opened, through delegates or not, or has not. Collective over comm where it was held, or made and
 * delegates do not have it. 0, or the same *error on all ranks: as of staging->error, or it does not get its own name.
 * It has to be closed again then. */
int mpiox_mpi_staging_opened(MPI_Comm comm, const mpiox_mpi_staging *staging, const char *name, bool opened,
                             bool through_delegates, mpiox_forwarded_hold *hold, mpiox_error *error);

#endif
