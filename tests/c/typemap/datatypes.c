/*
 * datatypes.c - random MPI datatypes: what we decode against what MPI_Pack and MPI_Unpack do.
 *
 * datatypes [cases [seed]]. Every constructor of the MPI library is used, in its small and, where there is one,
 * its large-count form. Prints how often each combiner occurred; aborts with a line at the first difference.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_typemap.h"
#include "mpiox_typemap_contents.h"
#include "mpiox_typemap_mpi.h"
#include "mpiox_copy.h"

#define ARENA 65536
#define MAX_DATA 6000
#define MAX_ITEMS 6
#define TILES 2

static uint64_t state;
static long case_seed;
static long used[64];

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: case seed %ld: %s does not hold\n", __FILE__, __LINE__, case_seed, #condition);    \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static int choose(int low, int high)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return low + (int)((state * UINT64_C(2685821657736338717) >> 33) % (uint64_t)(high - low + 1));
}

static MPI_Datatype predefined(void)
{
    const MPI_Datatype types[] = {MPI_BYTE,        MPI_CHAR,           MPI_SHORT,     MPI_INT,
                                  MPI_DOUBLE,      MPI_LONG,           MPI_FLOAT,     MPI_SHORT_INT,
                                  MPI_LONG_INT,    MPI_DOUBLE_INT,     MPI_FLOAT_INT, MPI_2INT,
                                  MPI_INT64_T,     MPI_OFFSET,         MPI_AINT,      MPI_C_DOUBLE_COMPLEX,
#ifdef OPEN_MPI /* MPICH moves long doubles as numbers, without the padding */
                                  MPI_LONG_DOUBLE, MPI_LONG_DOUBLE_INT
#endif
    };
    return types[choose(0, (int)(sizeof types / sizeof types[0]) - 1)];
}

/* Open MPI states wrong true bounds for some types with negative strides; those are left to it. */
#ifdef OPEN_MPI
#define REFUSALS 1
#else
#define REFUSALS 0
#endif

#if MPI_VERSION >= 4
#define LARGE (choose(0, 1) == 1)
#else
#define LARGE false
#endif

static void items(int n, int *counts, int *displacements, MPI_Aint *bytes, MPI_Aint extent)
{
    const int style = choose(0, 2), step = choose(-3, 8), one = choose(0, 3);
    int at = choose(-4, 4);
    for (int i = 0; i < n; i++) {
        counts[i] = style == 0 ? one : choose(0, 3);
        displacements[i] = at;
        bytes[i] = style == 2 ? at * 4 : at * extent;
        at += style == 0 ? step : choose(0, 1) == 0 ? counts[i] : choose(-5, 10);
    }
}

static MPI_Datatype make_vector(MPI_Datatype child, bool in_bytes, bool large)
{
    const int count = choose(0, 5), length = choose(0, 3), stride = choose(-4, 7);
    MPI_Aint lb, extent;
    MPI_Datatype type;
    MPI_Type_get_extent(child, &lb, &extent);
    const MPI_Aint bytes = choose(0, 1) == 0 ? stride * 4 : stride * extent;
#if MPI_VERSION >= 4
    if (large) {
        in_bytes ? MPI_Type_create_hvector_c(count, length, bytes, child, &type)
                 : MPI_Type_vector_c(count, length, stride, child, &type);
        return type;
    }
#endif
    (void)large;
    in_bytes ? MPI_Type_create_hvector(count, length, bytes, child, &type)
             : MPI_Type_vector(count, length, stride, child, &type);
    return type;
}

