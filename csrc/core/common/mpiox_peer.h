/*
 * mpiox_peer.h - does another process of this host still run? Local; nothing here fails or waits.
 *
 * Problem.   A process that waits in shared memory for one that was killed waits for ever, unless a launcher ends it.
 *            The number of a process may belong to another one later, and means another one in another namespace.
 * Algorithm. Each process writes its number, its start and its namespaces into shared memory. Another one opens a
 *            pidfd for the number; the process that it stands for has ended, or has another start, or is the same.
 * Guarantee. A process that runs is never taken for dead. Without a pidfd (Linux before 5.3, a filter of system calls)
 *            only a process that its parent has waited for is detected; in another namespace, or if /proc is of another
 *            one, none is.
 * Source.    pidfd_open(2), proc_pid_stat(5), namespaces(7).
 */
#ifndef MPIOX_PEER_H
#define MPIOX_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct mpiox_peer { /* zeroed: not known yet */
    _Atomic int64_t pid;
    int64_t began;   /* see mpiox_peer_began(); 0: not known */
    uint64_t spaces; /* of numbers and of clocks; 0: not known */
} mpiox_peer;

/* This process. */
void mpiox_peer_introduce(mpiox_peer *self);
/* false: it runs, or that is not known. */
bool mpiox_peer_has_died(const mpiox_peer *peer);
/* When a process began, clock ticks since the boot; 0: not known. */
int64_t mpiox_peer_began(int64_t pid);

#endif
