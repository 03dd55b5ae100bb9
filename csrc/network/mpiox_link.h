/*
 * mpiox_link.h - access to a delegate on another node.
 *
 * Problem.   Clients of other nodes cannot map the delegate's memory. MPI between a program and processes that it
 *            spawned dies with them, needs thread support for nonblocking access, and is not there in every mode.
 * Algorithm. A stream connection (TCP) per client process and delegate. An access travels as a compact description: the
 *            view once (the typemap's blob), then stream positions and the packed bytes of those pages that the delegate
 *            owns. At the delegate a thread per connection carries it out on the cache as a client of that node would.
 * Guarantee. An answer means that the delegate has deposited the bytes. A connection is admitted only with the group's
 *            secret. A lost connection is MPIOX_E_UNSUPPORTED; whether the request was carried out is then not known, so
 *            it is carried out again by other means: writing the same bytes twice is harmless.
 */
#ifndef MPIOX_LINK_H
#define MPIOX_LINK_H

#include "mpiox_cache_page.h"
#include "mpiox_ring.h"

enum { MPIOX_LINK_ADDRESSES = 8 };

typedef struct mpiox_link_address { /* plain data: travels over MPI */
    int32_t count;
    char host[MPIOX_LINK_ADDRESSES][64]; /* numeric IPv4 or IPv6 addresses, best first */
    int32_t port;
    uint64_t secret[2];
} mpiox_link_address;

/* ---- delegate ---------------------------------------------------------------------------------------------------- */

typedef struct mpiox_listener mpiox_listener;

/* Accept connections for this cache in threads of its own. loopback: only from this host (pretended nodes). Each
 * connection joins the ring as a client of the delegate. 0, MPIOX_E_IO or MPIOX_E_NOMEM. */
int mpiox_listener_start(const mpiox_cache *cache, bool loopback, mpiox_listener **out, mpiox_link_address *address,
                         mpiox_error *error);
void mpiox_listener_stop(mpiox_listener *listener); /* closes all connections, ends the threads, frees; NULL-safe */

/* ---- client ------------------------------------------------------------------------------------------------------ */

typedef struct mpiox_link mpiox_link; /* several threads may use one; their requests take turns */

/* Blocking, at most `seconds`. 0, MPIOX_E_IO (with *error) or MPIOX_E_NOMEM. */
int mpiox_link_open(const mpiox_link_address *address, double seconds, mpiox_link **out, mpiox_error *error);
void mpiox_link_close(mpiox_link *link); /* leaves the delegate (DETACH); NULL-safe */
/* Is the delegate there? A heartbeat thread of the link asks every 0.5 s; without an answer for `timeout` (2 s), or when
 * the connection breaks, false for ever. Cheap. */
bool mpiox_link_is_alive(const mpiox_link *link);

/* A control request: op, file, page, arg, text of *slot as for mpiox_ring_call(); the answer is written into it.
 * (MPIOX_OP_PAGE is not for links.) */
int mpiox_link_call(mpiox_link *link, mpiox_slot *slot);
/* Errors and `end` of a file, which a client of the node would read in the record. */
int mpiox_link_take_errors(mpiox_link *link, int32_t file, mpiox_error *out, int max, int *more);
/* owner[range] as the delegate knows it now, `ranges` of them; after MPIOX_PAGE_MOVED. */
int mpiox_link_owners(mpiox_link *link, int32_t file, int16_t *owner, int32_t ranges);
int mpiox_link_end(mpiox_link *link, int32_t file, int64_t *end);

/* Part of a view that belongs to one delegate. */
typedef struct mpiox_link_access {
    int32_t file;
    bool write, beyond;               /* beyond: as for mpiox_cache_access_page() */
    const mpiox_typemap *view;        /* NULL: contiguous */
    int64_t origin, position, length; /* stream bytes; only those in pages of the delegate are moved */
    mpiox_side memory;                /* the same stream bytes in memory */
    int64_t unit_bytes;               /* pages of the delegate: units u = offset / unit_bytes with owner[u % ranges] */
    int32_t ranges;
    const int16_t *owner; /* [ranges] */
    int32_t delegate;     /* its index */
} mpiox_link_access;

/* Blocking. Writes: packs, sends, waits for the answer. Reads: asks, waits, unpacks. Only bytes of the delegate's pages
 * are touched in memory. MPIOX_OK, MPIOX_E_UNSUPPORTED (not alive any more), MPIOX_PAGE_SHORT (read; a page does not
 * reach far enough; nothing was unpacked), MPIOX_PAGE_MOVED, or MPIOX_E_IO with *error. A long access travels in parts
 * of at most 8 MiB, so that neither side needs more memory. */
int mpiox_link_access_pages(mpiox_link *link, const mpiox_link_access *access, mpiox_error *error);
/* Which of the pages [first, first + count) are cached there? bit i of bits[i / 64]. For large accesses that go straight
 * to the file. MPIOX_OK or MPIOX_E_UNSUPPORTED. */
int mpiox_link_has_pages(mpiox_link *link, int32_t file, int64_t first, int64_t count, uint64_t *bits);

/* Write-behind: small writes are collected in two buffers of `bytes` bytes and sent when one is full; the next fence,
 * read or control request sends what is left. 0 bytes: off. A write that was collected is acknowledged when it is sent
 * and answered; errors and losses come back from mpiox_link_drain(). */
int mpiox_link_set_write_behind(mpiox_link *link, int64_t bytes);
int mpiox_link_drain(mpiox_link *link, mpiox_error *error);

#endif
