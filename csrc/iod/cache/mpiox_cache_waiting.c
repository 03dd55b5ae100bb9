/*
 * mpiox_cache_waiting.c - see mpiox_cache_waiting.h. Readers skip an entry whose process has died; the next waiter
 * takes it.
 */
#include "mpiox_cache_waiting.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static const double shown_s = 1.0, step_s = 1.0; /* one step counts for so much at most */

static mpiox_cache_patience own = {.rank = -1};
static atomic_bool reporting; /* a wait of this process has been reported, and continues */

void mpiox_cache_set_patience(const mpiox_cache_patience *patience)
{
    own = *patience;
}

/* No entry is free: the wait is not shown. */
static void show(const mpiox_cache *cache, mpiox_cache_wait *wait, int32_t op, int32_t file, int64_t page)
{
    for (int i = 0; i < MPIOX_CACHE_WAITERS && wait->entry == 0; i++) {
        mpiox_waiter *waiter = &cache->header->waiters[i];
        int64_t pid = atomic_load(&waiter->pid);
        if (pid != 0 && (kill((pid_t)pid, 0) == 0 || errno != ESRCH))
            continue;
        if (!atomic_compare_exchange_strong(&waiter->pid, &pid, -1)) /* no process's number, until it is filled in */
            continue;
        atomic_store(&waiter->rank, own.rank);
        atomic_store(&waiter->op, op);
        atomic_store(&waiter->file, file);
        atomic_store(&waiter->page, page);
        atomic_store(&waiter->since_us, mpiox_wall_ns() / 1000 - (int64_t)(wait->seconds * 1e6));
        atomic_store(&waiter->pid, getpid());
        wait->entry = i + 1;
    }
}

void mpiox_cache_wait_step(const mpiox_cache *cache, mpiox_cache_wait *wait, int32_t op, int32_t file, int64_t page)
{
    const double now = mpiox_now();
    (void)mpiox_cache_watch((void *)cache);
    if (wait->last == 0)
        wait->beat = atomic_load_explicit(&cache->header->beat, memory_order_relaxed);
    else
        wait->seconds += now - wait->last < step_s ? now - wait->last : step_s;
    wait->last = now;
    if (wait->seconds < shown_s || !mpiox_cache_is_serving(cache, false))
        return;
    if (wait->entry == 0)
        show(cache, wait, op, file, page);
    if (own.report == NULL || own.seconds <= 0 || wait->seconds < own.seconds || wait->reported ||
        atomic_exchange(&reporting, true))
        return;
    wait->reported = true;
    const char *path = wait->path != NULL ? wait->path : "";
    if (file >= 0 && file < MPIOX_CACHE_MAX_FILES)
        path = cache->header->files[file].path;
    own.report(cache, op, path, page, wait->seconds,
               atomic_load_explicit(&cache->header->beat, memory_order_relaxed) != wait->beat);
}

void mpiox_cache_wait_end(const mpiox_cache *cache, mpiox_cache_wait *wait)
{
    if (wait->entry > 0)
        atomic_store(&cache->header->waiters[wait->entry - 1].pid, 0);
    if (wait->reported)
        atomic_store(&reporting, false);
    wait->entry = 0;
    wait->reported = false;
}
