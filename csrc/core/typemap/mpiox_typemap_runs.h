/*
 * mpiox_typemap_runs.h - the pieces of a part of a view as bytes. Nodes send them in place of a view that is too large
 * for every node to store (irregular lists).
 *
 * Form. Strided runs, ascending. Each run begins with a number of 7-bit groups, low ones first (LEB128): gap << 2 | 2
 * if the run is as long as its predecessor | 1 if it has several pieces. Then its length, if it is not as long; then
 * count and stride, if it has several pieces. All numbers are in units of a granule that divides every offset and
 * length. The gap counts from the end of the predecessor; for the first run from the first byte of the part. A piece of
 * an unordered mesh whose pieces are equal needs 1 byte.
 *       A count of 1 marks a repetition of earlier pieces, as the pieces of a grid repeat for each level and variable.
 *       It is followed by how many pieces back the repetition begins, and by its number of pieces, which may be larger.
 *       A repetition never includes a run of several pieces, nor reaches back beyond such a run.
 * Local, no allocation.
 */
#ifndef MPIOX_TYPEMAP_RUNS_H
#define MPIOX_TYPEMAP_RUNS_H

#include "mpiox_typemap.h"

/* Length of the bytes that describe stream bytes [from, *to) of the view. Lowers *to until the length is at most `most`
 * (>= 64), or a few less. */
int64_t mpiox_typemap_runs_measure(const mpiox_typemap *view, int64_t from, int64_t *to, int64_t granule, int64_t most);
/* Write them. */
void mpiox_typemap_runs_write(const mpiox_typemap *view, int64_t from, int64_t to, int64_t granule, char *bytes);

enum { MPIOX_TYPEMAP_RUNS_PIECES = 1024 }; /* a repetition reaches so many pieces back, or less */

typedef struct mpiox_typemap_piece {
    int64_t gap, length; /* bytes */
} mpiox_typemap_piece;

typedef struct mpiox_typemap_runs {
    const unsigned char *at, *end; /* borrowed */
    int64_t granule, offset, length;
    int64_t n; /* pieces since the last run of several; the last ones at n % MPIOX_TYPEMAP_RUNS_PIECES: */
    mpiox_typemap_piece pieces[MPIOX_TYPEMAP_RUNS_PIECES];
    int64_t left, distance; /* pieces still to be repeated (0: none), and how far back they are */
} mpiox_typemap_runs;

/* Begin to read; `offset`: of the part's first byte. */
void mpiox_typemap_runs_begin(mpiox_typemap_runs *runs, const char *bytes, int64_t n, int64_t granule, int64_t offset);
/* The next run, its offset counted as that of the first. False: no run follows, or the bytes are no run. */
bool mpiox_typemap_runs_next(mpiox_typemap_runs *runs, mpiox_run *run);

#endif
