/*
 * mpiio_ext_delegates_ping.c - how long a request to a delegate and its answer take.
 */
#include "mpiio_ext.h"

#include "mpiox_service.h"
#include "mpiox_ring.h"

static int ping_local(const mpiox_process *delegate)
{
    mpiox_slot *slot = mpiox_ring_take(&delegate->cache);

    if (slot == NULL)
        return MPIOX_E_UNSUPPORTED;
    slot->op = MPIOX_OP_PING;
    const int code = mpiox_ring_call(&delegate->cache, slot, NULL);
    mpiox_ring_give_back(slot);
    return code;
}

int mpiio_ext_delegates_ping(int delegate, int count, double *seconds)
{
    const mpiox_service *service = mpiox_service_current();

    if (service == NULL || delegate < 0 || delegate >= service->count || count < 0)
        return MPIOX_E_ARG;
    for (int i = 0; i < count; i++) {
        const mpiox_process *asked = &service->delegates[delegate];
        mpiox_slot slot = {.op = MPIOX_OP_PING};
        const double begun = mpiox_now();
        const int code = asked->local ? ping_local(asked) : mpiox_link_call(asked->link, &slot);

        if (code != MPIOX_OK)
            return code;
        seconds[i] = mpiox_now() - begun;
    }
    return MPIOX_OK;
}
