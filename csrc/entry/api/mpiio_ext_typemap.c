/*
 * mpiio_ext_typemap.c - typemaps for programs and for Python.
 *
 * mpiio_ext_typemap is mpiox_typemap under its public name. Functions that only pass their arguments on are generated
 * (generate.py); this file has those that convert them.
 */
#include <mpi.h>
#include <string.h>

#include "mpiio_ext.h"
#include "mpiox_typemap.h"
#include "mpiox_typemap_mpi.h"
#include "mpiox_copy.h"

static const mpiox_typemap *inner(const mpiio_ext_typemap *typemap)
{
    return (const mpiox_typemap *)(const void *)typemap;
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
    return mpiox_typemap_from_datatype(handle, (mpiox_typemap **)(void *)typemap);
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

int mpiio_ext_typemap_disjoint(const mpiio_ext_typemap_range *a, const mpiio_ext_typemap_range *b)
{
    const mpiox_range first = {inner(a->typemap), a->origin, a->position, a->length};
    const mpiox_range second = {inner(b->typemap), b->origin, b->position, b->length};
    return mpiox_typemap_disjoint_ranges(&first, &second);
}
