/*
 * mpiox_overlap.h - reading through a view whose pieces overlap.
 *
 * Problem.   MPI allows such a view if the file is open for reading only (MPI-4.1, section 14.3). Positions in its
 *            stream are not ordered by file offset: the stream bytes of a range of the file cannot be looked up.
 * Algorithm. The pieces are followed in the order of the stream. A window has as many consecutive pieces as lie in a
 *            range of the file of bounded length. The range is read once; the pieces are copied out of it, the same
 *            bytes several times.
 * Guarantee. The bytes are those of the stream; the cost is a few nanoseconds a piece, including skipped ones. Local;
 *            no MPI.
 */
#ifndef MPIOX_OVERLAP_H
#define MPIOX_OVERLAP_H

#include "mpiox_typemap.h"

typedef struct mpiox_overlap_window {
    int64_t length;       /* bytes of the stream */
    int64_t offset, span; /* the range of the file that they lie in */
    int64_t pieces;       /* consecutive pieces of the view, 1 or more */
} mpiox_overlap_window;

/* From stream position `position` on, at most `left` (> 0) bytes of the stream: one piece, or as many as lie within
 * `bytes` bytes of the file. */
mpiox_overlap_window mpiox_overlap_cut(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t left,
                                       int64_t bytes);
/* Of `length` bytes of the stream from `position` on: those before the first at or behind file byte `end`. */
int64_t mpiox_overlap_before(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                             int64_t end);

#endif
