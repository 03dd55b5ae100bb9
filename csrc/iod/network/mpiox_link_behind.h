/*
 * mpiox_link_behind.h - write-behind: small writes are collected and sent together.
 *
 * Algorithm. Two batches. Writes are packed into one of them, in the form in which they are sent; a write that
 *            continues the last one is joined to it. A full batch is sent, and the other one is filled until its answer
 *            has arrived. The bytes of a batch stay until then.
 * Guarantee. No collected write is forgotten before the delegate has deposited it. A write that the delegate could not
 *            deposit (it does not own a page any more, it died) returns in the order of the writes. After a failed
 *            write the delegate carries out no later one (the epoch of MPIOX_LINK_WRITE), so that repeating it cannot
 *            overwrite anything newer.
 */
#ifndef MPIOX_LINK_BEHIND_H
#define MPIOX_LINK_BEHIND_H

#include "mpiox_link_core.h"

/* All with the link acquired. */

/* Is anything collected that was not answered yet? */
bool mpiox_link_behind_pending(const mpiox_link *link);
/* Room in a batch for a write of so many bytes at all? */
bool mpiox_link_behind_fits(const mpiox_link *link, int64_t bytes);
/* Collect: record names the bytes, walk yields its extents. 0, MPIOX_E_NOMEM, or as settle(). */
int mpiox_link_behind_add(mpiox_link *link, const mpiox_link_record *record, mpiox_link_walk walk,
                          const mpiox_memory_layout *memory, int64_t memory_position);
/* Send the collected writes, and wait for all answers. 0, or why a write could not be deposited: MPIOX_PAGE_MOVED,
 * MPIOX_E_IO, MPIOX_E_UNSUPPORTED..., with *error (may be NULL); this stays so until take(). */
int mpiox_link_behind_settle(mpiox_link *link, mpiox_error *error);

/* The batches that were not deposited, with all that their records name. */
typedef struct mpiox_link_undelivered {
    mpiox_link_batch batches[2];                         /* the older one first */
    mpiox_link_view_entry views[MPIOX_LINK_VIEWS];       /* by the number in a record */
    mpiox_link_filter_entry filters[MPIOX_LINK_FILTERS]; /* by the number in a record */
} mpiox_link_undelivered;

/* Take them out; writes are collected again from here on. False: there are none. */
bool mpiox_link_behind_take(mpiox_link *link, mpiox_link_undelivered *out);
void mpiox_link_behind_free(mpiox_link_undelivered *undelivered);
/* Call visit for each undelivered extent that is contiguous in memory, in order. Returns the first result that is not
 * 0, after all visits. The link is unlocked. */
int mpiox_link_behind_visit(const mpiox_link_undelivered *undelivered,
                            int (*visit)(void *context, const mpiox_link_access *access), void *context);

#endif
