/*
 * mpiox_remote.h - clients of other nodes at a delegate: the delegate's side of their links.
 *
 *   mpiox_remote.c         connections and heartbeats of admitted clients; starting and stopping
 *   mpiox_remote_serve.c   the requests of one connection, carried out on the cache
 *
 * Threads. One thread accepts, admits and receives heartbeats, and never blocks, so that a busy delegate never seems
 *          dead. One thread per connection carries out the requests in their order; it is a client of the delegate like
 *          any other (mpiox_ring_join). All signals are blocked in all of them.
 * Memory.  Data wait in chunks that all connections take from one store, only while bytes that have arrived are being
 *          copied. The store has less than a hundredth of the cache's size (but at least one chunk of 8 KiB). Bytes for
 *          which it has no room stay in the network: back-pressure. Besides, a connection has about 16 KiB, and the
 *          views of its client (at most 8 of at most 64 KiB each).
 * Trust.   An admitted client (mpiox_rendezvous.h) is not trusted with memory: each number that it sends is checked
 *          before it is used.
 */
#ifndef MPIOX_REMOTE_H
#define MPIOX_REMOTE_H

#include <stdbool.h>

#include "mpiox_cache.h"
#include "mpiox_rendezvous.h"

typedef struct mpiox_remote mpiox_remote;

/* Accept connections for this cache in threads of its own. secret: what admits them; it becomes part of *address. Each
 * connection joins the ring as a client of the delegate. 0, MPIOX_E_IO, MPIOX_E_ARG (MPIOX_NETWORK_FAULT is not
 * understood) or MPIOX_E_NOMEM. */
int mpiox_remote_start(const mpiox_cache *cache, const mpiox_rendezvous_place *place, const uint64_t secret[2],
                       mpiox_remote **out, mpiox_rendezvous_address *address, mpiox_error *error);
/* Closes all connections, ends the threads, frees; NULL-safe. A request that is being carried out is finished first: it
 * must not depend on the caller. */
void mpiox_remote_stop(mpiox_remote *remote);

#endif