static MPI_Datatype make_indexed(MPI_Datatype child, bool in_bytes, bool one_length, bool large)
{
    int counts[MAX_ITEMS], displacements[MAX_ITEMS];
    MPI_Aint bytes[MAX_ITEMS], lb, extent;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const int n = choose(0, MAX_ITEMS), length = choose(0, 3);
    MPI_Type_get_extent(child, &lb, &extent);
    items(n, counts, displacements, bytes, extent);
#if MPI_VERSION >= 4
    if (large) {
        MPI_Count c[MAX_ITEMS], d[MAX_ITEMS], b[MAX_ITEMS];
        for (int i = 0; i < n; i++) {
            c[i] = counts[i];
            d[i] = displacements[i];
            b[i] = bytes[i];
        }
        one_length ? (in_bytes ? MPI_Type_create_hindexed_block_c(n, length, b, child, &type)
                               : MPI_Type_create_indexed_block_c(n, length, d, child, &type))
                   : (in_bytes ? MPI_Type_create_hindexed_c(n, c, b, child, &type)
                               : MPI_Type_indexed_c(n, c, d, child, &type));
        return type;
    }
#endif
    (void)large;
    one_length ? (in_bytes ? MPI_Type_create_hindexed_block(n, length, bytes, child, &type)
                           : MPI_Type_create_indexed_block(n, length, displacements, child, &type))
               : (in_bytes ? MPI_Type_create_hindexed(n, counts, bytes, child, &type)
                           : MPI_Type_indexed(n, counts, displacements, child, &type));
    return type;
}

static MPI_Datatype random_type(int depth);

static MPI_Datatype make_struct(int depth, bool large)
{
    int counts[MAX_ITEMS], displacements[MAX_ITEMS];
    MPI_Aint bytes[MAX_ITEMS];
    MPI_Datatype children[MAX_ITEMS], type;
    const int n = choose(0, 4);
    items(n, counts, displacements, bytes, 8 * choose(1, 4));
    for (int i = 0; i < n; i++) {
        children[i] = random_type(depth - 1);
        /* A struct with a member without data is packed wrongly by Open MPI 4.1 and crashes MPICH 5.0. */
        int size;
        MPI_Type_size(children[i], &size);
        counts[i] += counts[i] == 0;
        if (size == 0) {
            MPI_Type_free(&children[i]);
            MPI_Type_dup(MPI_INT, &children[i]);
        }
    }
#if MPI_VERSION >= 4
    if (large) {
        MPI_Count c[MAX_ITEMS], b[MAX_ITEMS];
        for (int i = 0; i < n; i++) {
            c[i] = counts[i];
            b[i] = bytes[i];
        }
        MPI_Type_create_struct_c(n, c, b, children, &type);
    } else
#endif
    {
        MPI_Type_create_struct(n, counts, bytes, children, &type);
    }
    for (int i = 0; i < n; i++) {
        MPI_Type_commit(&children[i]);
        MPI_Type_free(&children[i]);
    }
    (void)large;
    return type;
}

static MPI_Datatype make_subarray(MPI_Datatype child, bool large)
{
    int sizes[3], subsizes[3], starts[3];
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const int ndims = choose(1, 3), order = choose(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int d = 0; d < ndims; d++) {
        sizes[d] = choose(1, 5);
        subsizes[d] = choose(1, sizes[d]);
        starts[d] = choose(0, sizes[d] - subsizes[d]);
    }
#if MPI_VERSION >= 4
    if (large) {
        MPI_Count c[3], s[3], f[3];
        for (int d = 0; d < ndims; d++) {
            c[d] = sizes[d];
            s[d] = subsizes[d];
            f[d] = starts[d];
        }
        MPI_Type_create_subarray_c(ndims, c, s, f, order, child, &type);
        return type;
    }
#endif
    (void)large;
    MPI_Type_create_subarray(ndims, sizes, subsizes, starts, order, child, &type);
    return type;
}

