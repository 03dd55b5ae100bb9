/*
 * mpiox_cache.c - files and counters of a cache, and the life and death of its delegate.
 *
 * Problem.    A client must know immediately, and for certain, that the delegate has died: a heartbeat cannot
 *             distinguish a dead process from a slow one, and a process id means nothing in another process-id
 *             namespace.
 * Algorithm.  Each thread of the delegate owns a robust mutex in the segment as long as it lives. When a thread ends in
 *             any way the kernel marks its mutexes, so that trylock returns EOWNERDEAD, also for a process that is not
 *             reaped yet and across namespaces. The first client that gets EOWNERDEAD notes the death beside the mutex,
 *             and makes the mutex consistent. (POSIX also permits to unlock such a mutex as it is. That does not
 *             suffice: with glibc 2.36 pthread_mutex_trylock() of a mutex that is not recoverable leaves it locked, so
 *             that the next call returns EBUSY.)
 * Guarantees. The state goes to DEAD once, by compare and swap, and only from STARTING or SERVING.
 *             A delegate whose memory is a file that cannot be read any more counts as dead: the process that detects
 *             this ends it, so that no process continues with bytes that another cannot see.
 * Source.     pthread_mutexattr_setrobust(3); Linux, Documentation/locking/robust-futexes.
 */
#include "mpiox_cache.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "mpiox_segment_guard.h"

/* ---- life and death ---------------------------------------------------------------------------------------------- */

int mpiox_cache_make_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int code = pthread_mutexattr_init(&attributes);
    if (code != 0)
        return code;
    code = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (code == 0)
        code = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (code == 0)
        code = pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return code;
}

int mpiox_cache_look_at_life(mpiox_life *life)
{
    int32_t phase = atomic_load(&life->phase);
    if (phase != MPIOX_LIFE_ALIVE)
        return phase;
    const int code = pthread_mutex_trylock(&life->mutex);
    if (code == EBUSY)
        return MPIOX_LIFE_ALIVE;
    if (code == EOWNERDEAD) {
        /* Recorded before the mutex is free: if this process dies here, the next one sees it. */
        atomic_compare_exchange_strong(&life->phase, &phase, MPIOX_LIFE_DEAD);
        pthread_mutex_consistent(&life->mutex);
    }
    if (code == 0 || code == EOWNERDEAD)
        pthread_mutex_unlock(&life->mutex);
    return atomic_load(&life->phase);
}

int mpiox_cache_live(const mpiox_cache *cache)
{
    mpiox_cache_header *header = cache->header;
    int32_t index = atomic_load(&header->threads);
    do {
        if (index >= MPIOX_CACHE_MAX_THREADS)
            return MPIOX_E_FULL;
    } while (!atomic_compare_exchange_weak(&header->threads, &index, index + 1));
    if (pthread_mutex_lock(&header->life[index].mutex) != 0)
        return MPIOX_E_FULL;
    atomic_store(&header->life[index].phase, MPIOX_LIFE_ALIVE);
    return index;
}

void mpiox_cache_end_life(const mpiox_cache *cache, int index)
{
    if (index < 0)
        return;
    assert(index < MPIOX_CACHE_MAX_THREADS);
    assert(atomic_load(&cache->header->life[index].phase) == MPIOX_LIFE_ALIVE);
    atomic_store(&cache->header->life[index].phase, MPIOX_LIFE_ENDED);
    pthread_mutex_unlock(&cache->header->life[index].mutex);
}

static bool is_state_serving(uint32_t state)
{
    return state == MPIOX_CACHE_SERVING || state == MPIOX_CACHE_STARTING;
}

/* The state shows it. */
static bool looks_alive(const mpiox_cache *cache)
{
    mpiox_cache_header *header = cache->header;
    uint32_t state;
    const int life = mpiox_cache_look_at_life(&header->life[0]);
    if (life == MPIOX_LIFE_ALIVE || life == MPIOX_LIFE_NONE)
        return true;
    state = mpiox_futex_get(&header->state); /* it may have ended regularly during this check */
    while (is_state_serving(state)) {
        if (atomic_compare_exchange_weak(&header->state.value, &state, MPIOX_CACHE_DEAD))
            break;
    }
    return false;
}

static int64_t bytes_of(const mpiox_cache *cache)
{
    return cache->pages - (char *)cache->header + cache->frame_count * cache->page_bytes;
}

bool mpiox_cache_is_serving(const mpiox_cache *cache, bool look)
{
    if (!is_state_serving(mpiox_futex_get(&cache->header->state)))
        return false;
    if (atomic_load_explicit(&mpiox_segment_lost_some, memory_order_relaxed) &&
        mpiox_segment_is_lost(cache->header, bytes_of(cache)))
        return false;
    return !look || looks_alive(cache);
}

