/*
 * mpiox_copy_device.c - see mpiox_copy_device.h.
 *
 * Problem.    A GPU copies blocks with one stride fast, between its memory and contiguous host memory; each copy that
 *             it is asked for takes microseconds. Lists of blocks, and strides on both sides, are nothing it does.
 * Algorithm.  The strided runs of the device's layout are a copy each, from or to a staging buffer in which they lie
 *             one behind the other. The processor copies between that buffer and the host's layout. Parts are as large
 *             as a buffer, and two of them are under way at once.
 * Cost.       An irregular list is a copy for each block.
 */
#include "mpiox_copy_device.h"

int mpiox_copy_begin(mpiox_staging *staging, const mpiox_memory_layout *device, void *host, int64_t length,
                     bool to_device, mpiox_error *error)
{
    const uintptr_t base = (uintptr_t)device->base;
    char *at = host;
    int code = MPIOX_OK;
    if (device->typemap == NULL) {
        const mpiox_memory_run run = {base + (uintptr_t)(device->origin + device->position), length, 0, 1};
        return mpiox_staging_copy(staging, &run, host, to_device, error);
    }
    mpiox_cursor cursor;
    mpiox_cursor_init(&cursor, device->typemap, device->origin, device->position);
    while (length > 0 && code == MPIOX_OK) {
        mpiox_run found;
        const int64_t bytes = mpiox_cursor_next(&cursor, length, &found);
        const mpiox_memory_run run = {base + (uintptr_t)found.offset, found.length, found.stride, found.count};
        code = mpiox_staging_copy(staging, &run, at, to_device, error);
        at += bytes;
        length -= bytes;
    }
    return code;
}

/* The part from `at` on: through the buffer whose turn it is. */
typedef struct part {
    int64_t at, length;
    char *buffer;
} part;

static part part_at(mpiox_staging *staging, int64_t at, int64_t length)
{
    const int64_t left = length - at;
    return (part){at, left < staging->bytes ? left : staging->bytes,
                  staging->buffers[at / staging->bytes % MPIOX_STAGING_BUFFERS]};
}

static mpiox_memory_layout moved(const mpiox_memory_layout *layout, int64_t by)
{
    mpiox_memory_layout at = *layout;
    at.position += by;
    return at;
}

static void copy_host(const part *p, const mpiox_memory_layout *host, bool from_host)
{
    const mpiox_memory_layout buffer = {p->buffer, NULL, 0, 0}, there = moved(host, p->at);
    if (from_host)
        mpiox_copy(&buffer, &there, p->length);
    else
        mpiox_copy(&there, &buffer, p->length);
}

static int begin(mpiox_staging *staging, const part *p, const mpiox_memory_layout *device, bool to_device,
                 mpiox_error *error)
{
    const mpiox_memory_layout there = moved(device, p->at);
    return mpiox_copy_begin(staging, &there, p->buffer, p->length, to_device, error);
}

static int to_host(mpiox_staging *staging, const mpiox_memory_layout *device, const mpiox_memory_layout *host,
                   int64_t length, mpiox_error *error)
{
    part now = part_at(staging, 0, length);
    int code = begin(staging, &now, device, false, error);
    while (code == MPIOX_OK && now.at < length) {
        const part next = part_at(staging, now.at + now.length, length);
        code = mpiox_staging_wait(staging, error);
        if (code == MPIOX_OK && next.length > 0)
            code = begin(staging, &next, device, false, error);
        if (code == MPIOX_OK)
            copy_host(&now, host, false);
        now = next;
    }
    return code;
}

static int from_host(mpiox_staging *staging, const mpiox_memory_layout *device, const mpiox_memory_layout *host,
                     int64_t length, mpiox_error *error)
{
    int code = MPIOX_OK;
    for (int64_t at = 0; at < length && code == MPIOX_OK;) {
        const part now = part_at(staging, at, length);
        copy_host(&now, host, true); /* while the GPU copies the other buffer */
        code = mpiox_staging_wait(staging, error);
        if (code == MPIOX_OK)
            code = begin(staging, &now, device, true, error);
        at += now.length;
    }
    return code == MPIOX_OK ? mpiox_staging_wait(staging, error) : code;
}

int mpiox_copy_device(mpiox_staging *staging, const mpiox_memory_layout *device, const mpiox_memory_layout *host,
                      int64_t length, bool to_device, mpiox_error *error)
{
    if (length <= 0)
        return MPIOX_OK;
    return to_device ? from_host(staging, device, host, length, error) : to_host(staging, device, host, length, error);
}
