/*
 * mpiio_ext_typemap.c - typemaps for programs and for Python.
 *
 * mpiio_ext_typemap is mpiox_typemap under its public name; everything here only passes on.
 */
#include <mpi.h>
#include <string.h>

#include "mpiio_ext.h"
#include "mpiox_typemap.h"
#include "mpiox_typemap_array.h"
#include "mpiox_typemap_mpi.h"
#include "mpiox_copy.h"

static const mpiox_typemap *inner(const mpiio_ext_typemap *typemap)
{
    return (const mpiox_typemap *)(const void *)typemap;
}

static mpiox_typemap **result(mpiio_ext_typemap **typemap)
{
    return (mpiox_typemap **)(void *)typemap;
}

int mpiio_ext_typemap_from_datatype(const void *datatype, mpiio_ext_typemap **typemap)
{
    MPI_Datatype handle;
    int initialized = 0, finalized = 1;
    *typemap = NULL;
    if (datatype == NULL || PMPI_Initialized(&initialized) != MPI_SUCCESS || !initialized ||
        PMPI_Finalized(&finalized) != MPI_SUCCESS || finalized) {
        return MPIOX_E_ARG;
    }
    memcpy(&handle, datatype, sizeof handle);
    return mpiox_typemap_from_datatype(handle, result(typemap));
}

int mpiio_ext_typemap_from_blob(const void *blob, int64_t blob_bytes, mpiio_ext_typemap **typemap)
{
    return mpiox_typemap_from_blob(blob, blob_bytes, result(typemap));
}

int mpiio_ext_typemap_block(int64_t length, mpiio_ext_typemap **typemap)
{
    return mpiox_typemap_block(length, result(typemap));
}

int mpiio_ext_typemap_vector(int64_t count, int64_t stride, const mpiio_ext_typemap *part, mpiio_ext_typemap **typemap)
{
    return mpiox_typemap_vector(count, stride, inner(part), result(typemap));
}

int mpiio_ext_typemap_indexed(int64_t n, const int64_t *counts, const int64_t *displacements,
                              const mpiio_ext_typemap *part, mpiio_ext_typemap **typemap)
{
    return mpiox_typemap_indexed(n, counts, displacements, inner(part), result(typemap));
}

int mpiio_ext_typemap_struct(int64_t n, const int64_t *counts, const int64_t *displacements,
                             const mpiio_ext_typemap *const *parts, mpiio_ext_typemap **typemap)
{
    return mpiox_typemap_struct(n, counts, displacements, (const mpiox_typemap *const *)(const void *)parts,
                                result(typemap));
}

int mpiio_ext_typemap_resized(int64_t lb, int64_t extent, const mpiio_ext_typemap *part, mpiio_ext_typemap **typemap)
{
    return mpiox_typemap_resized(lb, extent, inner(part), result(typemap));
}

int mpiio_ext_typemap_subarray(int32_t ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                               int fortran_order, const mpiio_ext_typemap *part, mpiio_ext_typemap **typemap)
{
    return mpiox_typemap_subarray(ndims, sizes, subsizes, starts, fortran_order != 0, inner(part), result(typemap));
}

void mpiio_ext_typemap_free(mpiio_ext_typemap *typemap)
{
    mpiox_typemap_free((mpiox_typemap *)(void *)typemap);
}

void mpiio_ext_typemap_summary(const mpiio_ext_typemap *typemap, int64_t *numbers)
{
    const mpiox_typemap *a = inner(typemap);
    numbers[0] = mpiox_typemap_size(a);
    numbers[1] = mpiox_typemap_lb(a);
    numbers[2] = mpiox_typemap_extent(a);
    numbers[3] = mpiox_typemap_true_lb(a);
    numbers[4] = mpiox_typemap_true_ub(a);
    numbers[5] = mpiox_typemap_depth(a);
    numbers[6] = mpiox_typemap_pieces(a);
    numbers[7] = mpiox_typemap_granule(a);
    numbers[8] = mpiox_typemap_is_contiguous(a);
    numbers[9] = mpiox_typemap_is_monotonic(a);
}

int64_t mpiio_ext_typemap_offset(const mpiio_ext_typemap *typemap, int64_t position)
{
    return mpiox_typemap_offset(inner(typemap), position);
}

