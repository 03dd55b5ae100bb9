/*
 * mpiox_memory.h - where a program's buffer lies: in host memory, or in that of a GPU.
 *
 * Problem.    A program that computes on a GPU passes device pointers to MPI-IO. The processor cannot read such memory:
 *             a copy loop crashes, and a request to the file system fails with EFAULT.
 * Design.     A kind of memory is a table of functions over the driver of the GPU. The driver is never linked and never
 *             loaded by this library: its functions are those of the driver that the program has loaded. Without one,
 *             mpiox_memory_any() is two loads and two branches.
 *             All bytes pass through staging, two host buffers that the driver may access directly: one is copied by
 *             the GPU while the file system, or another copy, uses the other one.
 * Guarantees. Managed memory and host memory that the driver has allocated or registered count as host memory, which
 *             the processor accesses as any other. The library waits for its own copies, and for nothing else: kernels
 *             that still write the buffer are the program's to synchronise, as MPI says.
 * Source.     CUDA driver API reference, sections "Unified Addressing", "Memory Management".
 */
#ifndef MPIOX_MEMORY_H
#define MPIOX_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpiox_error.h"

typedef struct mpiox_memory_kind mpiox_memory_kind;

enum {
    MPIOX_MEMORY_FUNCTIONS = 16,
    MPIOX_MEMORY_MIXED = INT32_MIN /* part of a buffer is in the host's memory */
};

typedef struct mpiox_device { /* whose memory a buffer is; zeros: the host's. Plain data, may be copied */
    const mpiox_memory_kind *kind;
    void *context; /* the driver's, current while the memory is accessed; NULL: that of the device `ordinal` */
    int32_t ordinal;
    int32_t failure; /* the driver's result where it would not tell more, or MPIOX_MEMORY_MIXED; else 0 */
} mpiox_device;

typedef struct mpiox_memory_run {  /* `count` blocks of device memory, packed one behind the other in host memory */
    uintptr_t device;              /* address of the first block */
    int64_t length, stride, count; /* bytes; the stride may be negative; blocks do not overlap */
} mpiox_memory_run;

typedef struct mpiox_memory_driver { /* functions that are the same in CUDA and HIP, all but for their names */
    int (*attributes)(unsigned, int *, void **, uintptr_t);
    int (*queue_create)(void **, unsigned);
    int (*queue_wait)(void *);
    int (*queue_free)(void *);
    int (*copy_to_host)(void *, uintptr_t, size_t, void *);
    int (*copy_to_device)(uintptr_t, const void *, size_t, void *);
    int (*pin)(void *, size_t, unsigned);
    int (*unpin)(void *);
} mpiox_memory_driver;

/* What differs. Functions return a result of the driver, 0: success. */
struct mpiox_memory_kind {
    const char *name;                     /* as in texts: "CUDA" */
    const char *library;                  /* how the file name of its driver begins */
    bool is_mapped;                       /* the processor may be able to access it, slowly: no EFAULT */
    const char *const *functions;         /* names of those of the driver, at most MPIOX_MEMORY_FUNCTIONS, then NULL */
    void (*take)(void *const *functions); /* in this order; before all other calls */
    const mpiox_memory_driver *driver;
    bool (*find)(const void *pointer, mpiox_device *out);  /* is it memory that only the device should access? */
    int (*enter)(const mpiox_device *device, int *before); /* make it the thread's device, or context; leave() undoes */
    void (*leave)(const mpiox_device *device, int before);
    int (*copy_blocks)(void *queue, const mpiox_memory_run *run, void *host, bool to_device); /* stride >= length */
    const char *(*result_name)(int result); /* the driver's name of a result; never NULL */
};

/* ---- whose memory ------------------------------------------------------------------------------------------------ */

extern _Atomic double mpiox_memory_next_look; /* as of mpiox_now() */
extern atomic_bool mpiox_memory_loaded, mpiox_memory_mapped;
void mpiox_memory_look(double now);

/* Has the process loaded a driver? Drivers are looked for each 50 ms at most, `now` being mpiox_now(): none can be
 * loaded, initialised and have given memory in less. Local, from any thread. */
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

/* Ask the drivers that the process has loaded whose memory `pointer` is in. True: a device's, which is in *out. Takes
 * about a microsecond for host memory where there is a driver. Local, from any thread. */
bool mpiox_memory_find(const void *pointer, mpiox_device *out);

/* May the processor read the word in which `pointer` is? For drivers that do not answer. Local, from any thread. */
bool mpiox_memory_is_readable(const void *pointer);

/* ---- staging ----------------------------------------------------------------------------------------------------- */

enum { MPIOX_STAGING_BUFFERS = 2 };

typedef struct mpiox_staging {
    mpiox_device device;
    char *buffers[MPIOX_STAGING_BUFFERS];
    int64_t bytes; /* of each */
    void *queue;   /* the driver's, of copies that are done in order */
    bool pinned[MPIOX_STAGING_BUFFERS];
    bool broken;    /* a copy has failed: it is not used again */
    double spent_s; /* in the driver, since it was taken */
    struct mpiox_staging *next;
} mpiox_staging;

/* Two buffers of at least `bytes` bytes (> 0) and a queue for a device: those of an earlier access where there are
 * some. NULL: an error. The caller gives them back, after which they stay for later accesses. From any thread. */
mpiox_staging *mpiox_staging_take(const mpiox_device *device, int64_t bytes, mpiox_error *error);
void mpiox_staging_give(mpiox_staging *staging); /* NULL-safe; waits for copies that are under way */
/* Begin to copy a run between device memory and `host`. 0, or MPIOX_E_DEVICE and *error. */
int mpiox_staging_copy(mpiox_staging *staging, const mpiox_memory_run *run, void *host, bool to_device,
                       mpiox_error *error);
/* Wait for all copies of this staging. 0, or MPIOX_E_DEVICE and *error: then none of them counts. */
int mpiox_staging_wait(mpiox_staging *staging, mpiox_error *error);
/* Free all that were given back: before the drivers go. */
void mpiox_memory_finalize(void);

/* ---- queues of a driver: blocking, but for the copy, which they may only begin. A result of the driver, 0: success -- */

int mpiox_memory_queue_create(const mpiox_device *device, void **queue);
int mpiox_memory_queue_wait(const mpiox_device *device, void *queue); /* until all copies of the queue are done */
void mpiox_memory_queue_free(const mpiox_device *device, void *queue);
int mpiox_memory_queue_copy(const mpiox_device *device, void *queue, const mpiox_memory_run *run, void *host,
                            bool to_device);
bool mpiox_memory_pin(const mpiox_device *device, void *host, int64_t bytes); /* let the driver access it directly */
void mpiox_memory_unpin(const mpiox_device *device, void *host);

extern const mpiox_memory_kind mpiox_memory_cuda, mpiox_memory_hip, mpiox_memory_level_zero;

#endif
