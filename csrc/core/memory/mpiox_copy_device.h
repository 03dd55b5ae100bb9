/*
 * mpiox_copy_device.h - mpiox_copy() where one side is memory of a GPU.
 */
#ifndef MPIOX_COPY_DEVICE_H
#define MPIOX_COPY_DEVICE_H

#include "mpiox_copy.h"
#include "mpiox_memory.h"

/* Begin to copy `length` stream bytes of a layout in device memory to or from contiguous host memory, in the order of
 * the staging's queue. 0, or MPIOX_E_DEVICE and *error. The caller waits: mpiox_staging_wait(). Local. */
int mpiox_copy_begin(mpiox_staging *staging, const mpiox_memory_layout *device, void *host, int64_t length,
                     bool to_device, mpiox_error *error);

/* Copy `length` stream bytes between a layout in device memory and a layout in host memory, through the two buffers of
 * `staging`: the GPU copies one buffer while the processor copies the other. Blocking. 0, or MPIOX_E_DEVICE and *error:
 * then any byte of the target may or may not have been copied. */
int mpiox_copy_device(mpiox_staging *staging, const mpiox_memory_layout *device, const mpiox_memory_layout *host,
                      int64_t length, bool to_device, mpiox_error *error);

#endif
