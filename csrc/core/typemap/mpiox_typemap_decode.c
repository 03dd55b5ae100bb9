/*
 * mpiox_typemap_decode.c - every MPI combiner as constructors of descriptions.
 *
 * Problem.    A datatype is opaque; MPI_Type_get_envelope and get_contents return its construction, recursively.
 * Algorithm.  Decode the parts, combine them with the constructor that the combiner stands for, then give the result
 *             the bounds that the MPI library states. Alignment padding of structs, old bound markers and types with a
 *             size of zero differ between libraries, and native I/O on the same file uses the library's bounds.
 * Guarantees. The size and the true bounds are compared with the library's: where they differ the type is refused
 *             (MPIOX_E_UNSUPPORTED) rather than misread. Arrays stay nested loops; no element is enumerated.
 */
#include "mpiox_typemap_decode.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "mpiox_integer.h"
#include "mpiox_typemap_array.h"
#include "mpiox_typemap_contents.h"

/* The _INTEGER combiners were removed from MPI 3.0 but old Fortran programs still make such types. Open MPI hides the
 * names and keeps the values; the standard ABI has no such types. */
#if defined(OPEN_MPI) && !(defined(OMPI_ENABLE_MPI1_COMPAT) && OMPI_ENABLE_MPI1_COMPAT)
#define COMBINER_HVECTOR_INTEGER (MPI_COMBINER_HVECTOR - 1)
#define COMBINER_HINDEXED_INTEGER (MPI_COMBINER_HINDEXED - 1)
#define COMBINER_STRUCT_INTEGER (MPI_COMBINER_STRUCT - 1)
#elif !defined(OPEN_MPI) && !defined(MPICH)
enum { COMBINER_HVECTOR_INTEGER = INT_MIN, COMBINER_HINDEXED_INTEGER, COMBINER_STRUCT_INTEGER }; /* never met */
#else
#define COMBINER_HVECTOR_INTEGER MPI_COMBINER_HVECTOR_INTEGER
#define COMBINER_HINDEXED_INTEGER MPI_COMBINER_HINDEXED_INTEGER
#define COMBINER_STRUCT_INTEGER MPI_COMBINER_STRUCT_INTEGER
#endif

/* ---- predefined types -------------------------------------------------------------------------------------------- */

/* Two parts with a hole between them, as MPI_SHORT_INT. */
static int describe_pair(int64_t first_bytes, int64_t second_at, int64_t second_bytes, mpiox_typemap **out)
{
    mpiox_typemap *first = NULL, *second = NULL;
    const int64_t counts[2] = {1, 1}, at[2] = {0, second_at};
    *out = NULL;
    int code = mpiox_typemap_block(first_bytes, &first);
    if (code == MPIOX_OK) {
        code = mpiox_typemap_block(second_bytes, &second);
    }
    if (code == MPIOX_OK) {
        const mpiox_typemap *parts[2] = {first, second};
        code = mpiox_typemap_struct(2, counts, at, parts, out);
    }
    mpiox_typemap_free(first);
    mpiox_typemap_free(second);
    return code;
}

#define PAIR(handle, type)                                                                                             \
    if (datatype == (handle)) {                                                                                        \
        struct pair {                                                                                                  \
            type value;                                                                                                \
            int index;                                                                                                 \
        };                                                                                                             \
        return describe_pair(sizeof(type), offsetof(struct pair, index), sizeof(int), out);                            \
    }

static int decode_named(MPI_Datatype datatype, mpiox_typemap **out)
{
    MPI_Count size;
    PAIR(MPI_FLOAT_INT, float)
    PAIR(MPI_DOUBLE_INT, double)
    PAIR(MPI_LONG_INT, long)
    PAIR(MPI_SHORT_INT, short)
    PAIR(MPI_LONG_DOUBLE_INT, long double)
    if (PMPI_Type_size_x(datatype, &size) != MPI_SUCCESS) {
        return MPIOX_E_MPI;
    }
    return size < 0 ? MPIOX_E_UNSUPPORTED : mpiox_typemap_block(size, out);
}

/* ---- derived types ----------------------------------------------------------------------------------------------- */