/* Private memory in place of tables reads as: no page, no free frame, and no client that waits for the delegate. */
void mpiox_cache_guard(mpiox_cache *cache, int disk)
{
    const mpiox_segment_empty empty = {.ones = cache->buckets,
                                       .ones_bytes = (char *)cache->dirty - (char *)cache->buckets,
                                       .word = &cache->header->state.value,
                                       .value = MPIOX_CACHE_RESCUED};
    (void)mpiox_segment_guard(cache->header, bytes_of(cache), &empty);
    cache->disk = disk;
}

int mpiox_cache_torn(const mpiox_cache *cache)
{
    const int64_t tables = cache->pages - (char *)cache->header;
    if (mpiox_segment_is_lost(cache->header, tables))
        return MPIOX_TORN_TABLES;
    const int torn = atomic_load(&cache->header->torn);
    return torn == MPIOX_TORN_NOT && mpiox_segment_is_lost(cache->header, bytes_of(cache)) ? MPIOX_TORN_PAGES : torn;
}

void mpiox_cache_give_up(const mpiox_cache *cache)
{
    mpiox_cache_header *header = cache->header;
    mpiox_backoff backoff = {0};
    if (atomic_load(&header->torn) < mpiox_cache_torn(cache))
        atomic_store(&header->torn, mpiox_cache_torn(cache));
    while (is_state_serving(mpiox_futex_get(&header->state)) && looks_alive(cache))
        mpiox_wait_backoff(&backoff);
}

bool mpiox_cache_watch(void *context)
{
    static const double every_s = 2e-3;
    static _Thread_local double next;
    const double now = mpiox_now();
    if (now >= next) {
        next = now + every_s;
        (void)mpiox_cache_is_serving(context, true);
    }
    return false;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

void mpiox_cache_sum(const mpiox_cache *cache, mpiox_cache_counters *out)
{
    mpiox_cache_counters *from = &cache->header->counters;
    uint64_t prefetch_used = 0, misses = 0; /* of memory that is damaged they may be anything: sums wrap around */
#define X(name, unit, meaning) atomic_store(&out->name, atomic_load_explicit(&from->name, memory_order_relaxed));
    MPIOX_CACHE_COUNTERS(X)
#undef X
    for (size_t i = 0; i < sizeof out->flush_size_log2 / sizeof out->flush_size_log2[0]; i++)
        atomic_store(&out->flush_size_log2[i], atomic_load_explicit(&from->flush_size_log2[i], memory_order_relaxed));
    for (int i = 0; i < MPIOX_CACHE_SHARDS; i++) {
        mpiox_cache_shard *shard = &cache->header->shards[i];
        atomic_fetch_add(&out->writes, atomic_load_explicit(&shard->writes, memory_order_relaxed));
        atomic_fetch_add(&out->reads, atomic_load_explicit(&shard->reads, memory_order_relaxed));
        atomic_fetch_add(&out->bytes_written, atomic_load_explicit(&shard->bytes_written, memory_order_relaxed));
        atomic_fetch_add(&out->bytes_read, atomic_load_explicit(&shard->bytes_read, memory_order_relaxed));
        misses += (uint64_t)atomic_load_explicit(&shard->misses, memory_order_relaxed);
        prefetch_used += (uint64_t)atomic_load_explicit(&shard->prefetch_used, memory_order_relaxed);
    }
    atomic_fetch_add(&out->misses, (int64_t)misses);
    atomic_fetch_add(&out->prefetch_used, (int64_t)prefetch_used);
    atomic_store(&out->hits, atomic_load(&out->writes));
    atomic_fetch_add(&out->hits, atomic_load(&out->reads));
    atomic_fetch_sub(&out->hits, atomic_load(&out->misses));
}

void mpiox_cache_raise_end(const mpiox_cache *cache, int32_t file, int64_t end)
{
    _Atomic int64_t *known = &cache->header->files[file].end;
    int64_t now = atomic_load_explicit(known, memory_order_relaxed);
    while (now < end &&
           !atomic_compare_exchange_weak_explicit(known, &now, end, memory_order_release, memory_order_relaxed)) {
    }
}

int64_t mpiox_cache_changed_ns(const struct stat *status)
{
    return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

void mpiox_cache_begin_write(mpiox_file_record *record)
{
    atomic_store(&record->begun_ns, mpiox_wall_ns());
}

/* In this order: a process that is killed between the two leaves begun_ns. */
void mpiox_cache_see(mpiox_file_record *record, const struct stat *status, int64_t begun)
{
    const int64_t changed = mpiox_cache_changed_ns(status), seen = atomic_load(&record->seen_ns);
    if (changed >= seen) {
        atomic_store(&record->seen_bytes, (int64_t)status->st_size);
        atomic_store(&record->seen_ns, changed);
    }
    atomic_compare_exchange_strong(&record->begun_ns, &begun, 0);
}
