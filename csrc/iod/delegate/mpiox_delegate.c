/* mpiox_delegate.c - see mpiox_delegate.h. */
#include "mpiox_delegate.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_delegate_tell.h"
#include "mpiox_delegate_watch.h"

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

static int attach_remote(mpiox_delegate *delegate, const mpiox_announcement *said, double seconds, mpiox_error *error)
{
    const double until = mpiox_now() + seconds;
    int code = mpiox_link_open(&said->link, seconds, &delegate->link, error);

    if (code == MPIOX_OK && said->watch.port != 0)
        code = mpiox_watch_connect(&said->watch, until - mpiox_now(), &delegate->watch, error);
    if (code != MPIOX_OK)
        mpiox_delegate_disconnect(delegate);
    return code;
}

int mpiox_delegate_attach(mpiox_delegate *delegate, const mpiox_announcement *said, int node, double seconds,
                          mpiox_error *error)
{
    *delegate = (mpiox_delegate){.index = said->index, .node = said->node, .client = -1, .watch = -1, .pid = said->pid};
    delegate->segment.fd = -1;
    memcpy(delegate->host, said->host, sizeof delegate->host);
    if (said->node == node && attach_memory(delegate, said, error) == MPIOX_OK)
        return MPIOX_OK;
    if (said->listens)
        return attach_remote(delegate, said, seconds, error);
    return said->node == node ? error->code
                              : mpiox_error_set(error, MPIOX_E_UNSUPPORTED, 0, -1, -1, "reaching a delegate");
}

void mpiox_delegate_disconnect(mpiox_delegate *delegate)
{
    mpiox_link *link = delegate->link;

    if (delegate->local)
        return;
    delegate->link = NULL;
    mpiox_link_close(link);
    if (delegate->watch > 0)
        close(delegate->watch);
    delegate->watch = -1;
}

void mpiox_delegate_detach(mpiox_delegate *delegate)
{
    mpiox_delegate_disconnect(delegate);
    mpiox_segment_free(&delegate->segment);
    delegate->local = false;
}

static bool local_is_serving(mpiox_delegate *delegate)
{
    if (mpiox_cache_is_serving(&delegate->cache, true))
        return true;
    if (mpiox_word_get(&delegate->cache.header->state) == MPIOX_CACHE_DEAD) {
        const int64_t bytes = mpiox_cache_rescue(&delegate->cache);

        if (bytes >= 0)
            mpiox_delegate_tell(
                "I/O delegate %d (process %lld on %s) has died; %lld bytes that it had not written have "
                "been written by process %ld",
                (int)delegate->index, (long long)delegate->pid, delegate->host, (long long)bytes, (long)getpid());
    }
    return false;
}

static bool remote_is_serving(mpiox_delegate *delegate)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one thread of the process asks */

    if (delegate->link == NULL)
        return false;
    if (mpiox_link_is_alive(delegate->link))
        return true;
    pthread_mutex_lock(&lock);
    if (!delegate->settled)
        delegate->lost = !mpiox_watch_ask(delegate->watch);
    delegate->settled = true;
    pthread_mutex_unlock(&lock);
    return false;
}

bool mpiox_delegate_is_serving(mpiox_delegate *delegate)
{
    return delegate->local ? local_is_serving(delegate) : remote_is_serving(delegate);
}

bool mpiox_delegate_has_died(const mpiox_delegate *delegate)
{
    if (!delegate->local)
        return delegate->settled;
    const uint32_t state = mpiox_word_get(&delegate->cache.header->state);

    return state == MPIOX_CACHE_DEAD || state == MPIOX_CACHE_RESCUED;
}
