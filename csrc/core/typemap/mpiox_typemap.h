/*
 * mpiox_typemap.h - the bytes of an MPI datatype, as a compact tree.
 *
 * Problem. A file view of 30 million 8-byte pieces is regular. Listing its pieces costs more than moving its bytes.
 * Form.    A description is an immutable tree in ONE relocatable allocation (indices, no pointers), so that it can be
 *          copied into shared memory or sent as it is. Node kinds: block, loop, struct, list (irregular, sorted arrays
 *          with prefix sums). Building normalises: neighbours are merged, loops of contiguous children become blocks,
 *          lists with a constant stride and length become loops.
 * Stream.  The data bytes of a description, in type-map order, are numbered 0 .. size-1; the description is tiled
 *          without end at its extent, so stream position p lies in tile p / size. "Position" always means a stream
 *          position, "offset" always an address relative to the caller's origin. All are int64_t bytes.
 * Promise. Local, no MPI after construction. Start-up of every operation is O(depth) (plus a binary search per list),
 *          stepping is O(1) per strided run, memory is O(description), never O(pieces). No operation after construction
 *          allocates.
 * Source.  The tree follows the idea of dataloops (Ross, Miller, Gropp: "Implementing fast and reusable datatype
 *          processing", EuroPVM/MPI 2003).
 */
#ifndef MPIOX_TYPEMAP_H
#define MPIOX_TYPEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpiox_error.h"

/* Nesting after normalisation. Deeper types are described by lists instead; a type that still needs more than this many
 * levels is refused with MPIOX_E_UNSUPPORTED. A cursor of this depth fits on the stack. */
#define MPIOX_TYPEMAP_MAX_DEPTH 24

typedef struct mpiox_typemap mpiox_typemap; /* immutable, reference counted, safe to read from many threads */

/* `count` blocks of `length` bytes, the first at `offset`, then every `stride` bytes (stride may be negative or
 * smaller than length in memory types; count == 1 for a single piece, stride then 0). */
typedef struct mpiox_run {
    int64_t offset;
    int64_t length;
    int64_t stride;
    int64_t count;
} mpiox_run;

/* ---- construction (pure: no MPI) ------------------------------------------------------------------------------- */

/* Each returns 0 and a new reference in *out, or MPIOX_E_NOMEM / MPIOX_E_ARG (negative count, overflow) /
 * MPIOX_E_UNSUPPORTED (depth). Children are borrowed (copied in), never consumed. */
int mpiox_typemap_block(int64_t length, mpiox_typemap **out);
/* count copies of child, copy i displaced by i*stride bytes. */
int mpiox_typemap_vector(int64_t count, int64_t stride, const mpiox_typemap *child, mpiox_typemap **out);
/* n blocks, block i = counts[i] tiles of child (tiled at the child's extent) at displacements[i] bytes. */
int mpiox_typemap_indexed(int64_t n, const int64_t *counts, const int64_t *displacements, const mpiox_typemap *child,
                          mpiox_typemap **out);
/* n members, member i = counts[i] tiles of children[i] at displacements[i] bytes. */
int mpiox_typemap_struct(int64_t n, const int64_t *counts, const int64_t *displacements,
                         const mpiox_typemap *const *children, mpiox_typemap **out);
/* Same data, lower bound and extent replaced (the tiling step). */
int mpiox_typemap_resized(int64_t lb, int64_t extent, const mpiox_typemap *child, mpiox_typemap **out);

mpiox_typemap *mpiox_typemap_retain(mpiox_typemap *typemap); /* NULL-safe; returns its argument */
void mpiox_typemap_free(mpiox_typemap *typemap);             /* drops one reference; NULL-safe */

/* ---- queries ----------------------------------------------------------------------------------------------------- */

int64_t mpiox_typemap_size(const mpiox_typemap *typemap);   /* data bytes of one tile */
int64_t mpiox_typemap_extent(const mpiox_typemap *typemap); /* tiling step in bytes */
int64_t mpiox_typemap_lb(const mpiox_typemap *typemap);
int64_t mpiox_typemap_true_lb(const mpiox_typemap *typemap); /* first data byte of a tile (0 when size is 0) */
int64_t mpiox_typemap_true_ub(const mpiox_typemap *typemap); /* one past the last data byte of a tile */
int mpiox_typemap_depth(const mpiox_typemap *typemap);
bool mpiox_typemap_is_contiguous(const mpiox_typemap *typemap); /* endless tiling is one gap-free, ordered run */
/* True if stream order equals address order over the endless tiling and no byte occurs twice, as MPI requires of a file
 * type of a write. Only such descriptions may be used with mpiox_typemap_position(). */