/* count blocks of blocklength children; the stride is in bytes, or in extents of the child. */
static int decode_vector(mpiox_contents *c, const mpiox_typemap *child, bool stride_in_bytes, mpiox_typemap **out)
{
    mpiox_typemap *block = NULL;
    const int64_t count = mpiox_contents_count(c), length = mpiox_contents_count(c);
    int64_t stride = stride_in_bytes ? mpiox_contents_address(c) : mpiox_contents_count(c);
    *out = NULL;
    if (!stride_in_bytes && __builtin_mul_overflow(stride, mpiox_typemap_extent(child), &stride)) {
        return MPIOX_E_ARG;
    }
    int code = mpiox_typemap_vector(length, mpiox_typemap_extent(child), child, &block);
    if (code == MPIOX_OK) {
        code = mpiox_typemap_vector(count, stride, block, out);
    }
    mpiox_typemap_free(block);
    return code;
}

/* Two arrays of n words: counts and displacements. Free the first. */
static int64_t *new_items(int64_t n, int64_t **displacements)
{
    int64_t *words = n >= 0 && n < INT64_MAX / 64 ? malloc((size_t)(2 * n + 1) * sizeof *words) : NULL;
    *displacements = words != NULL ? words + n : NULL;
    return words;
}

typedef struct item_style {
    bool one_length; /* a single block length for all items */
    bool in_bytes;   /* displacements in bytes, not in extents of the child */
} item_style;

/* A list whose addresses and lengths MPI has written into the room of its description. */
static int decode_in_place(mpiox_contents *c, const mpiox_typemap *child, bool one_length, mpiox_typemap **out)
{
    const int64_t n = mpiox_contents_count(c);
    mpiox_item_lengths lengths = {.narrow = NULL};
    *out = NULL;
    if (n != c->items.n || c->n_integers != (one_length ? 2 : n + 1)) {
        return MPIOX_E_UNSUPPORTED;
    }
    if (one_length) {
        lengths.all = mpiox_contents_count(c);
    } else {
        lengths.narrow = c->integers + 1;
    }
    return mpiox_items_describe(&c->items, lengths, child, out);
}

static int decode_indexed(mpiox_contents *c, const mpiox_typemap *child, item_style style, mpiox_typemap **out)
{
    if (c->items.room != NULL && mpiox_items_fit(child)) {
        return decode_in_place(c, child, style.one_length, out);
    }
    const int64_t n = mpiox_contents_count(c), extent = mpiox_typemap_extent(child);
    int64_t *at, *counts = new_items(n, &at);
    int code = MPIOX_OK;
    *out = NULL;
    if (counts == NULL) {
        return MPIOX_E_NOMEM;
    }
    const int64_t length = style.one_length ? mpiox_contents_count(c) : 0;
    for (int64_t i = 0; i < n; i++) {
        counts[i] = style.one_length ? length : mpiox_contents_count(c);
    }
    for (int64_t i = 0; i < n; i++) {
        at[i] = style.in_bytes ? mpiox_contents_address(c) : mpiox_contents_count(c);
        if (!style.in_bytes && __builtin_mul_overflow(at[i], extent, &at[i])) {
            code = MPIOX_E_ARG;
        }
    }
    if (code == MPIOX_OK) {
        code = mpiox_typemap_indexed(n, counts, at, child, out);
    }
    free(counts);
    return code;
}

static int decode_struct(mpiox_contents *c, mpiox_typemap **out)
{
    const int64_t n = mpiox_contents_count(c);
    int64_t *at, *counts = new_items(n, &at);
    const mpiox_typemap **children = counts != NULL ? calloc((size_t)n + 1, sizeof *children) : NULL;
    int code = children == NULL ? MPIOX_E_NOMEM : n > c->n_types ? MPIOX_E_UNSUPPORTED : MPIOX_OK;
    *out = NULL;
    for (int64_t i = 0; i < n && code == MPIOX_OK; i++) {
        counts[i] = mpiox_contents_count(c);
    }
    for (int64_t i = 0; i < n && code == MPIOX_OK; i++) {
        mpiox_typemap *child = NULL;
        at[i] = mpiox_contents_address(c);
        code = mpiox_typemap_decode(c->types[i], &child);
        children[i] = child;
    }
    if (code == MPIOX_OK) {
        code = mpiox_typemap_struct(n, counts, at, children, out);
    }
    for (int64_t i = 0; i < n && children != NULL; i++) {
        mpiox_typemap_free((mpiox_typemap *)(uintptr_t)children[i]);
    }
    free(children);
    free(counts);
    return code;
}

