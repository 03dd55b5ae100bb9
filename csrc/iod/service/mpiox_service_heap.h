/*
 * mpiox_service_heap.h - restores a program's own malloc after delegates were spawned.
 *
 * Problem.   Memory that another thread has allocated and this one frees stays in this thread's cache (glibc), and the
 *            program's next malloc() of that size returns it. Open MPI's threads allocate while it spawns, in heaps of
 *            their own, terabytes from the program's. Some programs store the distance of two of their blocks in an
 *            int, as MPI's datatypes tempt them to: they run until a spawn.
 * Algorithm. Empty the cache: allocate as many blocks of each size as it has, free those of the program's heap, and
 *            never free the others. There are few, and of 1 KiB at most.
 * Guarantee. Nothing is done if the program's memory does not come from its heap: with another malloc(), for example.
 */
#ifndef MPIOX_SERVICE_HEAP_H
#define MPIOX_SERVICE_HEAP_H

/* Right after spawning, by the thread that has spawned. */
void mpiox_service_heap_settle(void);

#endif
