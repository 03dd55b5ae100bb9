/*
 * mpiox_memory_hip.c - memory of AMD GPUs, by HIP.
 *
 * Problem.    Between HIP 5 and 6 the numbers of hipMemoryType and the layout of what has them changed. Asked about the
 *             type of host memory, drivers before ROCm 6.2 read that memory as if it were a descriptor of an array.
 * Algorithm.  Only functions and attributes are used that are the same in all versions: memory is the device's if HIP
 *             knows the device on which it lies, and it has no address for the host.
 * Guarantees. A question about host memory succeeds: no error stays behind for the program's hipGetLastError().
 * Source.     Headers of ROCm 5.2, 6.2 and 7; hipamd/src/hip_memory.cpp of ROCm's common language runtime.
 */
#include <string.h>

#include "mpiox_memory_driver.h"

enum {
    SUCCESS = 0,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101, /* the runtime could not be initialised */
    ATTRIBUTE_HOST_POINTER = 4,
    ATTRIBUTE_IS_MANAGED = 8,
    ATTRIBUTE_DEVICE_ORDINAL = 9,
    HOST_TO_DEVICE = 1,
    DEVICE_TO_HOST = 2
};

static struct {
    mpiox_memory_driver same;
    int (*hipGetDevice)(int *);
    int (*hipSetDevice)(int);
    int (*hipMemcpy2DAsync)(void *, size_t, const void *, size_t, size_t, size_t, int, void *);
    const char *(*hipGetErrorName)(int);
} driver;

static const char *const functions[] = {"hipDrvPointerGetAttributes",
                                        "hipStreamCreateWithFlags",
                                        "hipStreamSynchronize",
                                        "hipStreamDestroy",
                                        "hipMemcpyDtoHAsync",
                                        "hipMemcpyHtoDAsync",
                                        "hipHostRegister",
                                        "hipHostUnregister",
                                        "hipGetDevice",
                                        "hipSetDevice",
                                        "hipMemcpy2DAsync",
                                        "hipGetErrorName",
                                        NULL};
_Static_assert(sizeof functions == sizeof driver + sizeof(char *), "a name for each function");
_Static_assert(sizeof driver <= MPIOX_MEMORY_FUNCTIONS * sizeof(void *), "room for all functions");

/* Once HIP has found none: each further question would look for one again, for tens of microseconds. */
static atomic_bool without_device;

static void take(void *const *found)
{
    memcpy(&driver, found, sizeof driver);
}

static bool find(const void *pointer, mpiox_device *out)
{
    int attributes[] = {ATTRIBUTE_HOST_POINTER, ATTRIBUTE_IS_MANAGED, ATTRIBUTE_DEVICE_ORDINAL}, ordinal = -1;
    void *host = NULL;
    unsigned managed = 0; /* HIP sets one byte of it */
    void *values[] = {&host, &managed, &ordinal};
    if (pointer == NULL || atomic_load_explicit(&without_device, memory_order_relaxed))
        return false;
    const int result = driver.same.attributes(3, attributes, values, (uintptr_t)pointer);
    if (result == NO_DEVICE || result == INVALID_DEVICE) {
        atomic_store_explicit(&without_device, true, memory_order_relaxed);
        return false;
    }
    if (result != SUCCESS) {
        *out = (mpiox_device){.failure = result};
        return !mpiox_memory_is_readable(pointer);
    }
    if (host != NULL || managed || ordinal < 0)
        return false;
    *out = (mpiox_device){.ordinal = ordinal};
    return true;
}

static int enter(const mpiox_device *device, int *before)
{
    const int result = driver.hipGetDevice(before);
    return result != SUCCESS || *before == device->ordinal ? result : driver.hipSetDevice(device->ordinal);
}

static void leave(const mpiox_device *device, int before)
{
    if (before != device->ordinal)
        (void)driver.hipSetDevice(before);
}

static int copy_blocks(void *queue, const mpiox_memory_run *run, void *host, bool to_device)
{
    const size_t length = (size_t)run->length, count = (size_t)run->count, stride = (size_t)run->stride;
    void *device = (void *)run->device;
    return to_device ? driver.hipMemcpy2DAsync(device, stride, host, length, length, count, HOST_TO_DEVICE, queue)
                     : driver.hipMemcpy2DAsync(host, length, device, stride, length, count, DEVICE_TO_HOST, queue);
}

static const char *result_name(int result)
{
    const char *name = driver.hipGetErrorName(result);
    return name != NULL ? name : "an unknown result";
}

const mpiox_memory_kind mpiox_memory_hip = {
    .name = "HIP",
    .library = "libamdhip64.so",
    .is_mapped = true, /* with a large BAR, or on one socket */
    .functions = functions,
    .take = take,
    .driver = &driver.same,
    .find = find,
    .enter = enter,
    .leave = leave,
    .copy_blocks = copy_blocks,
    .result_name = result_name,
};
