/*
 * mpiox_typemap_runs.h - the pieces of a part of a view as bytes: they travel in place of a view that is too large to
 * be known on every node (irregular lists).
 *
 * Form. Strided runs, ascending. Each run is a number of 7-bit groups, low ones first (LEB128): gap << 2 | 2 if it is
 *       as long as the one before | 1 if it has several pieces. Then its length, unless it is as long; count and
 *       stride, if it has several pieces. All numbers are in units of a granule that divides every offset and length.
 *       The gap counts from the end of the run before; that of the first run from the first byte of the part. A piece
 *       of an unordered mesh whose pieces are equal needs 1 byte.
 *       A count of 1 marks a repetition of earlier pieces, as those of a grid are repeated for each level and variable:
 *       how many pieces back it begins, and its number of pieces, which may be larger. A repetition never includes a
 *       run of several pieces, nor reaches back beyond one.
 * Local, no allocation.
 */
#ifndef MPIOX_TYPEMAP_RUNS_H
#define MPIOX_TYPEMAP_RUNS_H

#include "mpiox_typemap.h"

/* The bytes that describe stream bytes [from, *to) of the view, *to lowered until they are at most `most` (>= 64), or a
 * few less. */
int64_t mpiox_typemap_runs_measure(const mpiox_typemap *view, int64_t from, int64_t *to, int64_t granule, int64_t most);
/* Write them. */
void mpiox_typemap_runs_write(const mpiox_typemap *view, int64_t from, int64_t to, int64_t granule, char *bytes);

enum { MPIOX_TYPEMAP_RUNS_PIECES = 1024 }; /* so many pieces back, or less */

typedef struct mpiox_typemap_piece {
    int64_t gap, length; /* bytes */
} mpiox_typemap_piece;

typedef struct mpiox_typemap_runs {
    const unsigned char *at, *end; /* borrowed */
    int64_t granule, offset, length;
    int64_t n; /* pieces since the last run of several, the last ones at n % MPIOX_TYPEMAP_RUNS_PIECES: */
    mpiox_typemap_piece pieces[MPIOX_TYPEMAP_RUNS_PIECES];
    int64_t left, distance; /* pieces that are still repeated (0: none), and from how many before */
} mpiox_typemap_runs;

/* Begin to read; `offset`: of the part's first byte. */
void mpiox_typemap_runs_begin(mpiox_typemap_runs *runs, const char *bytes, int64_t n, int64_t granule, int64_t offset);
/* The next run, its offset counted as the first one's was. False: there is none, or what is there is no run. */
bool mpiox_typemap_runs_next(mpiox_typemap_runs *runs, mpiox_run *run);

#endif
