/*
 * mpiox_transport_shm.c - all ranks share one node: every rank reaches every collective buffer itself, so that a round
 * ends with its own windows.
 */
#include <stdlib.h>

#include "mpiox_transport.h"

static mpiox_transport *create(mpiox_buffers *b)
{
    mpiox_transport *transport = malloc(sizeof *transport);
    if (transport)
        *transport = (mpiox_transport){&mpiox_transport_shm, b};
    return transport;
}

static void release(mpiox_transport *transport)
{
    free(transport);
}

static int64_t shared_bytes(const mpiox_transport *transport)
{
    (void)transport;
    return 0;
}

static void nothing(mpiox_transport *transport)
{
    (void)transport;
}

static int nothing_to_start(mpiox_transport *transport, mpiox_call *call)
{
    (void)transport;
    (void)call;
    return MPIOX_OK;
}

static void nothing_of_call(mpiox_transport *transport, mpiox_call *call)
{
    (void)transport;
    (void)call;
}

const mpiox_transport_ops mpiox_transport_shm = {
    .name = "shm",
    .create = create,
    .free = release,
    .shared_bytes = shared_bytes,
    .reset = nothing,
    .begin = nothing_of_call,
    .start = nothing_to_start,
    .deliver = nothing_of_call,
    .fetch = nothing_of_call,
    .finish = nothing_of_call,
    .forget = nothing,
};
