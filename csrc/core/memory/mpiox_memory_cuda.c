/*
 * mpiox_memory_cuda.c - memory of NVIDIA GPUs, by the CUDA driver API.
 *
 * The driver's types and numbers are declared here, as its manual has them, so that a build needs no CUDA. What is the
 * same for HIP is in mpiox_memory_driver.c.
 */
#include <string.h>

#include "mpiox_memory_driver.h"

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 3,
    ATTRIBUTE_CONTEXT = 1,
    ATTRIBUTE_MEMORY_TYPE = 2,
    ATTRIBUTE_IS_MANAGED = 8,
    ATTRIBUTE_DEVICE_ORDINAL = 9,
    MEMORY_HOST = 1,
    MEMORY_DEVICE = 2,
    ORDINALS = 64
};

typedef struct copy_2d { /* CUDA_MEMCPY2D */
    size_t source_x, source_y;
    int source_type;
    const void *source_host;
    uintptr_t source_device;
    void *source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    int target_type;
    void *target_host;
    uintptr_t target_device;
    void *target_array;
    size_t target_pitch;
    size_t width, height;
} copy_2d;

static struct {
    mpiox_memory_driver same;
    int (*cuCtxPushCurrent_v2)(void *);
    int (*cuCtxPopCurrent_v2)(void **);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuMemcpy2DAsync_v2)(const copy_2d *, void *);
    int (*cuGetErrorName)(int, const char **);
} driver;

static const char *const functions[] = {"cuPointerGetAttributes",   "cuStreamCreate",
                                        "cuStreamSynchronize",      "cuStreamDestroy_v2",
                                        "cuMemcpyDtoHAsync_v2",     "cuMemcpyHtoDAsync_v2",
                                        "cuMemHostRegister_v2",     "cuMemHostUnregister",
                                        "cuCtxPushCurrent_v2",      "cuCtxPopCurrent_v2",
                                        "cuDevicePrimaryCtxRetain", "cuMemcpy2DAsync_v2",
                                        "cuGetErrorName",           NULL};
_Static_assert(sizeof functions == sizeof driver + sizeof(char *), "a name for each function");
_Static_assert(sizeof driver <= MPIOX_MEMORY_FUNCTIONS * sizeof(void *), "room for all functions");

/* The contexts of memory that has none of its own, such as that of pools. They stay retained. */
static _Atomic(void *) primary[ORDINALS];

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
    const int result = driver.same.attributes(4, attributes, values, (uintptr_t)pointer);
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

static int enter(const mpiox_device *device, int *before)
{
    *before = 0; /* the driver has a stack */
    return device->context != NULL ? driver.cuCtxPushCurrent_v2(device->context) : SUCCESS;
}

static void leave(const mpiox_device *device, int before)
{
    void *context;
    (void)before;
    if (device->context != NULL)
        (void)driver.cuCtxPopCurrent_v2(&context);
}

static int copy_blocks(void *queue, const mpiox_memory_run *run, void *host, bool to_device)
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
    .driver = &driver.same,
    .find = find,
    .enter = enter,
    .leave = leave,
    .copy_blocks = copy_blocks,
    .result_name = result_name,
};
