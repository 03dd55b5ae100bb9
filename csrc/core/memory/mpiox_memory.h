/*
 * mpiox_memory.h - where a program's buffer lies: in host memory, or in that of a GPU.
 *
 * Problem.    A program that computes on a GPU passes device pointers to MPI-IO. The processor cannot read such memory:
 *             a copy loop crashes, and a request to the file system fails with EFAULT.
 * Design.     A kind of memory is a table of functions over the driver of the GPU. This library neither links nor loads
 *             a driver: it calls the functions of the driver that the program has loaded. Without a driver,
 *             mpiox_memory_any() is two loads and two branches. All bytes pass through staging, two host buffers that
 *             the driver may access directly: the GPU copies one buffer while the file system, or another copy, uses
 *             the other.
 * Guarantees. Managed memory and host memory that the driver has allocated or registered count as host memory, which
 *             the processor accesses as any other. The library waits for its own copies alone: the program must
 *             synchronise with kernels that still write the buffer, as MPI requires.
 * Source.     CUDA driver API reference, sections "Unified Addressing", "Memory Management".
 */
#ifndef MPIOX_MEMORY_H
#define MPIOX_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"
#include "mpiox_memory_driver.h"

/* ---- whose memory ------------------------------------------------------------------------------------------------ */

extern _Atomic double mpiox_memory_next_look; /* as of mpiox_now() */
extern atomic_bool mpiox_memory_loaded, mpiox_memory_mapped;
void mpiox_memory_look(double now);

/* Has the process loaded a driver? The function searches for drivers each 50 ms at most, `now` being mpiox_now(): no
 * driver can be loaded, initialised and have returned memory in less. Local, from any thread. */
static inline bool mpiox_memory_any(double now)
{
    if (now >= atomic_load_explicit(&mpiox_memory_next_look, memory_order_relaxed))
        mpiox_memory_look(now);
    return atomic_load_explicit(&mpiox_memory_loaded, memory_order_relaxed);
}

/* Has the process loaded a driver whose memory the processor may be able to access? */
static inline bool mpiox_memory_any_mapped(double now)
{
    return mpiox_memory_any(now) && atomic_load_explicit(&mpiox_memory_mapped, memory_order_relaxed);
}

/* Query the drivers that the process has loaded for the owner of the memory at `pointer`. True: a device's, described
 * in *out. Takes about a microsecond for host memory if there is a driver. Local, from any thread. */
bool mpiox_memory_find(const void *pointer, mpiox_device *out);

/* ---- staging ----------------------------------------------------------------------------------------------------- */

enum { MPIOX_STAGING_BUFFERS = 2 };

typedef struct mpiox_staging {
    mpiox_device device;                  /* whose memory it copies */
    char *buffers[MPIOX_STAGING_BUFFERS]; /* host memory; owned */
    int64_t bytes;                        /* of each */
    void *queue;                          /* the driver's queue, which does copies in order */
    bool pinned[MPIOX_STAGING_BUFFERS];   /* the driver has pinned that buffer */
    bool broken;                          /* a copy has failed: the staging is not used again */
    double spent_s;                       /* seconds in the driver, since the access took this staging */
    struct mpiox_staging *next;           /* of those that no access uses */
} mpiox_staging;

/* Two buffers of at least `bytes` bytes (> 0) and a queue for a device: those of an earlier access if there are any.
 * NULL: an error. The caller returns them by mpiox_staging_give(), and later accesses use them again. From any
 * thread. */
mpiox_staging *mpiox_staging_take(const mpiox_device *device, int64_t bytes, mpiox_error *error);
void mpiox_staging_give(mpiox_staging *staging); /* NULL-safe; waits for copies under way */
/* Begin to copy a run between device memory and `host`. 0, or MPIOX_E_DEVICE and *error. */
int mpiox_staging_copy(mpiox_staging *staging, const mpiox_memory_run *run, void *host, bool to_device,
                       mpiox_error *error);
/* Wait for all copies of this staging. 0, or MPIOX_E_DEVICE and *error: then no copy counts. */
int mpiox_staging_wait(mpiox_staging *staging, mpiox_error *error);
/* Free all returned stagings, before the drivers end. */
void mpiox_memory_finalize(void);

#endif