static int decode_subarray(mpiox_contents *c, const mpiox_typemap *element, mpiox_typemap **out)
{
    const int ndims = mpiox_contents_integer(c);
    int64_t *sizes = ndims > 0 ? malloc(3 * (size_t)ndims * sizeof *sizes) : NULL;
    *out = NULL;
    if (sizes == NULL) {
        return MPIOX_E_NOMEM;
    }
    for (int i = 0; i < 3 * ndims; i++) { /* sizes, subsizes, starts */
        sizes[i] = mpiox_contents_count(c);
    }
    const bool fortran = mpiox_contents_integer(c) == MPI_ORDER_FORTRAN;
    const int code = mpiox_typemap_subarray(ndims, sizes, sizes + ndims, sizes + 2 * ndims, fortran, element, out);
    free(sizes);
    return code;
}

/* The remaining arguments of MPI_Type_create_darray, per dimension. The process grid is always in C order. */
static bool read_dimensions(mpiox_contents *c, int ndims, int size, int rank, mpiox_dimension *d)
{
    bool known = true;
    for (int i = 0; i < ndims; i++) {
        d[i].size = mpiox_contents_count(c);
    }
    for (int i = 0; i < ndims; i++) {
        const int kind = mpiox_contents_integer(c);
        known = known && (kind == MPI_DISTRIBUTE_NONE || kind == MPI_DISTRIBUTE_BLOCK || kind == MPI_DISTRIBUTE_CYCLIC);
        d[i].distribution = kind == MPI_DISTRIBUTE_BLOCK    ? MPIOX_DISTRIBUTE_BLOCK
                            : kind == MPI_DISTRIBUTE_CYCLIC ? MPIOX_DISTRIBUTE_CYCLIC
                                                            : MPIOX_DISTRIBUTE_NONE;
    }
    for (int i = 0; i < ndims; i++) {
        const int argument = mpiox_contents_integer(c);
        d[i].block_items = argument == MPI_DISTRIBUTE_DFLT_DARG ? 0 : argument;
    }
    for (int i = 0; i < ndims; i++) {
        d[i].processes = mpiox_contents_integer(c);
        known = known && d[i].processes > 0 && size > 0;
        if (known) {
            size /= (int)d[i].processes;
            known = size > 0;
        }
        d[i].coordinate = known ? rank / size : 0;
        rank = known ? rank % size : 0;
    }
    return known;
}