static MPI_Datatype make_darray(MPI_Datatype child, bool large)
{
    int gsizes[3], distribs[3], dargs[3], psizes[3], size = 1;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const int ndims = choose(1, 3), order = choose(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int d = 0; d < ndims; d++) {
        const int kind = choose(0, 2);
        gsizes[d] = choose(1, 7);
        psizes[d] = kind == 0 ? 1 : choose(1, 3);
        size *= psizes[d];
        distribs[d] = kind == 0 ? MPI_DISTRIBUTE_NONE : kind == 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
        dargs[d] = MPI_DISTRIBUTE_DFLT_DARG;
        if (kind == 1 && choose(0, 1) == 1) {
            dargs[d] = (gsizes[d] + psizes[d] - 1) / psizes[d] + choose(0, 1);
        } else if (kind == 2 && choose(0, 2) > 0) {
            dargs[d] = choose(1, 3);
        }
    }
    const int rank = choose(0, size - 1);
#if MPI_VERSION >= 4
    if (large) {
        MPI_Count c[3];
        for (int d = 0; d < ndims; d++) {
            c[d] = gsizes[d];
        }
        MPI_Type_create_darray_c(size, rank, ndims, c, distribs, dargs, psizes, order, child, &type);
        return type;
    }
#endif
    (void)large;
    MPI_Type_create_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, child, &type);
    return type;
}

static MPI_Datatype make_resized(MPI_Datatype child, bool large)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Aint lb, extent;
    MPI_Type_get_extent(child, &lb, &extent);
    lb += choose(0, 1) == 0 ? 0 : 4 * choose(-3, 3);
    extent += 4 * choose(0, 5);
#if MPI_VERSION >= 4
    if (large) {
        MPI_Type_create_resized_c(child, lb, extent, &type);
        return type;
    }
#endif
    (void)large;
    MPI_Type_create_resized(child, lb, extent, &type);
    return type;
}

static MPI_Datatype make_contiguous(MPI_Datatype child, bool large)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
#if MPI_VERSION >= 4
    if (large) {
        MPI_Type_contiguous_c(choose(0, 4), child, &type);
        return type;
    }
#endif
    (void)large;
    MPI_Type_contiguous(choose(0, 4), child, &type);
    return type;
}

static MPI_Datatype make_leaf(void)
{
    MPI_Datatype type;
    if (choose(0, 9) == 0) {
        choose(0, 1) == 0 ? MPI_Type_create_f90_real(12, MPI_UNDEFINED, &type) : MPI_Type_create_f90_integer(8, &type);
        used[choose(0, 0) + 40]++;
        MPI_Type_dup(type, &type);
        return type;
    }
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    if (choose(0, 5) == 0) {
        const MPI_Datatype values[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_LONG_DOUBLE};
        const MPI_Datatype indices[] = {MPI_INT, MPI_LONG, MPI_SHORT};
        MPI_Type_get_value_index(values[choose(0, 4)], indices[choose(0, 2)], &type);
        if (type != MPI_DATATYPE_NULL) {
            used[41]++;
            MPI_Type_dup(type, &type);
            return type;
        }
    }
#endif
    MPI_Type_dup(predefined(), &type);
    return type;
}

/* Always a derived type, which the caller frees. */
static MPI_Datatype random_type(int depth)
{
    MPI_Datatype child, type = MPI_DATATYPE_NULL;
    const bool large = LARGE;
    const int kind = depth > 0 ? choose(0, 11) : 0;
    if (kind == 0) {
        return make_leaf();
    }
    if (kind == 1) {
        return make_struct(depth, large);
    }
    child = random_type(depth - 1);
    switch (kind) {
    case 2:
        type = make_vector(child, false, large);
        break;
    case 3:
        type = make_vector(child, true, large);
        break;
    case 4:
        type = make_indexed(child, false, false, large);
        break;
    case 5:
        type = make_indexed(child, true, false, large);
        break;
    case 6:
        type = make_indexed(child, false, true, large);
        break;
    case 7:
        type = make_indexed(child, true, true, large);
        break;
    case 8:
        type = make_subarray(child, large);
        break;
    case 9:
        type = make_darray(child, large);
        break;
    case 10:
        type = make_resized(child, large);
        break;
    default:
        type = make_contiguous(child, large);
        break;
    }
    if (type == MPI_DATATYPE_NULL) { /* refused by the library: Open MPI makes no darray of types without data */
        MPI_Type_dup(child, &type);
    }
    MPI_Type_free(&child);
    return type;
}

static void count_combiner(MPI_Datatype type)
{
    int combiner;
#if MPI_VERSION >= 4
    MPI_Count a, b, c, d;
    MPI_Type_get_envelope_c(type, &a, &b, &c, &d, &combiner);
#else
    int a, b, c;
    MPI_Type_get_envelope(type, &a, &b, &c, &combiner);
#endif
    used[combiner]++;
}

