/* mpiox_trace_view.c - see mpiox_trace_view.h. */
#include "mpiox_trace_view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpiox_trace_wrap.h"

enum { DEEPEST = 16 };

#if MPI_VERSION >= 4
BEHIND(int, PMPI_Type_get_envelope_c, (MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *))
#else
BEHIND(int, PMPI_Type_get_envelope, (MPI_Datatype, int *, int *, int *, int *))
#endif
BEHIND(int, PMPI_Type_get_contents, (MPI_Datatype, int, int, int, int[], MPI_Aint[], MPI_Datatype[]))
BEHIND(int, PMPI_Type_get_extent_x, (MPI_Datatype, MPI_Count *, MPI_Count *))
BEHIND(int, PMPI_Type_size_x, (MPI_Datatype, MPI_Count *))
BEHIND(int, PMPI_Type_free, (MPI_Datatype *))

typedef struct text {
    char *at, *end;
    bool whole;
} text;

typedef struct contents {
    int combiner, n_integers, n_addresses, n_types;
    int *integers;
    MPI_Aint *addresses;
    MPI_Datatype *types;
} contents;

/* The old form ends the job where a type was made with large counts; those are left out. */
static bool envelope(MPI_Datatype type, contents *c)
{
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, types;

    if (NEXT(PMPI_Type_get_envelope_c) == NULL ||
        NEXT(PMPI_Type_get_envelope_c)(type, &integers, &addresses, &counts, &types, &c->combiner) != MPI_SUCCESS ||
        counts > 0)
        return false;
    c->n_integers = (int)integers;
    c->n_addresses = (int)addresses;
    c->n_types = (int)types;
    return true;
#else
    return NEXT(PMPI_Type_get_envelope) != NULL &&
           NEXT(PMPI_Type_get_envelope)(type, &c->n_integers, &c->n_addresses, &c->n_types, &c->combiner) ==
               MPI_SUCCESS;
#endif
}

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    const int length = vsnprintf(t->at, (size_t)(t->end - t->at), format, list);
    va_end(list);
    if (length < 0 || length >= t->end - t->at)
        t->whole = false;
    else
        t->at += length;
}

