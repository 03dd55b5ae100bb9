/*
 * mpiox_link_extent.h - an access, and the parts of it that belong to one delegate, in the order of the stream.
 *
 * Problem.   A client packs the bytes of an access that belong to a delegate; the delegate unpacks them. Both must find
 *            the same bytes, for views of any form, without sending or building lists of pieces.
 * Algorithm. A table that repeats every `ranges` units assigns units of the file (offset / unit_bytes) to delegates.
 *            The file offset follows from a stream position, and from the offset follow the unit and its owner. The
 *            stream position at which the owner changes follows from the offset of the next unit of another owner. Both
 *            directions are O(log of an irregular list) in a typemap, so that a step has this cost per change of owner
 *            and not per piece.
 * Guarantee. Client and delegate use this one function, so they find the same bytes in the same order. Ranges that pass
 *            mpiox_link_check_range() are walked without overflow, and a walk ends: each step advances the position. A
 *            walk through pages of other delegates only could take very long (single bytes of a file of 2^60 bytes): it
 *            stops after MPIOX_LINK_MAX_SKIPS steps, and a caller that trusts the range continues.
 */
#ifndef MPIOX_LINK_EXTENT_H
#define MPIOX_LINK_EXTENT_H

#include "mpiox_cache.h"
#include "mpiox_copy.h"

#define MPIOX_LINK_MAX_OFFSET (INT64_C(1) << 60) /* file offsets and stream positions */

enum { MPIOX_LINK_MAX_SKIPS = 1 << 20 };

/* Part of a view that belongs to one delegate. */
typedef struct mpiox_link_access {
    int32_t file;                     /* index of the file record at the delegate */
    bool write, beyond;               /* beyond: as for mpiox_cache_access_page() */
    bool at_once;                     /* a write that must not be collected (mpiox_link_set_write_behind()) */
    const mpiox_typemap *view;        /* NULL: contiguous */
    int64_t origin, position, length; /* stream bytes; only those in pages of the delegate are moved */
    mpiox_memory_layout memory;       /* the same stream bytes in memory */
    int64_t unit_bytes;               /* pages of the delegate: units u = offset / unit_bytes with owner[u % ranges] */
    int32_t ranges;                   /* page ranges of the file (mpiox_cache.h) */
    const int16_t *owner;             /* [ranges] */
    int32_t delegate;                 /* its index */
    const int64_t *ahead;             /* reads: pages likely to be read next from this delegate, or NULL */
    int32_t ahead_count;              /* entries of `ahead` */
} mpiox_link_access;

typedef struct mpiox_link_filter {    /* which units of a file belong to the delegate; as it is sent */
    int64_t unit_bytes;               /* of a unit of the file; a multiple of a page */
    int32_t ranges;                   /* page ranges of the file (mpiox_cache.h) */
    int32_t delegate;                 /* index of the delegate */
    int16_t owner[MPIOX_FILE_RANGES]; /* of range u mod ranges for unit u; zeros behind the last one */
} mpiox_link_filter;

typedef struct mpiox_link_walk {
    const mpiox_link_filter *filter; /* borrowed */
    const mpiox_typemap *view;       /* NULL: contiguous */
    int64_t origin;                  /* file offset of the view's start */
    int64_t position, end;           /* stream positions that are left */
    int32_t skips;                   /* steps through units of others so far */
} mpiox_link_walk;

/* 0 or MPIOX_E_CORRUPT */
int mpiox_link_check_filter(const mpiox_link_filter *filter);
/* Can stream bytes position .. position + length - 1 of the view be accessed? They exist, at offsets from 0 to
 * MPIOX_LINK_MAX_OFFSET, in ascending order. 0 or MPIOX_E_CORRUPT. */
int mpiox_link_check_range(const mpiox_typemap *view, int64_t origin, int64_t position, int64_t length);

/* The next extent, cut after max_bytes: stream bytes *position .. *position + *length - 1, all in units of the delegate
 * (several neighbouring units if it owns all of them). False: there is none, or none in the next MPIOX_LINK_MAX_SKIPS
 * steps: then position < end, and with skips = 0 the walk continues. */
bool mpiox_link_walk_next(mpiox_link_walk *walk, int64_t max_bytes, int64_t *position, int64_t *length);
/* The stream position at which the view has passed the file offset `offset`; at most `end`. */
int64_t mpiox_link_walk_reach(const mpiox_link_walk *walk, int64_t offset, int64_t end);

/* File offset of a stream position. */
static inline int64_t mpiox_link_walk_offset(const mpiox_link_walk *walk, int64_t position)
{
    return walk->origin + (walk->view != NULL ? mpiox_typemap_offset(walk->view, position) : position);
}

#endif
