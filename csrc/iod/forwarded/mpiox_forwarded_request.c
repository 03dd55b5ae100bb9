/*
 * mpiox_forwarded_request.c - a request without data to one delegate: through the ring of its memory, or over the
 *                             network.
 */
#include <string.h>

#include "mpiox_forwarded_impl.h"

static int call_local(const mpiox_process *delegate, mpiox_slot *slot)
{
    mpiox_slot *shared = mpiox_ring_take(&delegate->cache);
    int code;

    if (!shared)
        return MPIOX_E_UNSUPPORTED;
    shared->op = slot->op;
    shared->client = delegate->client;
    shared->file = slot->file;
    shared->question = slot->question;
    shared->answer = slot->answer;
    memcpy(shared->text, slot->text, sizeof slot->text);
    code = mpiox_ring_call(&delegate->cache, shared, NULL);
    slot->file = shared->file;
    slot->result = shared->result;
    slot->error = shared->error;
    slot->answer = shared->answer;
    mpiox_ring_give_back(shared);
    return code;
}

int mpiox_forwarded_request_of(mpiox_process *delegate, mpiox_slot *slot)
{
    if (delegate->local)
        return call_local(delegate, slot);
    return atomic_load(&delegate->left) ? MPIOX_E_UNSUPPORTED : mpiox_link_call(delegate->link, slot);
}

int mpiox_forwarded_request(const mpiox_forwarded *forwarded, int32_t owner, mpiox_slot *slot)
{
    if (slot->op != MPIOX_OP_OPEN)
        slot->file = forwarded->index[owner];
    return mpiox_forwarded_request_of(mpiox_forwarded_owner(forwarded, owner), slot);
}
