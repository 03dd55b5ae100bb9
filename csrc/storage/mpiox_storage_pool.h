/*
 * mpiox_storage_pool.h - few descriptors for many open files.
 *
 * Problem.    The MPI library holds a descriptor of every open file, and this library needs one besides: a program
 *             would run into the limit (ulimit -n) at half as many files.
 * Algorithm.  A process keeps a sixteenth of the limit open, and next to none when the limit is near; what was not
 *             used for longest is closed, and opened again when it is used. A handle is pinned while its descriptor is
 *             in use or holds a lock. That it is the same file again is seen by its device and inode. Where its name
 *             does not lead there any more (it was renamed or removed), /proc/self/fd does, by the descriptor of the
 *             MPI library.
 * Guarantee.  The process has at most a sixteenth of the limit (at least 4) more descriptors than the program would
 *             have by itself, and 3 when it is near the limit, beside those pinned at once. Handles with a back end
 *             before posix (direct I/O, fault injection) keep theirs.
 */
#ifndef MPIOX_STORAGE_POOL_H
#define MPIOX_STORAGE_POOL_H

#include "mpiox_storage.h"

/* An open handle of `path`: from now on its descriptor may be closed while nobody uses it. flags: as it was opened
 * with. Without memory for that it keeps it. */
void mpiox_storage_pool_add(mpiox_storage *storage, const char *path, int flags);
/* It is about to be closed; its descriptor may be -1 then. What closing has met before: 0 or an errno. */
int mpiox_storage_pool_remove(mpiox_storage *storage);
/* open(2) of a further handle's descriptor, for which another one is closed if need be. The descriptor or -errno. */
int mpiox_storage_pool_open(const char *path, int flags);

#endif