static void check_cache(MPI_Datatype type, mpiox_typemap *typemap)
{
    mpiox_typemap *again = NULL;
    MPI_Datatype copy;
    REQUIRE(mpiox_typemap_from_datatype(type, &again) == MPIOX_OK && again == typemap);
    mpiox_typemap_free(again);
    MPI_Type_dup(type, &copy);
    REQUIRE(mpiox_typemap_from_datatype(copy, &again) == MPIOX_OK && again == typemap);
    MPI_Type_free(&copy);
    mpiox_typemap_free(again);
}

/* How the type was built, for a person who looks into a difference. */
static void show(MPI_Datatype type, int indent)
{
    mpiox_contents c;
    MPI_Count size, lb, extent, true_lb, true_extent;
    REQUIRE(mpiox_contents_get(type, &c) == MPIOX_OK);
    MPI_Type_size_x(type, &size);
    MPI_Type_get_extent_x(type, &lb, &extent);
    MPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
    fprintf(stderr, "%*scombiner %d size %lld lb %lld extent %lld true lb %lld extent %lld:", indent, "", c.combiner,
            (long long)size, (long long)lb, (long long)extent, (long long)true_lb, (long long)true_extent);
    for (int64_t i = 0; c.integers != NULL && i < c.n_integers; i++) {
        fprintf(stderr, " %d", c.integers[i]);
    }
    for (int64_t i = 0; i < c.n_addresses; i++) {
        fprintf(stderr, " a%lld", (long long)c.addresses[i]);
    }
    for (int64_t i = 0; i < c.n_counts; i++) {
        fprintf(stderr, " c%lld", (long long)c.counts[i]);
    }
    fprintf(stderr, "\n");
    for (int64_t i = 0; i < c.n_types; i++) {
        show(c.types[i], indent + 2);
    }
    mpiox_contents_free(&c);
}

/* Pack and unpack TILES items by MPI and by us. */
static void check_bytes(MPI_Datatype type, mpiox_typemap *typemap)
{
    static char memory[ARENA], packed[MAX_DATA * TILES + 1024], ours[MAX_DATA * TILES + 1024], expected[ARENA];
    char *origin = memory + ARENA / 2;
    int position = 0;
    const int64_t bytes = TILES * mpiox_typemap_size(typemap);
    for (int i = 0; i < ARENA; i++) {
        memory[i] = (char)(i * 31 + i / 200);
    }
    memset(packed, 0, sizeof packed);
    memset(ours, 0, sizeof ours);
    if (getenv("MPIOX_SHOW") != NULL) { /* before MPI crashes */
        fprintf(stderr, "case seed %ld\n", case_seed);
        show(type, 0);
    }
    MPI_Pack(origin, TILES, type, packed, (int)sizeof packed, &position, MPI_COMM_SELF);
    REQUIRE(position == bytes);
    const mpiox_memory_layout at_memory = {origin, typemap, 0, 0}, at_ours = {ours, NULL, 0, 0};
    mpiox_copy(&at_ours, &at_memory, bytes);
    if (memcmp(packed, ours, sizeof packed) != 0) {
        show(type, 0);
    }
    REQUIRE(memcmp(packed, ours, sizeof packed) == 0);

    for (int64_t i = 0; i < bytes; i++) {
        packed[i] = (char)(i * 13 + i / 100 + 5);
    }
    if (!mpiox_typemap_is_monotonic(typemap)) { /* overlapping types may not be received */
        return;
    }
    memcpy(expected, memory, ARENA);
    position = 0;
    MPI_Unpack(packed, (int)bytes, &position, expected + ARENA / 2, TILES, type, MPI_COMM_SELF);
    const mpiox_memory_layout at_packed = {packed, NULL, 0, 0};
    mpiox_copy(&at_memory, &at_packed, bytes);
    REQUIRE(memcmp(memory, expected, ARENA) == 0);
}

