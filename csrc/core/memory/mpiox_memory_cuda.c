/*
 * mpiox_memory_cuda.c - memory of NVIDIA GPUs, by the CUDA driver API.
 *
 * The driver's types and numbers are declared here, as its manual has them, so that a build needs no CUDA. Each
 * function runs with the context of the memory, whichever the program's thread has. Runs of blocks are one 2-D copy
 * where their stride is one that the driver takes, else a copy for each block.
 */
#include <string.h>

#include "mpiox_memory.h"

typedef unsigned long long device_pointer;

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 3,
    ATTRIBUTE_CONTEXT = 1,
    ATTRIBUTE_MEMORY_TYPE = 2,
    ATTRIBUTE_IS_MANAGED = 8,
    ATTRIBUTE_DEVICE_ORDINAL = 9,
    MEMORY_HOST = 1,
    MEMORY_DEVICE = 2,
    STREAM_NON_BLOCKING = 1, /* does not wait for the program's kernels */
    REGISTER_PORTABLE = 1,   /* for all contexts */
    ORDINALS = 64
};
static const int64_t largest_pitch = INT32_MAX;

typedef struct copy_2d { /* CUDA_MEMCPY2D */
    size_t source_x, source_y;
    int source_type;
    const void *source_host;
    device_pointer source_device;
    void *source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    int target_type;
    void *target_host;
    device_pointer target_device;
    void *target_array;
    size_t target_pitch;
    size_t width, height;
} copy_2d;

static struct {
    int (*cuPointerGetAttributes)(unsigned, int *, void **, device_pointer);
    int (*cuCtxPushCurrent_v2)(void *);
    int (*cuCtxPopCurrent_v2)(void **);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuStreamCreate)(void **, unsigned);
    int (*cuStreamSynchronize)(void *);
    int (*cuStreamDestroy_v2)(void *);
    int (*cuMemcpyDtoHAsync_v2)(void *, device_pointer, size_t, void *);
    int (*cuMemcpyHtoDAsync_v2)(device_pointer, const void *, size_t, void *);
    int (*cuMemcpy2DAsync_v2)(const copy_2d *, void *);
    int (*cuMemHostRegister_v2)(void *, size_t, unsigned);
    int (*cuMemHostUnregister)(void *);
    int (*cuGetErrorName)(int, const char **);
} driver;

/* The contexts of memory that has none of its own, such as that of pools. They stay retained. */
static _Atomic(void *) primary[ORDINALS];

static const char *const functions[] = {"cuPointerGetAttributes", "cuCtxPushCurrent_v2",
                                        "cuCtxPopCurrent_v2",     "cuDevicePrimaryCtxRetain",
                                        "cuStreamCreate",         "cuStreamSynchronize",
                                        "cuStreamDestroy_v2",     "cuMemcpyDtoHAsync_v2",
                                        "cuMemcpyHtoDAsync_v2",   "cuMemcpy2DAsync_v2",
                                        "cuMemHostRegister_v2",   "cuMemHostUnregister",
                                        "cuGetErrorName",         NULL};
_Static_assert(sizeof functions == sizeof driver + sizeof(char *), "a name for each function");
_Static_assert(sizeof driver <= MPIOX_MEMORY_FUNCTIONS * sizeof(void *), "room for all functions");

static void take(void *const *found)
{
    memcpy(&driver, found, sizeof driver);
}

static bool find(const void *pointer, mpiox_device *out)
{
    int attributes[] = {ATTRIBUTE_CONTEXT, ATTRIBUTE_MEMORY_TYPE, ATTRIBUTE_IS_MANAGED, ATTRIBUTE_DEVICE_ORDINAL};
    void *context = NULL;
    unsigned type = 0, managed = 0;
    int ordinal = 0;
    void *values[] = {&context, &type, &managed, &ordinal};
    const int result = driver.cuPointerGetAttributes(4, attributes, values, (device_pointer)(uintptr_t)pointer);
    if (result == NOT_INITIALIZED) /* no memory of a GPU was allocated in this process */
        return false;
    if (result != SUCCESS) { /* as after the loss of a context */
        *out = (mpiox_device){.failure = result};
        return !mpiox_memory_is_readable(pointer);
    }
    if (type != MEMORY_DEVICE || managed)
        return false;
    if (context == NULL && ordinal >= 0 && ordinal < ORDINALS && (context = atomic_load(&primary[ordinal])) == NULL) {
        if (driver.cuDevicePrimaryCtxRetain(&context, ordinal) != SUCCESS)
            context = NULL; /* then the thread's own is used */
        atomic_store(&primary[ordinal], context);
    }
    *out = (mpiox_device){.context = context, .ordinal = ordinal};
    return true;
}

