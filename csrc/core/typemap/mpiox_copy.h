/*
 * mpiox_copy.h - copying bytes between two described streams: the inner loop of all data access.
 *
 * A layout is (base pointer, description, origin, position): stream byte k lies at base + origin + offset(position +
 * k). NULL description = contiguous: stream byte k lies at base + origin + position + k.
 * If one side is contiguous, the loops are specialised for block lengths 1, 2, 4, 8, 16, 32, 64; no step costs more
 * than O(1) per strided run plus the bytes. Sides must not overlap. Offsets and lengths are bytes. Local; no MPI, no
 * allocation, no errors.
 */
#ifndef MPIOX_COPY_H
#define MPIOX_COPY_H

#include "mpiox_typemap.h"

typedef struct mpiox_memory_layout {
    void *base;                   /* what offsets count from */
    const mpiox_typemap *typemap; /* borrowed; NULL = contiguous */
    int64_t origin;               /* bytes added to every offset; may be negative */
    int64_t position;             /* stream position of the first byte */
} mpiox_memory_layout;

/* Copy `length` stream bytes from source to target. */
void mpiox_copy(const mpiox_memory_layout *target, const mpiox_memory_layout *source, int64_t length);

/* Coverage: set map[(offset - map_start) / granule] = 1 for every byte of the `length` stream bytes of layout
 * (layout->base is ignored). granule divides every offset and length involved. Concurrent callers may mark one map. */
void mpiox_copy_mark(unsigned char *map, int64_t map_start, int64_t granule, const mpiox_memory_layout *layout,
                     int64_t length);

#endif
