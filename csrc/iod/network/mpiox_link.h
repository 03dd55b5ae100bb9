/*
 * mpiox_link.h - access to a delegate on another node.
 *
 * Problem.   Clients of other nodes cannot map the delegate's memory. MPI between a program and processes that it
 *            spawned dies with them, needs thread support for nonblocking access, and does not exist in every mode.
 * Algorithm. A stream connection (TCP) per client process and delegate. An access travels as a compact description: the
 *            view once (the typemap's blob), then stream positions and the packed bytes of those pages that the
 *            delegate owns. At the delegate a thread per connection carries it out on the cache, like a client of that
 *            node.
 * Guarantee. An answer means that the delegate has deposited the bytes. A connection is admitted only with the
 *            delegate's secret. A lost connection is MPIOX_E_UNSUPPORTED. Then it is unknown whether the request was
 *            carried out, so the client carries it out again by other means: writing the same bytes twice is harmless.
 *
 *   mpiox_link.c          opening, closing, heartbeat, control requests
 *   mpiox_link_access.c   reading and writing
 *   mpiox_link_behind.c   write-behind
 *   mpiox_link_core.c     exclusion of threads, requests and answers, the views that the delegate knows
 *   mpiox_link_extent.c   the parts of an access that belong to a delegate   (both sides)
 *   mpiox_link_message.c  the wire format                                    (both sides)
 *   mpiox_link_stream.c   sockets                                            (both sides)
 *   mpiox_link_fault.c    connections that fail on purpose: MPIOX_NETWORK_FAULT (tests)
 *   mpiox_remote*.c       the delegate's side: mpiox_remote.h
 */
#ifndef MPIOX_LINK_H
#define MPIOX_LINK_H

#include "mpiox_link_access.h"
#include "mpiox_remote.h"
#include "mpiox_ring.h"

typedef struct mpiox_link mpiox_link; /* several threads may use one; their requests take turns */

/* Blocking, at most `seconds`. 0, MPIOX_E_IO (with *error), MPIOX_E_ARG (MPIOX_NETWORK_FAULT is not understood) or
 * MPIOX_E_NOMEM. */
int mpiox_link_open(const mpiox_rendezvous_address *address, double seconds, mpiox_link **out, mpiox_error *error);
/* Leaves the delegate; sends collected writes, but does not wait for their arrival. No other thread uses the link any
 * more. NULL-safe. */
void mpiox_link_close(mpiox_link *link);
/* Is the delegate there? False for ever as soon as the connection breaks (its process was killed: at once), when the
 * delegate ends, or when its host has acknowledged nothing for 2 s. A thread of the link sends a heartbeat every 0.3 s,
 * on a connection of its own: neither a long request nor a busy or stopped process is taken for a dead one. Cheap. */
bool mpiox_link_is_alive(const mpiox_link *link);
/* From now on it is not alive, whatever the delegate does. Any thread. */
void mpiox_link_give_up(mpiox_link *link);
/* For how many seconds nothing has passed on the connection while a request was under way, as far as this has been
 * asked before; 0: there is none. One thread, every now and then. */
double mpiox_link_waits_s(mpiox_link *link);
int64_t mpiox_link_page_bytes(const mpiox_link *link); /* of the delegate */

/* A control request: op, file, question, text of *slot as for mpiox_ring_call(); the answer is written into it.
 * Returns its result, or MPIOX_E_UNSUPPORTED. (MPIOX_OP_PAGE and MPIOX_OP_DETACH are not for links.) Collected writes
 * are sent first; mpiox_link_drain() returns their result. */
int mpiox_link_call(mpiox_link *link, mpiox_slot *slot);
/* Errors and `end` of a file, which a client of the node would read in the record. take_errors: their number, or
 * MPIOX_E_UNSUPPORTED. end: 0 or MPIOX_E_UNSUPPORTED. */
int mpiox_link_take_errors(mpiox_link *link, int32_t file, mpiox_error *out, int max, int *more);
int mpiox_link_end(mpiox_link *link, int32_t file, int64_t *end);
/* After MPIOX_PAGE_MOVED: owner[range] as the delegate knows it now (MPIOX_RANGE_MOVING: soon another), for `ranges`
 * ranges. 0, MPIOX_E_ARG (the file is not open there, or has another number of ranges) or MPIOX_E_UNSUPPORTED. */
int mpiox_link_owners(mpiox_link *link, int32_t file, int16_t *owner, int32_t ranges);
/* Which of the pages [first, first + count) are cached there? bit i of bits[i / 64]. For large accesses that go
 * straight to the file. MPIOX_OK or MPIOX_E_UNSUPPORTED. */
int mpiox_link_has_pages(mpiox_link *link, int32_t file, int64_t first, int64_t count, uint64_t *bits);

/* Write-behind: writes that fit are collected in two buffers of `bytes` bytes; one is sent when it is full, the next
 * read, control request or drain sends the rest. 0 bytes: off. Drain the link before a change of the size; a size below
 * 4096 counts as 0. 0 or a code of mpiox_link_drain(). */
int mpiox_link_set_write_behind(mpiox_link *link, int64_t bytes);
#define MPIOX_LINK_MOST_BEHIND                                                                                         \
    (INT64_C(256) << 20) /* a larger size counts as this: the delegate refuses long messages */
/* Wait until all that was collected is deposited. MPIOX_OK; or why something is not: MPIOX_PAGE_MOVED, MPIOX_E_IO (with
 * *error), MPIOX_E_UNSUPPORTED (not alive). Then, and when an access fails with such a code, the writes from the first
 * failed one on are still here: */
int mpiox_link_drain(mpiox_link *link, mpiox_error *error);
/* Take out the collected writes that were not deposited, in the order in which they were made; visit gets each
 * contiguous extent of them, and writes it by other means (it may use this link). NULL: forget them. The first result
 * of visit that is not 0. Works on a dead link; then some of the bytes may have been deposited before it died. */
int mpiox_link_take_undelivered(mpiox_link *link, int (*visit)(void *context, const mpiox_link_access *access),
                                void *context);

#endif
