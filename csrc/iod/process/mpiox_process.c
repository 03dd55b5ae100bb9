/* mpiox_process.c - see mpiox_process.h. */
#include "mpiox_process.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_process_notify.h"
#include "mpiox_process_liveness.h"

static int attach_memory(mpiox_process *delegate, const mpiox_announcement *said, mpiox_error *error)
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

static int attach_remote(mpiox_process *delegate, const mpiox_announcement *said, double seconds, mpiox_error *error)
{
    const double until = mpiox_now() + seconds;
    int code = mpiox_link_open(&said->link, seconds, &delegate->link, error);

    if (code == MPIOX_OK && said->liveness.port != 0)
        code = mpiox_liveness_connect(&said->liveness, until - mpiox_now(), &delegate->liveness, error);
    if (code != MPIOX_OK)
        mpiox_process_disconnect(delegate);
    return code;
}

int mpiox_process_attach(mpiox_process *delegate, const mpiox_announcement *said, int node, double seconds,
                         mpiox_error *error)
{
    *delegate = (mpiox_process){
        .index = said->index, .node = said->node, .client = -1, .liveness = -1, .pid = said->pid};
    delegate->segment.fd = -1;
    memcpy(delegate->host, said->host, sizeof delegate->host);
    if (said->node == node && attach_memory(delegate, said, error) == MPIOX_OK)
        return MPIOX_OK;
    if (said->listens)
        return attach_remote(delegate, said, seconds, error);
    return said->node == node ? error->code
                              : mpiox_error_set(error, MPIOX_E_UNSUPPORTED, 0, -1, -1, "reaching a delegate");
}

void mpiox_process_disconnect(mpiox_process *delegate)
{
    mpiox_link *link = delegate->link;

    if (delegate->local)
        return;
    delegate->link = NULL;
    mpiox_link_close(link);
    if (delegate->liveness > 0)
        close(delegate->liveness);
    delegate->liveness = -1;
}

void mpiox_process_detach(mpiox_process *delegate)
{
    mpiox_process_disconnect(delegate);
    mpiox_segment_free(&delegate->segment);
    delegate->local = false;
}

static bool local_is_serving(mpiox_process *delegate)
{
    if (mpiox_cache_is_serving(&delegate->cache, true))
        return true;
    if (mpiox_futex_get(&delegate->cache.header->state) == MPIOX_CACHE_DEAD) {
        const int64_t bytes = mpiox_cache_rescue(&delegate->cache);

        if (bytes >= 0)
            mpiox_process_notify(
                "I/O delegate %d (process %lld on %s) has died; %lld bytes that it had not written have "
                "been written by process %ld",
                (int)delegate->index, (long long)delegate->pid, delegate->host, (long long)bytes, (long)getpid());
    }
    return false;
}

static bool remote_is_serving(mpiox_process *delegate)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one thread of the process asks */

    if (delegate->link == NULL)
        return false;
    if (mpiox_link_is_alive(delegate->link))
        return true;
    pthread_mutex_lock(&lock);
    if (!delegate->settled)
        delegate->lost = !mpiox_liveness_ask(delegate->liveness);
    delegate->settled = true;
    pthread_mutex_unlock(&lock);
    return false;
}

bool mpiox_process_is_serving(mpiox_process *delegate)
{
    return delegate->local ? local_is_serving(delegate) : remote_is_serving(delegate);
}

bool mpiox_process_has_died(const mpiox_process *delegate)
{
    if (!delegate->local)
        return delegate->settled;
    const uint32_t state = mpiox_futex_get(&delegate->cache.header->state);

    return state == MPIOX_CACHE_DEAD || state == MPIOX_CACHE_RESCUED;
}
