/*
 * mpiox_memory_driver.c - queues and pinned memory: calls of a GPU's driver that are the same in CUDA and HIP.
 *
 * Each function runs on the device, or in the context, of the memory, whichever the program's thread has. Blocks of a
 * run are one 2-D copy if drivers take their stride, else a copy each.
 */
#include "mpiox_memory_driver.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    QUEUE_NON_BLOCKING = 1, /* does not wait for the program's kernels */
    PIN_PORTABLE = 1        /* for all contexts */
};
static const int64_t largest_pitch = INT32_MAX;

/* The kernel copies the set of signals before it refuses the rest of the call. */
bool mpiox_memory_is_readable(const void *pointer)
{
    const uintptr_t word = (uintptr_t)pointer / sizeof(uint64_t) * sizeof(uint64_t);
    const int before = errno;
    const bool readable = syscall(SYS_rt_sigprocmask, ~0, word, NULL, sizeof(uint64_t)) == 0 || errno != EFAULT;
    errno = before;
    return readable;
}

int mpiox_memory_queue_create(const mpiox_device *device, void **queue)
{
    int before, result = device->kind->enter(device, &before);
    if (result != SUCCESS)
        return result;
    result = device->kind->driver->queue_create(queue, QUEUE_NON_BLOCKING);
    device->kind->leave(device, before);
    return result;
}

int mpiox_memory_queue_wait(const mpiox_device *device, void *queue)
{
    int before, result = device->kind->enter(device, &before);
    if (result != SUCCESS)
        return result;
    result = device->kind->driver->queue_wait(queue);
    device->kind->leave(device, before);
    return result;
}

void mpiox_memory_queue_free(const mpiox_device *device, void *queue)
{
    int before;
    if (device->kind->enter(device, &before) != SUCCESS)
        return;
    (void)device->kind->driver->queue_free(queue);
    device->kind->leave(device, before);
}

static int copy_block(const mpiox_memory_driver *driver, void *queue, uintptr_t device, void *host, int64_t length,
                      bool to_device)
{
    return to_device ? driver->copy_to_device(device, host, (size_t)length, queue)
                     : driver->copy_to_host(host, device, (size_t)length, queue);
}

int mpiox_memory_queue_copy(const mpiox_device *device, void *queue, const mpiox_memory_run *run, void *host,
                            bool to_device)
{
    const mpiox_memory_kind *kind = device->kind;
    const bool regular = run->count > 1 && run->stride >= run->length && run->stride <= largest_pitch;
    int before, result = kind->enter(device, &before);
    if (result != SUCCESS)
        return result;
    if (regular)
        result = kind->copy_blocks(queue, run, host, to_device);
    for (int64_t i = 0; !regular && i < run->count && result == SUCCESS; i++)
        result = copy_block(kind->driver, queue, run->device + (uintptr_t)(i * run->stride),
                            (char *)host + i * run->length, run->length, to_device);
    kind->leave(device, before);
    return result;
}

bool mpiox_memory_pin(const mpiox_device *device, void *host, int64_t bytes)
{
    int before;
    if (device->kind->enter(device, &before) != SUCCESS)
        return false;
    const bool done = device->kind->driver->pin(host, (size_t)bytes, PIN_PORTABLE) == SUCCESS;
    device->kind->leave(device, before);
    return done;
}

void mpiox_memory_unpin(const mpiox_device *device, void *host)
{
    int before;
    if (device->kind->enter(device, &before) != SUCCESS)
        return;
    (void)device->kind->driver->unpin(host);
    device->kind->leave(device, before);
}
