/*
 * mpiox_posix_wait.h - a file of the program that delegates still write, and calls that look for it past MPI.
 *
 * Problem.   With mpiox_close=staged a file has a staging name until all of it is written, or bytes that only delegates
 *            have. rename(), stat() or fopen() of its own name would not find it, or find an older one.
 * Algorithm. The functions of mpiox_posix.c come here first. Memory says whether delegates may have such files. Then
 *            the file system says whether the staging name that belongs to the path, or to where its link leads, is
 *            there: to each rank of the job, whoever opened the file. If so, the delegates are asked to write it at
 *            full speed, and the call waits for that. A file that had been there before keeps its name: it
 *            is found by its inode, in the memory of the node's delegates or among those that this process has closed.
 * Guarantee. Where there are no delegates: one load. errno is kept. What cannot be waited for goes on as it is. A call
 *            of this library itself, in any thread, never waits, nor does one of a child made by fork().
 *            A signal handler does not wait: whom it has interrupted may hold what waiting needs.
 * Limits.    Handlers are known on x86-64 and aarch64. Elsewhere one that looks for a file waits like any caller, for
 *            ever where it has interrupted the holder of a lock, of malloc() say: it must not look for staged files.
 *            After MPI_Finalize delegates of other nodes are not asked: ten seconds are waited for them.
 */
#ifndef MPIOX_POSIX_WAIT_H
#define MPIOX_POSIX_WAIT_H

#include <stdbool.h>

#include "mpiox_service.h"

/* Slow: the file, or, `below`, each file in the folder of this name, is whole when it returns. caller: its address. */
void mpiox_posix_wait_for(const void *caller, int folder, const char *path, bool below);
static inline void mpiox_posix_wait(const void *caller, int folder, const char *path, bool below)
{
    if (__builtin_expect(atomic_load_explicit(&mpiox_service_was_there, memory_order_relaxed), 0))
        mpiox_posix_wait_for(caller, folder, path, below);
}

/* This process has closed a file, which is still written. Local. */
void mpiox_posix_note_closed(const char *path);
#endif
