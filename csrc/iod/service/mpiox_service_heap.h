/*
 * mpiox_service_heap.h - a program's own malloc after delegates were spawned: what it would be without them.
 *
 * Problem.   Memory that another thread has allocated and this one frees stays in this thread's cache (glibc), and the
 *            program's next malloc() of that size returns it. Open MPI's threads allocate while it spawns, in heaps of
 *            their own, terabytes from the program's. Programs that keep the distance of two of their blocks in an int,
 *            as MPI's datatypes tempt them to, ran until then.
 * Algorithm. Empty the cache: allocate as many blocks of each size as it keeps, give back those of the program's heap,
 *            and keep the others for good. There are few, and of 1 KiB at most.
 * Guarantee. Nothing is done where the program's memory does not come from its heap: with another malloc(), for one.
 */
#ifndef MPIOX_SERVICE_HEAP_H
#define MPIOX_SERVICE_HEAP_H

/* Right after spawning, by the thread that has spawned. */
void mpiox_service_heap_settle(void);

#endif
