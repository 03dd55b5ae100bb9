/*
 * mpiox_link_access.h - reading and writing those pages of an access that belong to a delegate elsewhere.
 *
 * Problem.   An access touches pages of several delegates, in pieces of any size, and may be larger than any buffer.
 * Algorithm. An access travels in parts of about MPIOX_LINK_PART_BYTES. A part of a write is a record (file, view,
 *            positions), and behind it the packed bytes of its extents (mpiox_link_extent.h): contiguous memory is sent
 *            from its place, other memory through a buffer that stays in the processor's cache. While the delegate
 *            works on a part, the next one is packed and sent: two are under way at most. Reads likewise, in the other
 *            direction. A view whose description is too long to be remembered is sent piecewise: each part with a
 *            description of its own pieces.
 * Order.     Requests of one link are carried out in the order in which they are made, collected writes included.
 */
#ifndef MPIOX_LINK_ACCESS_H
#define MPIOX_LINK_ACCESS_H

#include "mpiox_link_extent.h"

struct mpiox_link;

/* Blocking. Writes: packs, sends, waits for the answer, or collects (mpiox_link_set_write_behind()). Reads: sends a
 * request, waits, unpacks. Only bytes of the delegate's pages are touched in memory. MPIOX_OK; MPIOX_E_UNSUPPORTED (not
 * alive any more); MPIOX_PAGE_SHORT (read; a page does not reach far enough; bytes before it may have been unpacked);
 * MPIOX_PAGE_MOVED (query mpiox_link_owners()); MPIOX_E_IO, MPIOX_E_NOMEM or MPIOX_E_ARG (the access reaches beyond
 * the largest offset of a file) with *error. After anything but MPIOX_OK a write may have been carried out in part.
 * Collected writes that could not be carried out make every access fail until mpiox_link_take_undelivered(). */
int mpiox_link_access_pages(struct mpiox_link *link, const mpiox_link_access *access, mpiox_error *error);

#endif
