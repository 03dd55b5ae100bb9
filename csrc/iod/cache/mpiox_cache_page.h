/*
 * mpiox_cache_page.h - a client's access to the bytes of one page: the inner step of all access through delegates.
 *
 * Used by clients of the delegate's node, and by the delegate's own network threads on behalf of clients elsewhere.
 */
#ifndef MPIOX_CACHE_PAGE_H
#define MPIOX_CACHE_PAGE_H

#include "mpiox_cache.h"
#include "mpiox_copy.h"

/* The part of an access that lies in one page. */
typedef struct mpiox_page_access {
    int32_t file;   /* index of the file record at this delegate */
    int32_t client; /* id + 1 of the client, for the order of requests; 0: not known */
    int64_t page;   /* index in the file: byte offset / page_bytes */
    bool write;     /* false: the access reads */
    /* File: stream byte k of the view lies at file offset origin + offset(view, position + k). All `length` stream
     * bytes lie inside the page. view NULL: contiguous, at file offset origin + position + k. */
    const mpiox_typemap *view;
    int64_t origin, position, length;
    mpiox_memory_layout memory; /* the same stream bytes in memory; not modified by writes */
    const int64_t *ahead;       /* reads: pages likely to be read next from this delegate, or NULL */
    int32_t ahead_count;        /* entries of `ahead` */
    bool impatient; /* a page whose range is changing hands is MPIOX_PAGE_MOVED at once, not after half a second */
} mpiox_page_access;

enum {                       /* results of mpiox_cache_access_page() beside MPIOX_OK */
       MPIOX_PAGE_GONE = 1,  /* the delegate no longer serves: nothing was done (rescue, then go to the file) */
       MPIOX_PAGE_MOVED = 3, /* another delegate owns the page's range now: see the record's owner_of */
       MPIOX_PAGE_SHORT = 2  /* read: the page is not known to reach to the last requested byte; nothing was copied.
                             *known = how many bytes of the page, from its start, are known to exist. The caller finds
                             out the file's logical size and either reads less or calls with `beyond` */
};

/* Blocking; any thread. beyond: reads return zeros for bytes past known_end (the caller knows that the file is longer).
 * MPIOX_OK, MPIOX_PAGE_*, or MPIOX_E_IO with *error: the fill failed, or the file system had refused bytes that are
 * read, and no call has taken that error. The caller advances `memory`. */
int mpiox_cache_access_page(const mpiox_cache *cache, const mpiox_page_access *access, bool beyond, int64_t *known,
                            mpiox_error *error);

/* Is the page in the cache? Exact at some moment during the call; for large accesses that go straight to the file
 * unless the page is cached. MPIOX_FRAME_HIT (nothing is pinned), _MISS, _GONE or _MOVED (or moving: perhaps cached
 * elsewhere). */
int mpiox_cache_has_page(const mpiox_cache *cache, int32_t file, int64_t page);

#endif