static int decode_darray(mpiox_contents *c, const mpiox_typemap *element, mpiox_typemap **out)
{
    const int size = mpiox_contents_integer(c), rank = mpiox_contents_integer(c), ndims = mpiox_contents_integer(c);
    mpiox_dimension *dimensions = ndims > 0 ? calloc((size_t)ndims, sizeof *dimensions) : NULL;
    int code = MPIOX_E_UNSUPPORTED;
    *out = NULL;
    if (dimensions == NULL) {
        return MPIOX_E_NOMEM;
    }
    if (read_dimensions(c, ndims, size, rank, dimensions)) {
        const bool fortran = mpiox_contents_integer(c) == MPI_ORDER_FORTRAN;
        code = mpiox_typemap_darray(ndims, dimensions, fortran, element, out);
    }
    free(dimensions);
    return code;
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define HAVE_VALUE_INDEX
/* A C struct of a value and an index: the index is aligned to its own size. */
static int decode_value_index(const mpiox_contents *c, mpiox_typemap **out)
{
    MPI_Count value, index;
    if (c->n_types < 2 || PMPI_Type_size_x(c->types[0], &value) != MPI_SUCCESS ||
        PMPI_Type_size_x(c->types[1], &index) != MPI_SUCCESS || value < 0 || index <= 0) {
        return MPIOX_E_UNSUPPORTED;
    }
    return describe_pair(value, mpiox_round_up(value, index), index, out);
}
#endif

/* Combiners with one child. */
static int decode_over(mpiox_contents *c, const mpiox_typemap *child, mpiox_typemap **out)
{
    switch (c->combiner) {
    case MPI_COMBINER_DUP:
        return mpiox_typemap_vector(1, 0, child, out);
    case MPI_COMBINER_CONTIGUOUS:
        return mpiox_typemap_vector(mpiox_contents_count(c), mpiox_typemap_extent(child), child, out);
    case MPI_COMBINER_VECTOR:
        return decode_vector(c, child, false, out);
    case MPI_COMBINER_HVECTOR:
    case COMBINER_HVECTOR_INTEGER:
        return decode_vector(c, child, true, out);
    case MPI_COMBINER_INDEXED:
        return decode_indexed(c, child, (item_style){.one_length = false, .in_bytes = false}, out);
    case MPI_COMBINER_HINDEXED:
    case COMBINER_HINDEXED_INTEGER:
        return decode_indexed(c, child, (item_style){.one_length = false, .in_bytes = true}, out);
    case MPI_COMBINER_INDEXED_BLOCK:
        return decode_indexed(c, child, (item_style){.one_length = true, .in_bytes = false}, out);
    case MPI_COMBINER_HINDEXED_BLOCK:
        return decode_indexed(c, child, (item_style){.one_length = true, .in_bytes = true}, out);
    case MPI_COMBINER_SUBARRAY:
        return decode_subarray(c, child, out);
    case MPI_COMBINER_DARRAY:
        return decode_darray(c, child, out);
    case MPI_COMBINER_RESIZED: {
        const int64_t lb = mpiox_contents_address(c);
        return mpiox_typemap_resized(lb, mpiox_contents_address(c), child, out);
    }
    default:
        return MPIOX_E_UNSUPPORTED;
    }
}

static int decode_derived(mpiox_contents *c, mpiox_typemap **out)
{
    mpiox_typemap *child = NULL;
    switch (c->combiner) {
    case MPI_COMBINER_STRUCT:
    case COMBINER_STRUCT_INTEGER:
        return decode_struct(c, out);
#ifdef HAVE_VALUE_INDEX
    case MPI_COMBINER_VALUE_INDEX:
        return decode_value_index(c, out);
#endif
    default:
        break;
    }
    if (c->n_types != 1) {
        return MPIOX_E_UNSUPPORTED;
    }
    int code = mpiox_typemap_decode(c->types[0], &child);
    if (code == MPIOX_OK) {
        code = decode_over(c, child, out);
    }
    mpiox_typemap_free(child);
    return code;
}

/* Take over the library's bounds; refuse a description of another size, or of data outside the library's true bounds
 * (which may be wider: MPICH counts members without data). Open MPI 4.1 misstates them for some negative strides. */
static int settle_bounds(MPI_Datatype datatype, mpiox_typemap **typemap)
{
    MPI_Count size, lb, extent, true_lb, true_extent;
    if (PMPI_Type_size_x(datatype, &size) != MPI_SUCCESS ||
        PMPI_Type_get_extent_x(datatype, &lb, &extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent) != MPI_SUCCESS) {
        return MPIOX_E_MPI;
    }
    if (size != mpiox_typemap_size(*typemap) ||
        (size > 0 &&
         (true_lb > mpiox_typemap_true_lb(*typemap) || true_lb + true_extent < mpiox_typemap_true_ub(*typemap)))) {
        return MPIOX_E_UNSUPPORTED;
    }
    if (lb != mpiox_typemap_lb(*typemap) || extent != mpiox_typemap_extent(*typemap)) {
        mpiox_typemap *resized = NULL;
        const int code = mpiox_typemap_resized(lb, extent, *typemap, &resized);
        if (code != MPIOX_OK) {
            return code;
        }
        mpiox_typemap_free(*typemap);
        *typemap = resized;
    }
    return MPIOX_OK;
}

int mpiox_typemap_decode(MPI_Datatype datatype, mpiox_typemap **out)
{
    mpiox_contents contents;
    *out = NULL;
    int code = mpiox_contents_get(datatype, &contents);
    if (code != MPIOX_OK) {
        return code;
    }
    if (mpiox_contents_are_predefined(&contents)) {
        code = decode_named(datatype, out);
    } else {
        code = decode_derived(&contents, out);
        if (code == MPIOX_OK && contents.exhausted) {
            code = MPIOX_E_UNSUPPORTED;
        }
    }
    mpiox_contents_free(&contents);
    if (code == MPIOX_OK) {
        code = settle_bounds(datatype, out);
    }
    if (code != MPIOX_OK) {
        mpiox_typemap_free(*out);
        *out = NULL;
    }
    return code;
}
