/*
 * mpiox_call_copy.c - copies between a rank's memory, which may be a GPU's, and the buffers of a collective.
 *
 * The processor copies host memory at once. Device memory passes through staging, which the call takes at its first
 * copy and has until its end: as much host memory as two windows, whatever the length of the access.
 */
#include "mpiox_buffers.h"
#include "mpiox_copy_device.h"

static int copy_device(mpiox_call *call, const mpiox_memory_layout *memory, const mpiox_memory_layout *host,
                       int64_t length)
{
    mpiox_buffers *b = call->b;
    mpiox_error error = {.code = MPIOX_OK};
    if (call->staging == NULL)
        call->staging = mpiox_staging_take(&call->device, mpiox_file_device_window(b->file, call->request), &error);
    if (call->staging == NULL ||
        mpiox_copy_device(call->staging, memory, host, length, !call->write, &error) != MPIOX_OK) {
        error.rank = b->file->topology->rank;
        error.length = call->request->length;
        mpiox_buffers_fail(b, &error);
    } else {
        mpiox_independent_count_device(&b->file->independent, call->write, length, 0);
    }
    return error.code;
}

int mpiox_call_copy(mpiox_call *call, const mpiox_memory_layout *host, int64_t from, int64_t length)
{
    const mpiox_request *request = call->request;
    const mpiox_memory_layout memory = {request->buffer, request->memory, 0, from - request->position};
    if (call->device.kind != NULL)
        return copy_device(call, &memory, host, length);
    if (call->write)
        mpiox_copy(host, &memory, length);
    else
        mpiox_copy(&memory, host, length);
    return MPIOX_OK;
}
