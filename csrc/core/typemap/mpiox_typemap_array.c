/*
 * mpiox_typemap_array.c - subarrays and distributed arrays.
 *
 * Both are built from the fastest dimension outwards. The part of dimension d is one loop (subarray, block) or a loop
 * of whole blocks and a last partial one (cyclic) over the description of all faster dimensions. Its step is the size
 * in bytes of a whole slab. No element is ever enumerated, and file order is kept. Distribution follows MPI-4.1, 5.1.4:
 * BLOCK(b) is CYCLIC(b) of which only the first cycle exists.
 */
#include "mpiox_typemap_array.h"

#include "mpiox_typemap_impl.h"

/* Displace *typemap and give it the bounds [0, extent). Consumes *typemap, also when it fails. */
static int place_in_array(mpiox_typemap **typemap, int64_t displacement, int64_t extent)
{
    const int64_t one = 1;
    mpiox_typemap *shifted = NULL, *whole = NULL;
    int code = mpiox_typemap_indexed(1, &one, &displacement, *typemap, &shifted);
    if (code == MPIOX_OK) {
        code = mpiox_typemap_resized(0, extent, shifted, &whole);
    }
    mpiox_typemap_free(shifted);
    mpiox_typemap_free(*typemap);
    *typemap = whole;
    return code;
}

int mpiox_typemap_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                           bool fastest_first, const mpiox_typemap *element, mpiox_typemap **out)
{
    int64_t step = mpiox_typemap_extent(element), displacement = 0;
    int code = MPIOX_OK;
    mpiox_typemap *part = NULL;
    *out = NULL;
    if (ndims < 1) {
        return MPIOX_E_ARG;
    }
    for (int i = 0; i < ndims && code == MPIOX_OK; i++) {
        const int d = fastest_first ? i : ndims - 1 - i;
        mpiox_typemap *wider = NULL;
        int64_t start, end;
        if (subsizes[d] < 0 || starts[d] < 0 || !mpiox_add(starts[d], subsizes[d], &end) || end > sizes[d] ||
            !mpiox_mul(starts[d], step, &start) || !mpiox_add(displacement, start, &displacement)) {
            code = MPIOX_E_ARG;
            break;
        }
        code = mpiox_typemap_vector(subsizes[d], step, part != NULL ? part : element, &wider);
        mpiox_typemap_free(part);
        part = wider;
        if (code == MPIOX_OK && !mpiox_mul(step, sizes[d], &step)) {
            code = MPIOX_E_ARG;
        }
    }
    if (code != MPIOX_OK) {
        mpiox_typemap_free(part);
        return code;
    }
    code = place_in_array(&part, displacement, step);
    *out = part;
    return code;
}

/* One process's part of a dimension: `blocks` whole blocks, `period` apart, from `start` on; then `rest` items. */
typedef struct share {
    int64_t start;
    int64_t block;
    int64_t period;
    int64_t blocks;
    int64_t rest;
} share;

static int divide_dimension(const mpiox_dimension *d, share *s)
{
    *s = (share){0, d->size, d->size, d->size > 0, 0};
    if (d->size < 0 || d->processes < 1 || d->coordinate < 0 || d->coordinate >= d->processes || d->block_items < 0) {
        return MPIOX_E_ARG;
    }
    if (d->distribution == MPIOX_DISTRIBUTE_NONE) {
        return d->processes == 1 ? MPIOX_OK : MPIOX_E_ARG;
    }
    s->block = d->block_items;
    if (s->block == 0) {
        s->block = d->distribution == MPIOX_DISTRIBUTE_CYCLIC ? 1 : (d->size + d->processes - 1) / d->processes;
    }
    if (!mpiox_mul(s->block, d->processes, &s->period) ||
        (d->distribution == MPIOX_DISTRIBUTE_BLOCK && s->period < d->size)) {
        return MPIOX_E_ARG;
    }
    s->start = s->block * d->coordinate;
    s->blocks = 0;
    if (s->block > 0 && d->size - s->start >= s->block) {
        s->blocks = (d->size - s->start - s->block) / s->period + 1;
    }
    const int64_t next = s->start + s->blocks * s->period;
    s->rest = d->size > next ? d->size - next : 0;
    s->rest = s->rest < s->block ? s->rest : 0;
    return MPIOX_OK;
}

/* The share of one dimension, over the description `slab` of one item, `step` bytes apart. */
static int describe_share(const share *s, int64_t step, const mpiox_typemap *slab, mpiox_typemap **out)
{
    mpiox_typemap *block = NULL, *whole = NULL, *rest = NULL;
    const int64_t counts[2] = {1, 1};
    int64_t at[2], period;
    *out = NULL;
    if (!mpiox_mul(s->period, step, &period) || !mpiox_mul(s->start, step, &at[0]) ||
        !mpiox_mul(s->start + s->blocks * s->period, step, &at[1])) {
        return s->blocks == 0 && s->rest == 0 ? mpiox_typemap_block(0, out) : MPIOX_E_ARG;
    }
    int code = mpiox_typemap_vector(s->block, step, slab, &block);
    if (code == MPIOX_OK) {
        code = mpiox_typemap_vector(s->blocks, period, block, &whole);
    }
    if (code == MPIOX_OK) {
        code = mpiox_typemap_vector(s->rest, step, slab, &rest);
    }
    if (code == MPIOX_OK) {
        const mpiox_typemap *parts[2] = {whole, rest};
        code = mpiox_typemap_struct(2, counts, at, parts, out);
    }
    mpiox_typemap_free(block);
    mpiox_typemap_free(whole);
    mpiox_typemap_free(rest);
    return code;
}

int mpiox_typemap_darray(int ndims, const mpiox_dimension *dimensions, bool fastest_first, const mpiox_typemap *element,
                         mpiox_typemap **out)
{
    int64_t step = mpiox_typemap_extent(element);
    int code = ndims < 1 ? MPIOX_E_ARG : MPIOX_OK;
    mpiox_typemap *part = NULL;
    *out = NULL;
    for (int i = 0; i < ndims && code == MPIOX_OK; i++) {
        const mpiox_dimension *dimension = dimensions + (fastest_first ? i : ndims - 1 - i);
        mpiox_typemap *wider = NULL;
        share s;
        code = divide_dimension(dimension, &s);
        if (code == MPIOX_OK) {
            code = describe_share(&s, step, part != NULL ? part : element, &wider);
        }
        mpiox_typemap_free(part);
        part = wider;
        if (code == MPIOX_OK && !mpiox_mul(step, dimension->size, &step)) {
            code = MPIOX_E_ARG;
        }
    }
    if (code == MPIOX_OK) {
        code = place_in_array(&part, 0, step);
    } else {
        mpiox_typemap_free(part);
        part = NULL;
    }
    *out = part;
    return code;
}
