/*
 * mpiox_lock_model_cache.c - data that a write has left in its client's cache and that is not on the servers yet.
 *
 * Problem.   A write returns as soon as its data is in the client's cache, which is written behind. A write waits only
 *            if the cache has no room. Lustre limits a client's cached data for each server (max_dirty_mb of each OSC).
 *            GPFS limits a client's cached data for all servers together (its share of the page pool).
 * Algorithm. For each limit the model has a list of writes in the order in which they were made. An entry has the bytes
 *            up to the write's end, and the time at which the write is on the server. There is room when enough of the
 *            oldest writes are on the server. Space is freed in the order of writes. A write larger than the limit
 *            waits for all earlier writes, and its aggregator waits until the write itself is on the server. Lists are
 *            circular, so that one number for each client and server finds both ends. Entries are reused.
 */
#include <stdlib.h>

#include "mpiox_lock_model_state.h"

#define FIRST_ENTRIES 1024

void mpiox_lock_model_cache_free(locks_cache *cache)
{
    free(cache->lasts);
    free(cache->entries);
    *cache = (locks_cache){0};
}

int mpiox_lock_model_cache_set_up(locks_cache *cache, int64_t limit, size_t lists)
{
    *cache = (locks_cache){.limit = limit};
    if (limit > 0)
        cache->lasts = calloc(lists, sizeof *cache->lasts); /* zeros: empty lists, and no memory until they are used */
    return limit == 0 || cache->lasts != NULL ? MPIOX_OK : MPIOX_E_NOMEM;
}

/* Take the oldest entry out of a list; returns it. */
static const locks_dirty *take(locks_cache *cache, size_t list)
{
    const int32_t last = cache->lasts[list], first = cache->entries[last].next;
    if (first == last)
        cache->lasts[list] = 0;
    else
        cache->entries[last].next = cache->entries[first].next;
    cache->entries[first].next = cache->unused;
    cache->unused = first;
    return &cache->entries[first];
}

/* The oldest entry of a list that is not empty. */
static const locks_dirty *oldest(const locks_cache *cache, size_t list)
{
    return &cache->entries[cache->entries[cache->lasts[list]].next];
}

double mpiox_lock_model_cache_room(locks_cache *cache, size_t list, double at, int64_t bytes)
{
    if (cache->limit == 0)
        return at;
    while (cache->lasts[list] != 0 && oldest(cache, list)->stored <= at)
        take(cache, list);
    if (cache->lasts[list] == 0)
        return at;
    const locks_dirty *last = &cache->entries[cache->lasts[list]];
    const int64_t end = last->from + last->bytes;
    const int64_t kept = bytes < cache->limit ? end + bytes - cache->limit : end; /* from there on all may stay */
    while (cache->lasts[list] != 0 && oldest(cache, list)->from < kept)
        at = take(cache, list)->stored;
    return at;
}

static int widen(locks_cache *cache)
{
    const int64_t capacity = cache->capacity == 0 ? FIRST_ENTRIES : 2 * cache->capacity;
    if (capacity > INT32_MAX)
        return MPIOX_E_NOMEM;
    locks_dirty *entries = realloc(cache->entries, (size_t)capacity * sizeof *entries);
    if (entries == NULL)
        return MPIOX_E_NOMEM;
    cache->n = cache->n == 0 ? 1 : cache->n; /* entry 0 is none */
    cache->entries = entries;
    cache->capacity = capacity;
    return MPIOX_OK;
}

int mpiox_lock_model_cache_add(locks_cache *cache, size_t list, int64_t bytes, double stored)
{
    if (cache->limit == 0)
        return MPIOX_OK;
    int32_t at = cache->unused;
    if (at != 0) {
        cache->unused = cache->entries[at].next;
    } else {
        if (cache->n == cache->capacity && widen(cache) != MPIOX_OK)
            return MPIOX_E_NOMEM;
        at = (int32_t)cache->n++;
    }
    locks_dirty *entry = &cache->entries[at];
    *entry = (locks_dirty){.bytes = bytes, .stored = stored, .next = at};
    if (cache->lasts[list] != 0) {
        locks_dirty *last = &cache->entries[cache->lasts[list]];
        entry->from = last->from + last->bytes;
        entry->stored = locks_later(stored, last->stored);
        entry->next = last->next;
        last->next = at;
    }
    cache->lasts[list] = at;
    return MPIOX_OK;
}