static bool small_enough(MPI_Datatype type)
{
    MPI_Count size, lb, extent, true_lb, true_extent;
    MPI_Type_size_x(type, &size);
    MPI_Type_get_extent_x(type, &lb, &extent);
    MPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
    if (size == 0) { /* Open MPI has no true bounds for these */
        true_lb = true_extent = 0;
    }
    const MPI_Count reach = TILES * (extent < 0 ? -extent : extent) + true_extent + (true_lb < 0 ? -true_lb : true_lb);
    return size <= MAX_DATA && reach < ARENA / 2 - 64;
}

/* Every predefined type that this family has, padding and pairs included. */
static void check_predefined(void)
{
    const MPI_Datatype types[] = {MPI_CHAR,
                                  MPI_SIGNED_CHAR,
                                  MPI_UNSIGNED_CHAR,
                                  MPI_BYTE,
                                  MPI_WCHAR,
                                  MPI_SHORT,
                                  MPI_UNSIGNED_SHORT,
                                  MPI_INT,
                                  MPI_UNSIGNED,
                                  MPI_LONG,
                                  MPI_UNSIGNED_LONG,
                                  MPI_FLOAT,
                                  MPI_DOUBLE,
                                  MPI_LONG_DOUBLE,
                                  MPI_LONG_LONG,
                                  MPI_C_BOOL,
                                  MPI_C_FLOAT_COMPLEX,
                                  MPI_C_DOUBLE_COMPLEX,
                                  MPI_C_LONG_DOUBLE_COMPLEX,
                                  MPI_PACKED,
                                  MPI_FLOAT_INT,
                                  MPI_DOUBLE_INT,
                                  MPI_LONG_INT,
                                  MPI_SHORT_INT,
                                  MPI_2INT,
                                  MPI_LONG_DOUBLE_INT,
                                  MPI_INTEGER,
                                  MPI_REAL,
                                  MPI_DOUBLE_PRECISION,
                                  MPI_COMPLEX,
                                  MPI_LOGICAL,
                                  MPI_CHARACTER,
                                  MPI_2INTEGER,
                                  MPI_2REAL,
                                  MPI_2DOUBLE_PRECISION,
                                  MPI_COUNT};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        mpiox_typemap *typemap = NULL;
        case_seed = -1 - (long)i;
        REQUIRE(mpiox_typemap_from_datatype(types[i], &typemap) == MPIOX_OK);
        check_bytes(types[i], typemap);
        mpiox_typemap_free(typemap);
    }
    mpiox_typemap *none = NULL;
    REQUIRE(mpiox_typemap_from_datatype(MPI_DATATYPE_NULL, &none) == MPIOX_E_ARG && none == NULL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const long cases = argc > 1 ? atol(argv[1]) : 2000, seed = argc > 2 ? atol(argv[2]) : 1;
    long checked = 0, refused = 0, kinds = 0;
    check_predefined();
    for (case_seed = seed; case_seed < seed + cases; case_seed++) {
        mpiox_typemap *typemap = NULL;
        state = (uint64_t)case_seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        MPI_Datatype type = random_type(choose(1, 4));
        MPI_Type_commit(&type);
        if (small_enough(type)) {
            count_combiner(type);
            const int code = mpiox_typemap_from_datatype(type, &typemap);
            if (code == MPIOX_OK) {
                check_cache(type, typemap);
                check_bytes(type, typemap);
                mpiox_typemap_free(typemap);
                checked++;
            } else if (REFUSALS) {
                REQUIRE(code == MPIOX_E_UNSUPPORTED);
                refused++;
            } else {
                fprintf(stderr, "code %d\n", code);
                show(type, 0);
                REQUIRE(code == MPIOX_OK);
            }
        }
        MPI_Type_free(&type);
    }
    for (int i = 0; i < 64; i++) {
        kinds += used[i] > 0;
    }
    printf("%ld datatypes checked, %ld refused, %ld combiners\n", checked, refused, kinds);
    REQUIRE(refused * 50 <= checked);
    mpiox_typemap_mpi_finalize();
    MPI_Finalize();
    return 0;
}
