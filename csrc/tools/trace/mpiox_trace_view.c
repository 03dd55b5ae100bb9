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
BEHIND(int, PMPI_Type_get_contents_c,
       (MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int[], MPI_Aint[], MPI_Count[], MPI_Datatype[]))
#else
BEHIND(int, PMPI_Type_get_envelope, (MPI_Datatype, int *, int *, int *, int *))
BEHIND(int, PMPI_Type_get_contents, (MPI_Datatype, int, int, int, int[], MPI_Aint[], MPI_Datatype[]))
#endif
BEHIND(int, PMPI_Type_get_extent_x, (MPI_Datatype, MPI_Count *, MPI_Count *))
BEHIND(int, PMPI_Type_size_x, (MPI_Datatype, MPI_Count *))
BEHIND(int, PMPI_Type_free, (MPI_Datatype *))

typedef struct text {
    char *at, *end;
    bool whole;
} text;

/* The constructor of a type. `numbers` and `places` are the integers and the addresses that MPI returns for a type that
 * was made without large counts; those of a type with large counts are put into the same order. */
typedef struct contents {
    int combiner;
    int64_t n_integers, n_addresses, n_counts, n_types;
    int64_t *numbers, *places;
    MPI_Datatype *types;
} contents;

static bool envelope(MPI_Datatype type, contents *c)
{
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, types;

    if (NEXT(PMPI_Type_get_envelope_c) == NULL ||
        NEXT(PMPI_Type_get_envelope_c)(type, &integers, &addresses, &counts, &types, &c->combiner) != MPI_SUCCESS)
        return false;
    c->n_counts = counts;
#else
    int integers, addresses, types;

    if (NEXT(PMPI_Type_get_envelope) == NULL ||
        NEXT(PMPI_Type_get_envelope)(type, &integers, &addresses, &types, &c->combiner) != MPI_SUCCESS)
        return false;
    c->n_counts = 0;
#endif
    c->n_integers = integers;
    c->n_addresses = addresses;
    c->n_types = types;
    return true;
}

static int64_t *take(int64_t *to, const MPI_Count *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        *to++ = (int64_t)from[i];
    return to;
}

static int64_t *take_integers(int64_t *to, const int *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        *to++ = from[i];
    return to;
}

/* Large counts hold what are integers and addresses elsewhere. */
static void put_in_order(contents *c, const int *integers, const MPI_Count *counts)
{
    int64_t *to = c->numbers, head = c->n_counts;

    switch (c->combiner) {
    case MPI_COMBINER_SUBARRAY: /* dimensions and order are integers, the sizes between them are not */
        take_integers(take(take_integers(to, integers, 1), counts, c->n_counts), integers + 1, c->n_integers - 1);
        return;
    case MPI_COMBINER_DARRAY:
        take_integers(take(take_integers(to, integers, 3), counts, c->n_counts), integers + 3, c->n_integers - 3);
        return;
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_HINDEXED_BLOCK:
        head = 2;
        break;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
        head = 1 + (int64_t)counts[0];
        break;
    case MPI_COMBINER_RESIZED:
        head = 0;
        break;
    default:
        break;
    }
    take(to, counts, head);
    take(c->places, counts + head, c->n_counts - head);
}

static bool get_contents(MPI_Datatype type, contents *c, int *integers, MPI_Aint *addresses, MPI_Count *counts)
{
#if MPI_VERSION >= 4
    return NEXT(PMPI_Type_get_contents_c) != NULL &&
           NEXT(PMPI_Type_get_contents_c)(type, c->n_integers, c->n_addresses, c->n_counts, c->n_types, integers,
                                          addresses, counts, c->types) == MPI_SUCCESS;
#else
    (void)counts;
    return NEXT(PMPI_Type_get_contents) != NULL &&
           NEXT(PMPI_Type_get_contents)(type, (int)c->n_integers, (int)c->n_addresses, (int)c->n_types, integers,
                                        addresses, c->types) == MPI_SUCCESS;
#endif
}

