/*
 * mpiox_device_access.c - see mpiox_device_access.h.
 *
 * Problem.    The file system takes no device memory, and the whole buffer once more in host memory may not fit.
 * Algorithm.  The stream is cut into windows, which pass through two buffers in turn: the GPU copies a window while the
 *             file system moves the one before it.
 * Guarantees. No byte is written that has not come from the device: a window is written when its copy has succeeded.
 *             Bytes that were read count when they are on the device.
 */
#include "mpiox_device_access.h"

#include "mpiox_copy_device.h"

enum { PAGE = 4096 }; /* bytes; also where pages are larger */

/* Of absolute addresses (MPI_BOTTOM), each block may lie in other memory. Two blocks on one page do not. */
static bool addresses_have(const mpiox_request *request, mpiox_device *device)
{
    mpiox_cursor cursor;
    mpiox_device found;
    int64_t asked = -1;
    bool has_host = false, has_device = false;
    mpiox_cursor_init(&cursor, request->memory, 0, request->memory_position);
    for (int64_t left = request->length; left > 0;) {
        mpiox_run run;
        left -= mpiox_cursor_next(&cursor, left, &run);
        for (int64_t i = 0; i < run.count; i += run.count > 1 ? run.count - 1 : 1) { /* the first and the last block */
            const int64_t address = run.offset + i * run.stride;
            if (address / PAGE == asked)
                continue;
            asked = address / PAGE;
            if (!mpiox_memory_find((const void *)(uintptr_t)address, &found)) {
                has_host = true;
            } else if (!has_device) {
                has_device = true;
                *device = found;
            }
        }
    }
    if (has_device && has_host && device->failure == 0)
        device->failure = MPIOX_MEMORY_MIXED;
    return has_device;
}

bool mpiox_device_has(const mpiox_request *request, double now, mpiox_device *device)
{
    if (!mpiox_memory_any(now) || request->length == 0)
        return false;
    if (request->memory != NULL && request->buffer == NULL)
        return addresses_have(request, device);
    const int64_t first = request->memory ? mpiox_typemap_offset(request->memory, request->memory_position)
                                          : request->memory_position;
    return mpiox_memory_find((const void *)((uintptr_t)request->buffer + (uintptr_t)first), device);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

typedef struct access { /* one access under way */
    const mpiox_request *request;
    const mpiox_device_steps *steps;
    mpiox_staging *staging;
    mpiox_error *error;
} access_t;

static int64_t window_at(const access_t *a, int64_t at)
{
    const int64_t left = a->request->length - at;
    return left < a->steps->window ? left : a->steps->window;
}

static char *buffer_at(const access_t *a, int64_t at)
{
    return a->staging->buffers[at / a->steps->window % MPIOX_STAGING_BUFFERS];
}

/* Begin to copy the first `length` bytes of the window at `at`. */
static int begin_copy(const access_t *a, int64_t at, int64_t length)
{
    const mpiox_request *r = a->request;
    const mpiox_memory_layout device = {r->buffer, r->memory, 0, r->memory_position + at};
    if (length <= 0)
        return MPIOX_OK;
    return mpiox_copy_begin(a->staging, &device, buffer_at(a, at), length, !r->write, a->error);
}

static int step(const access_t *a, int64_t at, int64_t *done)
{
    mpiox_request part = *a->request;
    part.position += at;
    part.length = window_at(a, at);
    part.buffer = buffer_at(a, at);
    part.memory = NULL;
    part.memory_position = 0;
    *done = 0;
    return a->steps->step(a->steps->context, &part, done, a->error);
}

static int write_all(const access_t *a, int64_t *done)
{
    int code = begin_copy(a, 0, window_at(a, 0));
    while (code == MPIOX_OK && *done < a->request->length) {
        const int64_t at = *done, next = at + window_at(a, at);
        int64_t moved = 0;
        code = mpiox_staging_wait(a->staging, a->error);
        if (code == MPIOX_OK)
            code = begin_copy(a, next, window_at(a, next));
        if (code == MPIOX_OK)
            code = step(a, at, &moved);
        *done += moved;
        if (moved < next - at)
            break;
    }
    return code;
}

/* An error of the file system comes before one of the device: its bytes are those of windows further on. */
static int read_all(access_t *a, int64_t *done)
{
    mpiox_error copied = {.code = MPIOX_OK}, *error = a->error;
    int64_t at = 0;
    int code = MPIOX_OK;
    bool more = true;
    while (more && at < a->request->length && copied.code == MPIOX_OK) {
        int64_t moved;
        code = step(a, at, &moved);
        more = code == MPIOX_OK && moved == window_at(a, at);
        if (mpiox_staging_wait(a->staging, &copied) == MPIOX_OK) {
            *done = at;
            a->error = &copied;
            begin_copy(a, at, moved);
            a->error = error;
            at += moved;
        }
    }
    if (copied.code == MPIOX_OK && mpiox_staging_wait(a->staging, &copied) == MPIOX_OK)
        *done = at;
    if (code == MPIOX_OK && copied.code != MPIOX_OK)
        *error = copied;
    return error->code;
}

int mpiox_device_access(const mpiox_request *request, const mpiox_device *device, const mpiox_device_steps *steps,
                        mpiox_independent_counters *counters, int64_t *done, mpiox_error *error)
{
    access_t a = {.request = request, .steps = steps, .error = error};
    *done = 0;
    mpiox_error_clear(error);
    if (request->length <= 0)
        return MPIOX_OK;
    a.staging = mpiox_staging_take(device, steps->window, error);
    if (a.staging == NULL)
        return error->code;
    const int code = request->write ? write_all(&a, done) : read_all(&a, done);
    if (code == MPIOX_E_DEVICE)
        error->length = request->length;
    mpiox_independent_count_device(counters, request->write, *done, a.staging->spent_s);
    mpiox_staging_give(a.staging);
    return code;
}
