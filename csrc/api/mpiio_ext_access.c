/*
 * mpiio_ext_access.c - access descriptions for programs and for Python.
 *
 * mpiio_ext_access is mpiox_access under its public name; everything here only passes on.
 */
#include <mpi.h>
#include <string.h>

#include "mpiio_ext.h"
#include "mpiox_access.h"
#include "mpiox_access_array.h"
#include "mpiox_access_mpi.h"
#include "mpiox_copy.h"

static const mpiox_access *inner(const mpiio_ext_access *access)
{
    return (const mpiox_access *)(const void *)access;
}

static mpiox_access **result(mpiio_ext_access **access)
{
    return (mpiox_access **)(void *)access;
}

int mpiio_ext_access_from_datatype(const void *datatype, mpiio_ext_access **access)
{
    MPI_Datatype handle;
    int initialized = 0, finalized = 1;
    *access = NULL;
    if (datatype == NULL || PMPI_Initialized(&initialized) != MPI_SUCCESS || !initialized ||
        PMPI_Finalized(&finalized) != MPI_SUCCESS || finalized) {
        return MPIOX_E_ARG;
    }
    memcpy(&handle, datatype, sizeof handle);
    return mpiox_access_from_datatype(handle, result(access));
}

int mpiio_ext_access_from_blob(const void *blob, int64_t blob_bytes, mpiio_ext_access **access)
{
    return mpiox_access_from_blob(blob, blob_bytes, result(access));
}

int mpiio_ext_access_block(int64_t length, mpiio_ext_access **access)
{
    return mpiox_access_block(length, result(access));
}

int mpiio_ext_access_vector(int64_t count, int64_t stride, const mpiio_ext_access *part, mpiio_ext_access **access)
{
    return mpiox_access_vector(count, stride, inner(part), result(access));
}

int mpiio_ext_access_indexed(int64_t n, const int64_t *counts, const int64_t *displacements,
                             const mpiio_ext_access *part, mpiio_ext_access **access)
{
    return mpiox_access_indexed(n, counts, displacements, inner(part), result(access));
}

int mpiio_ext_access_struct(int64_t n, const int64_t *counts, const int64_t *displacements,
                            const mpiio_ext_access *const *parts, mpiio_ext_access **access)
{
    return mpiox_access_struct(n, counts, displacements, (const mpiox_access *const *)(const void *)parts,
                               result(access));
}

int mpiio_ext_access_resized(int64_t lb, int64_t extent, const mpiio_ext_access *part, mpiio_ext_access **access)
{
    return mpiox_access_resized(lb, extent, inner(part), result(access));
}

int mpiio_ext_access_subarray(int32_t ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                              int fortran_order, const mpiio_ext_access *part, mpiio_ext_access **access)
{
    return mpiox_access_subarray(ndims, sizes, subsizes, starts, fortran_order != 0, inner(part), result(access));
}

void mpiio_ext_access_free(mpiio_ext_access *access)
{
    mpiox_access_free((mpiox_access *)(void *)access);
}

void mpiio_ext_access_summary(const mpiio_ext_access *access, int64_t *numbers)
{
    const mpiox_access *a = inner(access);
    numbers[0] = mpiox_access_size(a);
    numbers[1] = mpiox_access_lb(a);
    numbers[2] = mpiox_access_extent(a);
    numbers[3] = mpiox_access_true_lb(a);
    numbers[4] = mpiox_access_true_ub(a);
    numbers[5] = mpiox_access_depth(a);
    numbers[6] = mpiox_access_pieces(a);
    numbers[7] = mpiox_access_granule(a);
    numbers[8] = mpiox_access_is_contiguous(a);
    numbers[9] = mpiox_access_is_monotonic(a);
}

int64_t mpiio_ext_access_offset(const mpiio_ext_access *access, int64_t position)
{
    return mpiox_access_offset(inner(access), position);
}

