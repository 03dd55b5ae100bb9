/* links.h - a mock delegate with its listener and a link to it; what the tests of csrc/iod/network do all the time. */
#ifndef LINKS_H
#define LINKS_H

#include "check.h"
#include "mock.h"
#include "mpiox_handshake.h"
#include "mpiox_link.h"

typedef struct station { /* one delegate, one client */
    mock delegate;
    mpiox_remote *listener;
    mpiox_rendezvous_address address;
    mpiox_link *link;
    int32_t file;
} station;

/* On the loopback, with a secret of its own. */
static inline int start_listener(const mpiox_cache *cache, mpiox_remote **out, mpiox_rendezvous_address *address,
                                 mpiox_error *error)
{
    const mpiox_rendezvous_place place = {.loopback = true};
    uint64_t secret[2];
    CHECK_EQUAL(mpiox_handshake_secret(secret), MPIOX_OK);
    return mpiox_remote_start(cache, &place, secret, out, address, error);
}

static inline mpiox_link *link_to(const mpiox_rendezvous_address *address)
{
    mpiox_link *link = NULL;
    mpiox_error error = {.code = 0};
    CHECK_EQUAL(mpiox_link_open(address, 20, &link, &error), MPIOX_OK);
    if (link == NULL) {
        fprintf(stderr, "%s: errno %d\n", error.what, error.sys_errno);
        abort();
    }
    return link;
}

static inline int32_t open_over(mpiox_link *link, int64_t unit_pages, int64_t owners)
{
    mpiox_slot slot = {.op = MPIOX_OP_OPEN, .question.open = {3, unit_pages, owners}, .text = "/file"};
    CHECK_EQUAL(mpiox_link_call(link, &slot), MPIOX_OK);
    return slot.file;
}

static inline void station_start(station *s, int64_t page_bytes, int32_t frames, int delegate, int delegates,
                                 int64_t unit_pages)
{
    mpiox_error error;
    mock_start(&s->delegate, page_bytes, frames, delegate, delegates);
    CHECK_EQUAL(start_listener(&s->delegate.cache, &s->listener, &s->address, &error), MPIOX_OK);
    s->link = link_to(&s->address);
    s->file = open_over(s->link, unit_pages, delegates);
}

static inline void station_stop(station *s)
{
    mpiox_link_close(s->link);
    mpiox_remote_stop(s->listener);
    mock_stop(&s->delegate);
}

/* An access of a file whose unit u belongs to delegate u mod delegates. */
static inline mpiox_link_access access_of(const station *s, int delegates, int64_t unit_bytes)
{
    static const int16_t owner[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const mpiox_cache_header *header = s->delegate.cache.header; /* NULL: in another process */
    return (mpiox_link_access){.file = s->file,
                               .beyond = true,
                               .unit_bytes = unit_bytes,
                               .ranges = delegates,
                               .owner = owner,
                               .delegate = header != NULL ? header->delegate : 0};
}

#endif
