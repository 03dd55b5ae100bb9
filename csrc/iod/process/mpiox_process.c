/* mpiox_process.c - see mpiox_process.h. */
#include "mpiox_process.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_process_notify.h"
#include "mpiox_process_liveness.h"
#include "mpiox_segment_guard.h"
#include "mpiox_cache_hidden.h"

enum { TEXT_BYTES = 1024, RESCUE_MS = 2000 }; /* RESCUE_MS: ranks detect a death of their node within a quarter of it */

static const double torn_s = 10; /* a delegate that cannot read its cache ends within a tenth of a second */

static int attach_memory(mpiox_process *delegate, const mpiox_announcement *announced, mpiox_error *error)
{
    int code = mpiox_segment_attach(&announced->segment, &delegate->segment, error);

    if (code != MPIOX_OK)
        return code;
    code = mpiox_cache_attach(delegate->segment.base, delegate->segment.bytes, &delegate->cache);
    if (code != MPIOX_OK) {
        mpiox_segment_free(&delegate->segment);
        return mpiox_error_set(error, code, 0, -1, -1, "attaching a delegate's memory");
    }
    if (delegate->segment.on_disk)
        mpiox_cache_guard(&delegate->cache, delegate->segment.fd);
    delegate->local = true;
    return MPIOX_OK;
}

static int attach_remote(mpiox_process *delegate, const mpiox_announcement *announced, double seconds,
                         mpiox_error *error)
{
    const double until = mpiox_now() + seconds;
    int code = mpiox_link_open(&announced->link, seconds, &delegate->link, error);

    if (code == MPIOX_OK && announced->liveness.port != 0)
        code = mpiox_liveness_connect(&announced->liveness, until - mpiox_now(), &delegate->liveness, error);
    if (code != MPIOX_OK)
        mpiox_process_disconnect(delegate);
    return code;
}

int mpiox_process_attach(mpiox_process *delegate, const mpiox_announcement *announced, int node, double seconds,
                         mpiox_error *error)
{
    *delegate = (mpiox_process){
        .index = announced->index, .node = announced->node, .client = -1, .liveness = -1, .pid = announced->pid};
    delegate->segment.fd = -1;
    memcpy(delegate->host, announced->host, sizeof delegate->host);
    delegate->lives_at = announced->liveness;
    if (announced->node == node && attach_memory(delegate, announced, error) == MPIOX_OK)
        return MPIOX_OK;
    if (announced->listens)
        return attach_remote(delegate, announced, seconds, error);
    return announced->node == node ? error->code
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
    mpiox_segment_unguard(delegate->segment.base);
    mpiox_segment_free(&delegate->segment);
    delegate->local = false;
}

void mpiox_process_touch(const mpiox_cache *cache, bool (*leaving)(void))
{
    static const int64_t step = 4 << 20; /* a millisecond or two, where there are no huge pages */
    /* With more dirty frames than these, pages are written at once. */
    const int64_t bytes = cache->header->early ? cache->frame_count / 4 * 3 * cache->page_bytes : 0;
    const int64_t before = (int64_t)((uintptr_t)cache->pages % (uintptr_t)step);

    for (int64_t at = 0, end = step - before; at < bytes && !(leaving != NULL && leaving()); at = end, end += step) {
        const int64_t part = (end < bytes ? end : bytes) - at;
        (void)mpiox_segment_make_huge(cache->pages + at, part);
        if (!mpiox_segment_touch(cache->pages + at, part))
            return;
    }
}

/* Its cache cannot be read. If not even its state can, its process shows when it is gone, which will be soon. */
static void await_end(mpiox_process *delegate)
{
    const double until = mpiox_now() + torn_s;
    mpiox_backoff backoff = {0};

    mpiox_cache_give_up(&delegate->cache);
    while (mpiox_cache_torn(&delegate->cache) == MPIOX_TORN_TABLES && kill((pid_t)delegate->pid, 0) == 0 &&
           mpiox_now() < until)
        mpiox_wait_backoff(&backoff);
    delegate->settled = true;
}

void mpiox_process_report_clash(const char *path, int code)
{
    char text[TEXT_BYTES + 2 * MPIOX_CACHE_PATH_BYTES], room[MPIOX_CACHE_PATH_BYTES];

    mpiox_cache_clash_text(path, code, text, sizeof text);
    mpiox_process_notify("%s %s", mpiox_cache_shown_name(path, room, sizeof room), text);
}

void mpiox_process_report_removal(const char *path, int64_t bytes)
{
    char room[MPIOX_CACHE_PATH_BYTES];

    mpiox_process_notify("%s was removed while %lld bytes were not written: they are lost; run `mpiio-ext delegates "
                         "wait` before you move or copy files",
                         mpiox_cache_shown_name(path, room, sizeof room), (long long)bytes);
}

void mpiox_process_report_left(const mpiox_cache *cache)
{
    const mpiox_file_record *files = cache->header->files;
    const int32_t both = MPIOX_FILE_DRAINING | MPIOX_FILE_COPIED; /* the delegates that have copies write them */
    char text[TEXT_BYTES], room[MPIOX_CACHE_PATH_BYTES];
    mpiox_error error;

    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        if ((atomic_load(&files[i].flags) & both) == MPIOX_FILE_DRAINING &&
            mpiox_cache_find_error(cache, i, 0, INT64_MAX, &error))
            mpiox_process_notify(
                "lost bytes: %s",
                mpiox_error_text(&error, mpiox_cache_shown_name(files[i].path, room, sizeof room), text, sizeof text));
        else if (atomic_load(&files[i].openers) > 0 && mpiox_cache_is_clash(atomic_load(&files[i].drain_errno)) &&
                 !(atomic_load(&files[i].flags) & MPIOX_FILE_DRAINING))
            mpiox_process_report_clash(files[i].path, atomic_load(&files[i].drain_errno));
    }
}

static bool local_is_serving(mpiox_process *delegate)
{
    if (mpiox_cache_is_serving(&delegate->cache, true))
        return true;
    if (!delegate->settled && mpiox_cache_torn(&delegate->cache) != MPIOX_TORN_NOT)
        await_end(delegate);
    if (mpiox_futex_get(&delegate->cache.header->state) == MPIOX_CACHE_DEAD) {
        const int64_t bytes = mpiox_cache_rescue(&delegate->cache);

        if (bytes >= 0)
            mpiox_process_notify(
                "I/O delegate %d (process %lld on %s) has died; its %lld dirty bytes were written by process %ld",
                (int)delegate->index, (long long)delegate->pid, delegate->host, (long long)bytes, (long)getpid());
        if (bytes >= 0)
            mpiox_process_report_left(&delegate->cache);
    }
    if (mpiox_cache_torn(&delegate->cache) == MPIOX_TORN_TABLES)
        delegate->lost = true;
    return false;
}

static bool remote_is_serving(mpiox_process *delegate)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one thread of the process asks */

    if (atomic_load(&delegate->left) || delegate->link == NULL)
        return false;
    if (mpiox_link_is_alive(delegate->link))
        return true;
    pthread_mutex_lock(&lock);
    if (!delegate->settled) {
        delegate->lost = !mpiox_liveness_ask(delegate->liveness);
        if (delegate->lost) /* with its supervisor: ranks of its node may be writing its bytes */
            poll(NULL, 0, RESCUE_MS);
    }
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