bool mpiox_typemap_is_monotonic(const mpiox_typemap *typemap);
int64_t mpiox_typemap_pieces(const mpiox_typemap *typemap); /* contiguous pieces of one tile (saturates at INT64_MAX) */
/* Largest g that divides every piece's offset and length and the extent (0 for an empty description). */
int64_t mpiox_typemap_granule(const mpiox_typemap *typemap);

/* Offset of stream position `position` (>= 0). */
int64_t mpiox_typemap_offset(const mpiox_typemap *typemap, int64_t position);
/* Number of data bytes of the endless tiling (starting at tile 0) whose offset is < `offset`. Monotonic only. */
int64_t mpiox_typemap_position(const mpiox_typemap *typemap, int64_t offset);

/* ---- serialization ----------------------------------------------------------------------------------------------- */

int64_t mpiox_typemap_blob_bytes(const mpiox_typemap *typemap);
/* Copy the description into blob (8-byte aligned, blob_bytes long). MPIOX_E_FULL when too small. */
int mpiox_typemap_to_blob(const mpiox_typemap *typemap, void *blob, int64_t blob_bytes);
/* Check everything (indices, sizes, sums, depth, overflow), then make a copy. MPIOX_E_CORRUPT on any doubt.
 * Fuzzed: no input may crash, hang, or yield a description whose operations read out of bounds. */
int mpiox_typemap_from_blob(const void *blob, int64_t blob_bytes, mpiox_typemap **out);
/* The same stream moved by -*shift bytes, so that its first byte lies at 0 and its lower bound is 0: views that differ
 * only in their beginning become equal. *shift is the offset of the first byte. Codes as of construction. */
int mpiox_typemap_at_zero(const mpiox_typemap *typemap, int64_t *shift, mpiox_typemap **out);
/* Equal content (same stream to offset mapping by structure; a false negative is allowed). */
bool mpiox_typemap_equal(const mpiox_typemap *a, const mpiox_typemap *b);

/* ---- iteration --------------------------------------------------------------------------------------------------- */

/* Opaque to callers, fixed size, lives on the stack, borrows the description. */
typedef struct mpiox_cursor {
    const mpiox_typemap *typemap; /* borrowed */
    int64_t position;             /* stream position of the next byte that mpiox_cursor_next() yields */
    int64_t state[4 + 4 * MPIOX_TYPEMAP_MAX_DEPTH]; /* private: the way to that byte */
} mpiox_cursor;

/* Seek to stream position `position`; every offset yielded later has `origin` added. */
void mpiox_cursor_init(mpiox_cursor *cursor, const mpiox_typemap *typemap, int64_t origin, int64_t position);
/* Yield the next strided run, of at most max_bytes data bytes (max_bytes > 0), and advance past it. A block cut by the
 * start position or by max_bytes is yielded as a run of its own with count 1. Returns the run's data bytes (> 0).
 * The description must have size > 0. */
int64_t mpiox_cursor_next(mpiox_cursor *cursor, int64_t max_bytes, mpiox_run *run);

/* ---- disjointness ------------------------------------------------------------------------------------------------ */

/* True when it is PROVEN that the endless tilings of a (at origin origin_a) and of b share no byte: by bounds, or as
 * boxes in a common mixed-radix grid of their strides, or because both are small enough to merge (bounded work, about
 * 1000 steps). False means "not proven". Both monotonic. */
bool mpiox_typemap_disjoint(const mpiox_typemap *a, int64_t origin_a, const mpiox_typemap *b, int64_t origin_b);

/* A part of an endless tiling: stream bytes position .. position + length - 1. */
typedef struct mpiox_range {
    const mpiox_typemap *typemap; /* borrowed, monotonic */
    int64_t origin;               /* added to every offset */
    int64_t position;             /* first stream byte */
    int64_t length;               /* INT64_MAX: endless */
} mpiox_range;

/* As above for parts. Two tilings may share bytes although their parts do not, for example vectors without padding
 * (extent (n - 1) * stride + block), whose tiles run into each other. */
bool mpiox_typemap_disjoint_ranges(const mpiox_range *a, const mpiox_range *b);

#endif
