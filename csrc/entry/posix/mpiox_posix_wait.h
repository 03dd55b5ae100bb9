/*
 * mpiox_posix_wait.h - does a call that takes a file's name wait until delegates have written the file?
 *
 * Algorithm. libmpiio_ext.so passes its knowledge of such files (mpiox_past_mpi.h). Calls that only read facts are made
 *            twice: the first result shows whether it is such a file, the second follows the wait. Other calls are made
 *            after the wait. Before a call waits, the stack shows its caller.
 * Guarantee. Without libmpiio_ext.so, or delegates: two loads. errno stays. A call of that library, or of the MPI
 *            library for it, in any thread, never waits. Nor does a signal handler: the interrupted code may own a lock
 *            that the wait needs.
 * Limits.    Nor does an error handler of the program that libmpiio_ext.so has called. Handlers of signals are
 *            recognised on x86-64 and aarch64. Elsewhere a handler waits like any caller, and hangs if it has
 *            interrupted the owner of a lock, such as that of malloc(): it must not access staged files.
 */
#ifndef MPIOX_POSIX_WAIT_H
#define MPIOX_POSIX_WAIT_H

#include <stddef.h>

#include "mpiox_past_mpi.h"

/* The table of libmpiio_ext.so, or NULL. */
extern _Atomic(const mpiox_past_mpi *) mpiox_posix_library __attribute__((visibility("hidden")));

/* May a call from that address have to wait? Read from memory alone. */
bool mpiox_posix_may_of(const void *caller, const char *path);
static inline bool mpiox_posix_may(const void *caller, const char *path)
{
    const mpiox_past_mpi *library = atomic_load_explicit(&mpiox_posix_library, memory_order_acquire);

    return __builtin_expect(
        library != NULL && atomic_load_explicit(library->delegates, memory_order_relaxed) && /* or there are none */
            mpiox_posix_may_of(caller, path),
        0);
}

/* If it may: wait until the file, or, `below`, each file in the folder of this name, is complete. known: the result of
 * stat() of it, inode 0: it found nothing; or NULL. False: there was nothing to wait for. */
bool mpiox_posix_wait_for(int folder, const char *path, const struct stat *known, bool below);
static inline void mpiox_posix_wait(const void *caller, int folder, const char *path, bool below)
{
    if (mpiox_posix_may(caller, path))
        mpiox_posix_wait_for(folder, path, NULL, below);
}

/* The same of the files in a folder that were closed and still have a hidden name: its entries are read once for that.
 * fd: just opened, at the same place afterwards; < 0, or of another kind: nothing happens. */
void mpiox_posix_list_of(int fd);
static inline void mpiox_posix_list(const void *caller, int fd)
{
    if (mpiox_posix_may(caller, ""))
        mpiox_posix_list_of(fd);
}

#endif
