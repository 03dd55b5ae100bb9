/* mpiox_delegate.c - see mpiox_delegate.h. */
#include "mpiox_delegate.h"

#include <stdio.h>
#include <string.h>

static int attach_memory(mpiox_delegate *delegate, const mpiox_announcement *said, mpiox_error *error)
{
    int code = mpiox_segment_attach(&said->segment, &delegate->segment, error);

    if (code != MPIOX_OK)
        return code;
    code = mpiox_cache_attach(delegate->segment.base, delegate->segment.bytes, &delegate->cache);
    if (code != MPIOX_OK) {
        mpiox_segment_free(&delegate->segment);
        return mpiox_error_set(error, code, 0, -1, -1, "attaching a delegate's memory");
    }
    delegate->local = true;
    return MPIOX_OK;
}

int mpiox_delegate_attach(mpiox_delegate *delegate, const mpiox_announcement *said, int node, double seconds,
                          mpiox_error *error)
{
    *delegate = (mpiox_delegate){.index = said->index, .node = said->node, .client = -1, .pid = said->pid};
    delegate->segment.fd = -1;
    memcpy(delegate->host, said->host, sizeof delegate->host);
    if (said->node == node && attach_memory(delegate, said, error) == MPIOX_OK)
        return MPIOX_OK;
    if (!said->listens)
        return said->node == node ? error->code
                                  : mpiox_error_set(error, MPIOX_E_UNSUPPORTED, 0, -1, -1, "reaching a delegate");
    return mpiox_link_open(&said->link, seconds, &delegate->link, error);
}

void mpiox_delegate_detach(mpiox_delegate *delegate)
{
    if (delegate == NULL)
        return;
    mpiox_link_close(delegate->link);
    mpiox_segment_free(&delegate->segment);
    delegate->link = NULL;
    delegate->local = false;
}

bool mpiox_delegate_is_serving(mpiox_delegate *delegate)
{
    if (!delegate->local)
        return delegate->link != NULL && mpiox_link_is_alive(delegate->link);
    if (mpiox_cache_is_serving(&delegate->cache, true))
        return true;
    if (mpiox_word_get(&delegate->cache.header->state) == MPIOX_CACHE_DEAD)
        mpiox_cache_rescue(&delegate->cache);
    return false;
}