int64_t mpiio_ext_typemap_position(const mpiio_ext_typemap *typemap, int64_t offset)
{
    return mpiox_typemap_position(inner(typemap), offset);
}

int64_t mpiio_ext_typemap_pieces(const mpiio_ext_typemap *typemap, int64_t lo, int64_t hi, int64_t max_pieces,
                                 int64_t *offsets, int64_t *lengths)
{
    mpiox_cursor cursor;
    mpiox_run run;
    int64_t n = 0, left = mpiox_typemap_size(inner(typemap)) > 0 ? hi - lo : 0;
    mpiox_cursor_init(&cursor, inner(typemap), 0, lo);
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

int64_t mpiio_ext_typemap_runs(const mpiio_ext_typemap *typemap, int64_t lo, int64_t hi)
{
    mpiox_cursor cursor;
    mpiox_run run;
    int64_t n = 0, left = mpiox_typemap_size(inner(typemap)) > 0 ? hi - lo : 0;
    mpiox_cursor_init(&cursor, inner(typemap), 0, lo);
    for (; left > 0; n++) {
        left -= mpiox_cursor_next(&cursor, left, &run);
    }
    return n;
}

/* The library reads a source only; mpiox_memory_layout has one pointer type for both directions. */
static mpiox_memory_layout memory_layout(const mpiio_ext_typemap *typemap, const void *memory, int64_t position)
{
    return (mpiox_memory_layout){(void *)(uintptr_t)memory, inner(typemap), 0, position};
}

void mpiio_ext_typemap_pack(const mpiio_ext_typemap *typemap, const void *memory, int64_t lo, int64_t hi, void *packed)
{
    const mpiox_memory_layout target = memory_layout(NULL, packed, 0), source = memory_layout(typemap, memory, lo);
    mpiox_copy(&target, &source, hi - lo);
}

void mpiio_ext_typemap_unpack(const mpiio_ext_typemap *typemap, void *memory, int64_t lo, int64_t hi,
                              const void *packed)
{
    const mpiox_memory_layout target = memory_layout(typemap, memory, lo), source = memory_layout(NULL, packed, 0);
    mpiox_copy(&target, &source, hi - lo);
}

void mpiio_ext_typemap_copy(const mpiio_ext_typemap *target, void *target_memory, int64_t target_position,
                            const mpiio_ext_typemap *source, const void *source_memory, int64_t source_position,
                            int64_t bytes)
{
    const mpiox_memory_layout to = memory_layout(target, target_memory, target_position);
    const mpiox_memory_layout from = memory_layout(source, source_memory, source_position);
    mpiox_copy(&to, &from, bytes);
}

void mpiio_ext_typemap_mark(const mpiio_ext_typemap *typemap, int64_t lo, int64_t hi, int64_t map_start,
                            int64_t granule, unsigned char *map)
{
    const mpiox_memory_layout covered = memory_layout(typemap, NULL, lo);
    mpiox_copy_mark(map, map_start, granule, &covered, hi - lo);
}

int64_t mpiio_ext_typemap_blob_bytes(const mpiio_ext_typemap *typemap)
{
    return mpiox_typemap_blob_bytes(inner(typemap));
}

int mpiio_ext_typemap_to_blob(const mpiio_ext_typemap *typemap, void *blob, int64_t blob_bytes)
{
    return mpiox_typemap_to_blob(inner(typemap), blob, blob_bytes);
}

int mpiio_ext_typemap_equal(const mpiio_ext_typemap *a, const mpiio_ext_typemap *b)
{
    return mpiox_typemap_equal(inner(a), inner(b));
}

int mpiio_ext_typemap_disjoint(const mpiio_ext_typemap *a, int64_t origin_a, int64_t position_a, int64_t length_a,
                               const mpiio_ext_typemap *b, int64_t origin_b, int64_t position_b, int64_t length_b)
{
    const mpiox_range range_a = {inner(a), origin_a, position_a, length_a};
    const mpiox_range range_b = {inner(b), origin_b, position_b, length_b};
    return mpiox_typemap_disjoint_ranges(&range_a, &range_b);
}