/* Take a derived type apart; what is allocated is for the caller to free. */
static bool open_type(MPI_Datatype type, contents *c)
{
    int *integers = calloc((size_t)c->n_integers + 1, sizeof *integers);
    MPI_Aint *addresses = calloc((size_t)c->n_addresses + 1, sizeof *addresses);
    MPI_Count *counts = calloc((size_t)c->n_counts + 1, sizeof *counts);

    c->numbers = calloc((size_t)(c->n_integers + c->n_counts) + 1, sizeof *c->numbers);
    c->places = calloc((size_t)(c->n_addresses + c->n_counts) + 1, sizeof *c->places);
    c->types = calloc((size_t)c->n_types + 1, sizeof *c->types);
    const bool known = integers != NULL && addresses != NULL && counts != NULL && c->numbers != NULL &&
                       c->places != NULL && c->types != NULL && c->n_types > 0 &&
                       get_contents(type, c, integers, addresses, counts);
    if (known && c->n_counts > 0) {
        put_in_order(c, integers, counts);
    } else if (known) {
        take_integers(c->numbers, integers, c->n_integers);
        for (int64_t i = 0; i < c->n_addresses; i++)
            c->places[i] = (int64_t)addresses[i];
    }
    free(integers);
    free(addresses);
    free(counts);
    return known;
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

/* `unit`: bytes of what displacements count. */
static void put_numbers(text *t, const int64_t *numbers, int64_t n, int64_t unit)
{
    for (int64_t i = 0; i < n; i++)
        put(t, i > 0 ? ",%" PRId64 : "%" PRId64, numbers[i] * unit);
    put(t, ";");
}

static void put_type(text *t, MPI_Datatype type, int depth);

/* The combiners with one type inside, up to that type. */
static void put_simple(text *t, const contents *c)
{
    const int64_t *k = c->numbers, n = k[0], extent = extent_of(c->types[0]);

    switch (c->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        put(t, "C(%" PRId64 ";", n);
        break;
    case MPI_COMBINER_VECTOR:
        put(t, "V(%" PRId64 ";%" PRId64 ";%" PRId64 ";", n, k[1], k[2] * extent);
        break;
    case MPI_COMBINER_HVECTOR:
        put(t, "V(%" PRId64 ";%" PRId64 ";%" PRId64 ";", n, k[1], c->places[0]);
        break;
    case MPI_COMBINER_INDEXED:
        put(t, "I(");
        put_numbers(t, k + 1, n, 1);
        put_numbers(t, k + 1 + n, n, extent);
        break;
    case MPI_COMBINER_HINDEXED:
        put(t, "I(");
        put_numbers(t, k + 1, n, 1);
        put_numbers(t, c->places, n, 1);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        put(t, "B(%" PRId64 ";", k[1]);
        put_numbers(t, k + 2, n, extent);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        put(t, "B(%" PRId64 ";", k[1]);
        put_numbers(t, c->places, n, 1);
        break;
    default:
        t->whole = false;
    }
}

static void put_subarray(text *t, const contents *c)
{
    const int64_t *k = c->numbers, n = k[0];

    put(t, "A(");
    for (int part = 0; part < 3; part++)
        put_numbers(t, k + 1 + part * n, n, 1);
    put(t, "%d;", k[1 + 3 * n] == MPI_ORDER_FORTRAN);
}

static void put_darray(text *t, const contents *c)
{
    const int64_t *k = c->numbers, n = k[2];
    int64_t *kinds = c->numbers + 3 + n, *arguments = kinds + n;

    for (int64_t i = 0; i < n; i++) {
        kinds[i] = kinds[i] == MPI_DISTRIBUTE_BLOCK ? 1 : kinds[i] == MPI_DISTRIBUTE_CYCLIC ? 2 : 0;
        arguments[i] = arguments[i] == MPI_DISTRIBUTE_DFLT_DARG ? -1 : arguments[i];
    }
    put(t, "D(%" PRId64 ";%" PRId64 ";", k[0], k[1]);
    for (int part = 0; part < 4; part++)
        put_numbers(t, k + 3 + part * n, n, 1);
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
        put_numbers(t, c->numbers + 1, c->numbers[0], 1);
        put_numbers(t, c->places, c->numbers[0], 1);
    } else if (c->combiner == MPI_COMBINER_SUBARRAY) {
        put_subarray(t, c);
    } else if (c->combiner == MPI_COMBINER_DARRAY) {
        put_darray(t, c);
    } else if (c->combiner == MPI_COMBINER_RESIZED) {
        put(t, "R(%" PRId64 ";%" PRId64 ";", c->places[0], c->places[1]);
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
    const bool known = open_type(type, &c);
    if (known) {
        put_derived(t, &c, depth + 1);
        free_types(&c);
    }
    t->whole = t->whole && known;
    free(c.numbers);
    free(c.places);
    free(c.types);
}

bool mpiox_trace_view_text(MPI_Datatype type, char *where, int bytes)
{
    text t = {.at = where, .end = where + bytes, .whole = true};

    put_type(&t, type, 0);
    return t.whole;
}
