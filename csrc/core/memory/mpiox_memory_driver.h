/*
 * mpiox_memory_driver.h - the driver of a GPU: the functions in which drivers differ, and those that they share.
 *
 * A kind of memory is a table of functions. Most functions of CUDA and HIP are the same but for their names.
 */
#ifndef MPIOX_MEMORY_DRIVER_H
#define MPIOX_MEMORY_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mpiox_memory_kind mpiox_memory_kind;

enum {
    MPIOX_MEMORY_FUNCTIONS = 16,
    MPIOX_MEMORY_MIXED = INT32_MIN /* part of a buffer is in the host's memory */
};

typedef struct mpiox_device { /* the memory of a buffer; zeros: the host's. Plain data, may be copied */
    const mpiox_memory_kind *kind;
    void *context;   /* the driver's, current while the memory is accessed; NULL: that of the device `ordinal` */
    int32_t ordinal; /* the driver's number of the device */
    int32_t failure; /* the driver's result if its answer is not known, or MPIOX_MEMORY_MIXED; else 0 */
} mpiox_device;

typedef struct mpiox_memory_run {  /* `count` blocks of device memory, packed one behind the other in host memory */
    uintptr_t device;              /* address of the first block */
    int64_t length, stride, count; /* bytes; the stride may be negative; blocks do not overlap */
} mpiox_memory_run;

typedef struct mpiox_memory_driver { /* functions that are the same in CUDA and HIP, all but for their names */
    int (*attributes)(unsigned, int *, void **, uintptr_t);
    int (*queue_create)(void **, unsigned); /* out: the queue; flags of the driver */
    int (*queue_wait)(void *);              /* until all copies of the queue have ended */
    int (*queue_free)(void *);
    int (*copy_to_host)(void *, uintptr_t, size_t, void *);         /* to, from, bytes, queue */
    int (*copy_to_device)(uintptr_t, const void *, size_t, void *); /* to, from, bytes, queue */
    int (*pin)(void *, size_t, unsigned);                           /* host memory, bytes, flags of the driver */
    int (*unpin)(void *);                                           /* host memory that was pinned */
} mpiox_memory_driver;

/* The part in which drivers differ. Functions return a result of the driver, 0: success. */
struct mpiox_memory_kind {
    const char *name;                     /* as in texts: "CUDA" */
    const char *library;                  /* how the file name of the driver begins */
    bool is_mapped;                       /* the processor may be able to access it, slowly: no EFAULT */
    const char *const *functions;         /* names of those of the driver, at most MPIOX_MEMORY_FUNCTIONS, then NULL */
    void (*take)(void *const *functions); /* stores `functions`, in this order; before all other calls */
    const mpiox_memory_driver *driver;    /* its common functions, valid after take() */
    bool (*find)(const void *pointer, mpiox_device *out);  /* is it memory that only the device should access? */
    int (*enter)(const mpiox_device *device, int *before); /* make it the thread's current one; leave() undoes that */
    void (*leave)(const mpiox_device *device, int before); /* `before`: as enter() returned it */
    int (*copy_blocks)(void *queue, const mpiox_memory_run *run, void *host, bool to_device); /* stride >= length */
    const char *(*result_name)(int result); /* the driver's name of a result; never NULL */
};

/* May the processor read the word in which `pointer` is? For drivers that do not answer. Local, from any thread. */
bool mpiox_memory_is_readable(const void *pointer);

/* Blocking, but the copy may only begin. Functions return a result of the driver, 0: success. */
int mpiox_memory_queue_create(const mpiox_device *device, void **queue);
int mpiox_memory_queue_wait(const mpiox_device *device, void *queue); /* until all copies of the queue are done */
void mpiox_memory_queue_free(const mpiox_device *device, void *queue);
int mpiox_memory_queue_copy(const mpiox_device *device, void *queue, const mpiox_memory_run *run, void *host,
                            bool to_device);
bool mpiox_memory_pin(const mpiox_device *device, void *host, int64_t bytes); /* let the driver access it directly */
void mpiox_memory_unpin(const mpiox_device *device, void *host);

extern const mpiox_memory_kind mpiox_memory_cuda, mpiox_memory_hip, mpiox_memory_level_zero;

#endif
