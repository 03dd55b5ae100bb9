/* mpiox_service_join.c - see mpiox_service_join.h. */
#include "mpiox_service_join.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "mpiox_ring.h"
#include "mpiox_segment_guard.h"

static const double look_s = 0.25;

/* The one watcher of this process. */
static struct watcher {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    mpiox_process *delegates;
    int32_t count;
    bool running, ready, leaving;
    int code; /* of joining */
} watcher = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the watcher's thread ---------------------------------------------------------------------------------------- */

static void leave_one(mpiox_process *delegate)
{
    mpiox_slot *slot;

    if (!delegate->local || delegate->client < 0)
        return;
    mpiox_ring_leave(&delegate->cache, delegate->client);
    slot = mpiox_ring_take(&delegate->cache); /* so that it need not find out by itself */
    if (slot != NULL) {
        slot->op = MPIOX_OP_DETACH;
        slot->client = delegate->client;
        slot->question.detach.client = delegate->client;
        mpiox_ring_post(&delegate->cache, slot);
    }
    delegate->client = -1;
}

static int join_all(void)
{
    for (int32_t i = 0; i < watcher.count; i++) {
        mpiox_process *delegate = &watcher.delegates[i];

        if (!delegate->local)
            continue;
        delegate->client = mpiox_ring_join(&delegate->cache);
        if (delegate->client < 0)
            return MPIOX_E_FULL;
    }
    return MPIOX_OK;
}

static void leave_all(void)
{
    for (int32_t i = 0; i < watcher.count; i++)
        leave_one(&watcher.delegates[i]);
}

/* This process writes the pages of a dead delegate of its node. */
static void rescue_all(void)
{
    for (int32_t i = 0; i < watcher.count; i++) {
        if (watcher.delegates[i].local)
            mpiox_process_is_serving(&watcher.delegates[i]);
    }
}

static void look_at_all(void)
{
    rescue_all();
    for (int32_t i = 0; i < watcher.count; i++) {
        if (!watcher.delegates[i].local)
            mpiox_service_patience_look(&watcher.delegates[i]);
    }
}

static bool is_leaving(void)
{
    pthread_mutex_lock(&watcher.lock);
    const bool leaving = watcher.leaving;

    pthread_mutex_unlock(&watcher.lock);
    return leaving;
}

static void touch_all(void)
{
    for (int32_t i = 0; i < watcher.count; i++) {
        if (watcher.delegates[i].local)
            mpiox_process_touch(&watcher.delegates[i].cache, is_leaving);
    }
}

static void *watch(void *context)
{
    (void)context;
    const int code = join_all();
    pthread_mutex_lock(&watcher.lock);
    watcher.code = code;
    watcher.ready = true;
    pthread_cond_broadcast(&watcher.changed);
    pthread_mutex_unlock(&watcher.lock);
    if (code == MPIOX_OK)
        touch_all();
    pthread_mutex_lock(&watcher.lock);
    while (!watcher.leaving) {
        mpiox_wait_condition(&watcher.changed, &watcher.lock, mpiox_now() + look_s);
        if (watcher.leaving)
            break;
        pthread_mutex_unlock(&watcher.lock);
        look_at_all();
        pthread_mutex_lock(&watcher.lock);
    }
    pthread_mutex_unlock(&watcher.lock);
    rescue_all(); /* it has died since, and so has its supervisor: this process may be the last that can */
    leave_all();
    return NULL;
}

/* ---- the program's thread ---------------------------------------------------------------------------------------- */

static void detach_all(mpiox_process *delegates, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        mpiox_process_detach(&delegates[i]);
}

static int start_thread(void)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* mpiox_segment_guard.h */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&watcher.thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? MPIOX_OK : MPIOX_E_NOMEM;
}

static int start_watcher(mpiox_process *delegates, int32_t count, mpiox_error *error)
{
    mpiox_wait_make_condition(&watcher.changed);
    watcher.delegates = delegates;
    watcher.count = count;
    watcher.ready = watcher.leaving = false;
    if (start_thread() != MPIOX_OK)
        return mpiox_error_set(error, MPIOX_E_NOMEM, EAGAIN, -1, -1, "starting a thread that watches delegates");
    pthread_mutex_lock(&watcher.lock);
    while (!watcher.ready)
        mpiox_wait_condition(&watcher.changed, &watcher.lock, INFINITY);
    pthread_mutex_unlock(&watcher.lock);
    watcher.running = true;
    if (watcher.code == MPIOX_OK)
        return MPIOX_OK;
    mpiox_service_leave();
    return mpiox_error_set(error, watcher.code, 0, -1, -1, "joining a delegate");
}

int mpiox_service_join(mpiox_process *delegates, const mpiox_announcement *announced, int32_t count, int node,
                       double seconds, const mpiox_service_patience *patience, mpiox_error *error)
{
    const double until = mpiox_now() + seconds;
    int code = MPIOX_OK;
    int32_t done = 0;

    while (done < count && code == MPIOX_OK) {
        const double left = until - mpiox_now();

        code = mpiox_process_attach(&delegates[done], &announced[done], node, left > 0 ? left : 0, error);
        done += code == MPIOX_OK;
    }
    mpiox_service_patience_set(patience);
    if (code == MPIOX_OK)
        code = start_watcher(delegates, count, error);
    if (code != MPIOX_OK)
        detach_all(delegates, done);
    return code;
}

void mpiox_service_leave(void)
{
    if (!watcher.running)
        return;
    mpiox_segment_guard_again();
    pthread_mutex_lock(&watcher.lock);
    watcher.leaving = true;
    pthread_cond_broadcast(&watcher.changed);
    pthread_mutex_unlock(&watcher.lock);
    pthread_join(watcher.thread, NULL);
    watcher.running = false;
    for (int32_t i = 0; i < watcher.count; i++)
        mpiox_process_disconnect(&watcher.delegates[i]);
}