static bool is_predefined(int combiner)
{
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static int64_t extent_of(MPI_Datatype type)
{
    MPI_Count lower = 0, extent = 0;

    NEXT(PMPI_Type_get_extent_x)(type, &lower, &extent);
    return (int64_t)extent;
}

static void put_integers(text *t, const int *numbers, int n)
{
    for (int i = 0; i < n; i++)
        put(t, i > 0 ? ",%d" : "%d", numbers[i]);
    put(t, ";");
}

static void put_addresses(text *t, const MPI_Aint *numbers, int n)
{
    for (int i = 0; i < n; i++)
        put(t, i > 0 ? ",%" PRId64 : "%" PRId64, (int64_t)numbers[i]);
    put(t, ";");
}

/* Displacements that count elements. */
static void put_places(text *t, const int *numbers, int n, int64_t extent)
{
    for (int i = 0; i < n; i++)
        put(t, i > 0 ? ",%" PRId64 : "%" PRId64, numbers[i] * extent);
    put(t, ";");
}

static void put_type(text *t, MPI_Datatype type, int depth);

/* The combiners with one type inside, up to that type. */
static void put_simple(text *t, const contents *c)
{
    const int *k = c->integers, n = k[0];
    const int64_t extent = extent_of(c->types[0]);

    switch (c->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        put(t, "C(%d;", n);
        break;
    case MPI_COMBINER_VECTOR:
        put(t, "V(%d;%d;%" PRId64 ";", n, k[1], k[2] * extent);
        break;
    case MPI_COMBINER_HVECTOR:
        put(t, "V(%d;%d;%" PRId64 ";", n, k[1], (int64_t)c->addresses[0]);
        break;
    case MPI_COMBINER_INDEXED:
        put(t, "I(");
        put_integers(t, k + 1, n);
        put_places(t, k + 1 + n, n, extent);
        break;
    case MPI_COMBINER_HINDEXED:
        put(t, "I(");
        put_integers(t, k + 1, n);
        put_addresses(t, c->addresses, n);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        put(t, "B(%d;", k[1]);
        put_places(t, k + 2, n, extent);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        put(t, "B(%d;", k[1]);
        put_addresses(t, c->addresses, n);
        break;
    default:
        t->whole = false;
    }
}

static void put_subarray(text *t, const contents *c)
{
    const int *k = c->integers, n = k[0];

    put(t, "A(");
    for (int part = 0; part < 3; part++)
        put_integers(t, k + 1 + part * n, n);
    put(t, "%d;", k[1 + 3 * n] == MPI_ORDER_FORTRAN);
}

static void put_darray(text *t, const contents *c)
{
    const int *k = c->integers, n = k[2], *kinds = k + 3 + n, *arguments = kinds + n;

    put(t, "D(%d;%d;", k[0], k[1]);
    put_integers(t, k + 3, n);
    for (int i = 0; i < n; i++)
        put(t, i > 0 ? ",%d" : "%d", kinds[i] == MPI_DISTRIBUTE_BLOCK ? 1 : kinds[i] == MPI_DISTRIBUTE_CYCLIC ? 2 : 0);
    put(t, ";");
    for (int i = 0; i < n; i++)
        put(t, i > 0 ? ",%d" : "%d", arguments[i] == MPI_DISTRIBUTE_DFLT_DARG ? -1 : arguments[i]);
    put(t, ";");
    put_integers(t, arguments + n, n);
    put(t, "%d;", k[3 + 4 * n] == MPI_ORDER_FORTRAN);
}

static void put_derived(text *t, const contents *c, int depth)
{
    if (c->combiner == MPI_COMBINER_DUP) {
        put_type(t, c->types[0], depth);
        return;
    }
    if (c->combiner == MPI_COMBINER_STRUCT) {
        put(t, "S(");
        put_integers(t, c->integers + 1, c->integers[0]);
        put_addresses(t, c->addresses, c->integers[0]);
    } else if (c->combiner == MPI_COMBINER_SUBARRAY) {
        put_subarray(t, c);
    } else if (c->combiner == MPI_COMBINER_DARRAY) {
        put_darray(t, c);
    } else if (c->combiner == MPI_COMBINER_RESIZED) {
        put(t, "R(%" PRId64 ";%" PRId64 ";", (int64_t)c->addresses[0], (int64_t)c->addresses[1]);
    } else {
        put_simple(t, c);
    }
    for (int i = 0; i < c->n_types && t->whole; i++) {
        if (i > 0)
            put(t, ";");
        put_type(t, c->types[i], depth);
    }
    put(t, ")");
}

/* The types that are returned are new references. */
static void free_types(contents *c)
{
    contents inner;

    for (int i = 0; i < c->n_types; i++)
        if (envelope(c->types[i], &inner) && !is_predefined(inner.combiner))
            NEXT(PMPI_Type_free)(&c->types[i]);
}

static void put_predefined(text *t, MPI_Datatype type)
{
    MPI_Count size = 0;
    const int64_t extent = extent_of(type);

    NEXT(PMPI_Type_size_x)(type, &size);
    if (size == extent)
        put(t, "%" PRId64, extent);
    else
        put(t, "R(0;%" PRId64 ";%" PRId64 ")", extent, (int64_t)size);
}

static void put_type(text *t, MPI_Datatype type, int depth)
{
    contents c = {.combiner = MPI_COMBINER_NAMED};

    if (depth > DEEPEST || !envelope(type, &c)) {
        t->whole = false;
        return;
    }
    if (is_predefined(c.combiner)) {
        put_predefined(t, type);
        return;
    }
    c.integers = calloc((size_t)c.n_integers + 1, sizeof *c.integers);
    c.addresses = calloc((size_t)c.n_addresses + 1, sizeof *c.addresses);
    c.types = calloc((size_t)c.n_types + 1, sizeof *c.types);
    const bool known = c.integers != NULL && c.addresses != NULL && c.types != NULL && c.n_types > 0 &&
                       NEXT(PMPI_Type_get_contents) != NULL &&
                       NEXT(PMPI_Type_get_contents)(type, c.n_integers, c.n_addresses, c.n_types, c.integers,
                                                    c.addresses, c.types) == MPI_SUCCESS;
    if (known) {
        put_derived(t, &c, depth + 1);
        free_types(&c);
    }
    t->whole = t->whole && known;
    free(c.integers);
    free(c.addresses);
    free(c.types);
}

bool mpiox_trace_view_text(MPI_Datatype type, char *where, int bytes)
{
    text t = {.at = where, .end = where + bytes, .whole = true};

    put_type(&t, type, 0);
    return t.whole;
}
