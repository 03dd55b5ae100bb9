/*
 * mpiox_storage_pool.h - few descriptors for many open files.
 *
 * Problem.   The MPI library has a descriptor for every open file, and this library needs another one: a program would
 *            reach the limit (ulimit -n) at half as many files.
 * Algorithm. A process has descriptors for a sixteenth of the limit open, and almost none near the limit. It closes the
 *            least recently used descriptor, and opens it again at its next use. A handle is pinned while its
 *            descriptor is in use or has a lock. Opening again must succeed even if the file has been renamed, removed
 *            or replaced, or its permissions, the process's privileges or its root have changed. So the process closes
 *            a descriptor only if it has another one for the file, such as the MPI library's: that one can always be
 *            duplicated, and while it is open no other file can get the same device and inode. The duplicate is the
 *            last resort, because it shares flags and locks with the original. Before it, the process tries the name,
 *            and the name in /proc/self/fd, if they lead to the file.
 * Guarantee. The process has at most a sixteenth of the limit (at least 4) more descriptors than the program would have
 *            by itself, and 3 if it is near the limit, beside those pinned at once. Three kinds of handles always have
 *            their descriptors open: handles with a back end before posix (direct I/O, fault injection); handles of
 *            files that no other part of the process has open (an I/O delegate's, the hidden file of a shared pointer);
 *            and handles of files that are not regular.
 */
#ifndef MPIOX_STORAGE_POOL_H
#define MPIOX_STORAGE_POOL_H

#include "mpiox_storage.h"

/* An open handle of `path`: from now on the pool may close its descriptor while it is unused. flags: of its opening.
 * only_writes: the descriptor may be opened again for writing alone. Without memory the descriptor stays open. */
void mpiox_storage_pool_add(mpiox_storage *storage, const char *path, int flags, bool only_writes);
/* The handle is about to be closed; its descriptor may be -1 then. Returns the error of earlier closes: 0 or an
 * errno. */
int mpiox_storage_pool_remove(mpiox_storage *storage);
/* The error of closing its descriptor since the last call: at a close the file system may refuse cached writes. 0 or an
 * errno. */
int mpiox_storage_pool_error(mpiox_storage *storage);
/* open(2) of a further handle's descriptor, after another one was closed if need be. The descriptor or -errno. */
int mpiox_storage_pool_open(const char *path, int flags);

#endif
