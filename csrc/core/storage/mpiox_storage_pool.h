/*
 * mpiox_storage_pool.h - few descriptors for many open files.
 *
 * Problem.   The MPI library has a descriptor for every open file, and this library needs another one: a program would
 *            reach the limit (ulimit -n) at half as many files.
 * Algorithm. A process has a sixteenth of the limit open, and almost none near the limit; it closes the least recently
 *            used descriptor, and opens it again at its next use. A handle is pinned while its descriptor is in use or
 *            has a lock. Opening again must succeed even if the file has been renamed, removed or replaced, or its
 *            permissions, the process's privileges or its root have changed. So a descriptor is closed only if another
 *            one in this process, such as the MPI library's, has the file open: it can always be duplicated, and while
 *            it is open no other file can get the same device and inode. The duplicate is the last resort, because it
 *            shares flags and locks with the original; before it the name is tried, and the name in /proc/self/fd, if
 *            they lead to the file.
 * Guarantee. The process has at most a sixteenth of the limit (at least 4) more descriptors than the program would have
 *            by itself, and 3 when it is near the limit, beside those pinned at once. Some handles always have their
 *            descriptors open: those with a back end before posix (direct I/O, fault injection), those of files that no
 *            other part of the process has open (an I/O delegate's, the hidden file of a shared pointer), and those of
 *            files that are not regular.
 */
#ifndef MPIOX_STORAGE_POOL_H
#define MPIOX_STORAGE_POOL_H

#include "mpiox_storage.h"

/* An open handle of `path`: from now on its descriptor may be closed while it is unused. flags: those of its opening.
 * only_writes: it may come back as one that cannot read. Without memory for that the descriptor stays open. */
void mpiox_storage_pool_add(mpiox_storage *storage, const char *path, int flags, bool only_writes);
/* It is about to be closed; its descriptor may be -1 then. What closing has met before: 0 or an errno. */
int mpiox_storage_pool_remove(mpiox_storage *storage);
/* The error of closing its descriptor since the last call: the file system may refuse cached writes then. 0 or an
 * errno. */
int mpiox_storage_pool_error(mpiox_storage *storage);
/* open(2) of a further handle's descriptor, for which another one is closed if need be. The descriptor or -errno. */
int mpiox_storage_pool_open(const char *path, int flags);

#endif