/* Make the device's context the thread's; leave() undoes it. */
static int enter(const mpiox_device *device)
{
    return device->context != NULL ? driver.cuCtxPushCurrent_v2(device->context) : SUCCESS;
}

static void leave(const mpiox_device *device)
{
    void *context;
    if (device->context != NULL)
        (void)driver.cuCtxPopCurrent_v2(&context);
}

static int queue_create(const mpiox_device *device, void **queue)
{
    int result = enter(device);
    if (result != SUCCESS)
        return result;
    result = driver.cuStreamCreate(queue, STREAM_NON_BLOCKING);
    leave(device);
    return result;
}

static int queue_wait(const mpiox_device *device, void *queue)
{
    int result = enter(device);
    if (result != SUCCESS)
        return result;
    result = driver.cuStreamSynchronize(queue);
    leave(device);
    return result;
}

static void queue_free(const mpiox_device *device, void *queue)
{
    if (enter(device) != SUCCESS)
        return;
    (void)driver.cuStreamDestroy_v2(queue);
    leave(device);
}

static int copy_block(void *queue, device_pointer device, void *host, int64_t length, bool to_device)
{
    return to_device ? driver.cuMemcpyHtoDAsync_v2(device, host, (size_t)length, queue)
                     : driver.cuMemcpyDtoHAsync_v2(host, device, (size_t)length, queue);
}

static int copy_blocks(void *queue, const mpiox_memory_run *run, char *host, bool to_device)
{
    const size_t length = (size_t)run->length;
    copy_2d copy = {.width = length, .height = (size_t)run->count};
    if (to_device) {
        copy.source_type = MEMORY_HOST;
        copy.source_host = host;
        copy.source_pitch = length;
        copy.target_type = MEMORY_DEVICE;
        copy.target_device = run->device;
        copy.target_pitch = (size_t)run->stride;
    } else {
        copy.source_type = MEMORY_DEVICE;
        copy.source_device = run->device;
        copy.source_pitch = (size_t)run->stride;
        copy.target_type = MEMORY_HOST;
        copy.target_host = host;
        copy.target_pitch = length;
    }
    return driver.cuMemcpy2DAsync_v2(&copy, queue);
}

static int copy(const mpiox_device *device, void *queue, const mpiox_memory_run *run, void *host, bool to_device)
{
    const bool regular = run->count > 1 && run->stride >= run->length && run->stride <= largest_pitch;
    int result = enter(device);
    if (result != SUCCESS)
        return result;
    if (regular)
        result = copy_blocks(queue, run, host, to_device);
    for (int64_t i = 0; !regular && i < run->count && result == SUCCESS; i++)
        result = copy_block(queue, run->device + (device_pointer)(i * run->stride), (char *)host + i * run->length,
                            run->length, to_device);
    leave(device);
    return result;
}

static bool pin(const mpiox_device *device, void *host, int64_t bytes)
{
    if (enter(device) != SUCCESS)
        return false;
    const bool done = driver.cuMemHostRegister_v2(host, (size_t)bytes, REGISTER_PORTABLE) == SUCCESS;
    leave(device);
    return done;
}

static void unpin(const mpiox_device *device, void *host)
{
    if (enter(device) != SUCCESS)
        return;
    (void)driver.cuMemHostUnregister(host);
    leave(device);
}

static const char *result_name(int result)
{
    const char *name = NULL;
    return driver.cuGetErrorName(result, &name) == SUCCESS && name != NULL ? name : "an unknown result";
}

const mpiox_memory_kind mpiox_memory_cuda = {
    .name = "CUDA",
    .library = "libcuda.so",
    .functions = functions,
    .take = take,
    .find = find,
    .queue_create = queue_create,
    .queue_wait = queue_wait,
    .queue_free = queue_free,
    .copy = copy,
    .pin = pin,
    .unpin = unpin,
    .result_name = result_name,
};
