/*
 * mpiox_storage_pool.h - few descriptors for many open files.
 *
 * Problem.    The MPI library holds a descriptor of every open file, and this library needs one besides: a program
 *             would run into the limit (ulimit -n) at half as many files.
 * Algorithm.  A process keeps a sixteenth of the limit open, and next to none when the limit is near; what was not
 *             used for longest is closed, and opened again when it is used. A handle is pinned while its descriptor is
 *             in use or holds a lock. What is closed must come back, whatever happens meanwhile: the file is renamed,
 *             removed or replaced, its permissions change, the process gives up its own, or has another root. So only
 *             those are closed whose file somebody else in this process holds open, as the MPI library does: a
 *             duplicate of that descriptor can always be had, and while it is there no other file can get the device
 *             and inode by which the file is known. It is the last resort, since duplicates share flags and locks with
 *             the original; before it come the name, and the name in /proc/self/fd, if they lead to the file.
 * Guarantee.  The process has at most a sixteenth of the limit (at least 4) more descriptors than the program would
 *             have by itself, and 3 when it is near the limit, beside those pinned at once. Handles with a back end
 *             before posix (direct I/O, fault injection), those that nobody else in the process has open (an I/O
 *             delegate's, the hidden file of a shared pointer), and what is no regular file keep theirs.
 */
#ifndef MPIOX_STORAGE_POOL_H
#define MPIOX_STORAGE_POOL_H

#include "mpiox_storage.h"

/* An open handle of `path`: from now on its descriptor may be closed while nobody uses it. flags: as it was opened
 * with. only_writes: it may come back as one that cannot read. Without memory for that it keeps it. */
void mpiox_storage_pool_add(mpiox_storage *storage, const char *path, int flags, bool only_writes);
/* It is about to be closed; its descriptor may be -1 then. What closing has met before: 0 or an errno. */
int mpiox_storage_pool_remove(mpiox_storage *storage);
/* What closing its descriptor has met, since this was asked last: what is written behind may be refused then. 0 or an
 * errno. */
int mpiox_storage_pool_error(mpiox_storage *storage);
/* open(2) of a further handle's descriptor, for which another one is closed if need be. The descriptor or -errno. */
int mpiox_storage_pool_open(const char *path, int flags);

#endif