int64_t mpiio_ext_access_position(const mpiio_ext_access *access, int64_t offset)
{
    return mpiox_access_position(inner(access), offset);
}

int64_t mpiio_ext_access_pieces(const mpiio_ext_access *access, int64_t lo, int64_t hi, int64_t max_pieces,
                                int64_t *offsets, int64_t *lengths)
{
    mpiox_cursor cursor;
    mpiox_run run;
    int64_t n = 0, left = mpiox_access_size(inner(access)) > 0 ? hi - lo : 0;
    mpiox_cursor_init(&cursor, inner(access), 0, lo);
    while (left > 0) {
        left -= mpiox_cursor_next(&cursor, left, &run);
        for (int64_t i = 0; i < run.count && n + i < max_pieces; i++) {
            offsets[n + i] = run.offset + i * run.stride;
            lengths[n + i] = run.length;
        }
        n += run.count;
    }
    return n;
}

int64_t mpiio_ext_access_runs(const mpiio_ext_access *access, int64_t lo, int64_t hi)
{
    mpiox_cursor cursor;
    mpiox_run run;
    int64_t n = 0, left = mpiox_access_size(inner(access)) > 0 ? hi - lo : 0;
    mpiox_cursor_init(&cursor, inner(access), 0, lo);
    for (; left > 0; n++) {
        left -= mpiox_cursor_next(&cursor, left, &run);
    }
    return n;
}

/* The library reads a source only; mpiox_side has one pointer type for both directions. */
static mpiox_side side(const mpiio_ext_access *access, const void *memory, int64_t position)
{
    return (mpiox_side){(void *)(uintptr_t)memory, inner(access), 0, position};
}

void mpiio_ext_access_pack(const mpiio_ext_access *access, const void *memory, int64_t lo, int64_t hi, void *packed)
{
    const mpiox_side target = side(NULL, packed, 0), source = side(access, memory, lo);
    mpiox_copy(&target, &source, hi - lo);
}

void mpiio_ext_access_unpack(const mpiio_ext_access *access, void *memory, int64_t lo, int64_t hi, const void *packed)
{
    const mpiox_side target = side(access, memory, lo), source = side(NULL, packed, 0);
    mpiox_copy(&target, &source, hi - lo);
}

void mpiio_ext_access_copy(const mpiio_ext_access *target, void *target_memory, int64_t target_position,
                           const mpiio_ext_access *source, const void *source_memory, int64_t source_position,
                           int64_t bytes)
{
    const mpiox_side to = side(target, target_memory, target_position);
    const mpiox_side from = side(source, source_memory, source_position);
    mpiox_copy(&to, &from, bytes);
}

void mpiio_ext_access_mark(const mpiio_ext_access *access, int64_t lo, int64_t hi, int64_t map_start, int64_t granule,
                           unsigned char *map)
{
    const mpiox_side covered = side(access, NULL, lo);
    mpiox_copy_mark(map, map_start, granule, &covered, hi - lo);
}

int64_t mpiio_ext_access_blob_bytes(const mpiio_ext_access *access)
{
    return mpiox_access_blob_bytes(inner(access));
}

int mpiio_ext_access_to_blob(const mpiio_ext_access *access, void *blob, int64_t blob_bytes)
{
    return mpiox_access_to_blob(inner(access), blob, blob_bytes);
}

int mpiio_ext_access_equal(const mpiio_ext_access *a, const mpiio_ext_access *b)
{
    return mpiox_access_equal(inner(a), inner(b));
}

int mpiio_ext_access_disjoint(const mpiio_ext_access *a, int64_t origin_a, int64_t position_a, int64_t length_a,
                              const mpiio_ext_access *b, int64_t origin_b, int64_t position_b, int64_t length_b)
{
    const mpiox_range range_a = {inner(a), origin_a, position_a, length_a};
    const mpiox_range range_b = {inner(b), origin_b, position_b, length_b};
    return mpiox_access_disjoint_ranges(&range_a, &range_b);
}
