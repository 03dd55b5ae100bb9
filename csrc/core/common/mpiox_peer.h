/*
 * mpiox_peer.h - does another process of this host still run? Local; nothing here fails or waits.
 *
 * Problem.   If a process waits in shared memory for a process that was killed, it waits for ever, unless a launcher
 *            ends it. A process number may belong to another process later, and in another namespace it means another
 *            process.
 * Algorithm. Each process writes its number, its start and its namespaces into shared memory. Another process opens a
 *            pidfd for the number. The peer has died if the pidfd reports an end, or if the start is another one.
 * Guarantee. No running process counts as dead. Without a pidfd (Linux before 5.3, a filter of system calls), a death
 *            is detected only after the parent has waited for the process. In another namespace, or if /proc belongs to
 *            another namespace, no death is detected.
 * Source.    pidfd_open(2), proc_pid_stat(5), namespaces(7).
 */
#ifndef MPIOX_PEER_H
#define MPIOX_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct mpiox_peer { /* zeros: not known yet */
    _Atomic int64_t pid;
    int64_t began;   /* see mpiox_peer_began(); 0: not known */
    uint64_t spaces; /* namespaces of numbers and of clocks; 0: not known */
} mpiox_peer;

/* Fill in the facts of this process. */
void mpiox_peer_introduce(mpiox_peer *self);
/* false: the peer runs, or its state is not known. */
bool mpiox_peer_has_died(const mpiox_peer *peer);
/* When a process began, clock ticks since the boot; 0: not known. */
int64_t mpiox_peer_began(int64_t pid);

#endif
