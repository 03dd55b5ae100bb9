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

#include <stdbool.h>

/* What does not look by MPI may look now: the file has its own name, and all that is closed is in it, also where it was
 * a scratch file, which a line tells. False: others of the job have it open for too long, or the file system refuses
 * it. Local, blocking. */
bool mpiox_mpi_staging_await_path(const char *path);

#endif
