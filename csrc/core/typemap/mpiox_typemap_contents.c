/*
 * mpiox_typemap_contents.c - MPI_Type_get_envelope and MPI_Type_get_contents behind one small reader.
 *
 * MPI-4 added forms that can describe types made by large-count constructors; the old forms fail on those (MPICH ends
 * the job). The new forms are used where the MPI library has them, and nothing else in this library asks MPI for an
 * envelope. Each derived handle that MPI returns is a new reference and is freed.
 */
#include <stdlib.h>

#include "mpiox_has.h"
#include "mpiox_typemap_contents.h"

bool mpiox_contents_are_predefined(const mpiox_contents *c)
{
    return c->combiner == MPI_COMBINER_NAMED || c->combiner == MPI_COMBINER_F90_REAL ||
           c->combiner == MPI_COMBINER_F90_COMPLEX || c->combiner == MPI_COMBINER_F90_INTEGER;
}

#if MPI_VERSION >= 4
static int large_envelope(MPI_Datatype datatype, mpiox_contents *c)
{
    MPI_Count integers, addresses, counts, types;
    if (PMPI_Type_get_envelope_c(datatype, &integers, &addresses, &counts, &types, &c->combiner) != MPI_SUCCESS) {
        return MPIOX_E_MPI;
    }
    c->n_integers = integers;
    c->n_addresses = addresses;
    c->n_counts = counts;
    c->n_types = types;
    return MPIOX_OK;
}
#endif

int mpiox_contents_envelope(MPI_Datatype datatype, mpiox_contents *c)
{
#if MPI_VERSION >= 4
    if (MPIOX_HAS(PMPI_Type_get_envelope_c)) {
        return large_envelope(datatype, c);
    }
#endif
    int integers, addresses, types;
    if (PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &c->combiner) != MPI_SUCCESS) {
        return MPIOX_E_MPI;
    }
    c->n_counts = 0;
    c->n_integers = integers;
    c->n_addresses = addresses;
    c->n_types = types;
    return MPIOX_OK;
}

bool mpiox_contents_is_predefined(MPI_Datatype datatype)
{
    mpiox_contents envelope = {.combiner = MPI_COMBINER_NAMED};
    return mpiox_contents_envelope(datatype, &envelope) == MPIOX_OK && mpiox_contents_are_predefined(&envelope);
}

static int get_contents(MPI_Datatype datatype, mpiox_contents *c)
{
#if MPI_VERSION >= 4
    if (MPIOX_HAS(PMPI_Type_get_contents_c)) {
        const int result = PMPI_Type_get_contents_c(datatype, c->n_integers, c->n_addresses, c->n_counts, c->n_types,
                                                    c->integers, c->addresses, c->counts, c->types);
        return result == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
    }
#endif
    const int code = PMPI_Type_get_contents(datatype, (int)c->n_integers, (int)c->n_addresses, (int)c->n_types,
                                            c->integers, c->addresses, c->types);
    return code == MPI_SUCCESS ? MPIOX_OK : MPIOX_E_MPI;
}

/* Lists of addresses: MPI writes into the room that the description will have. */
static bool make_room(mpiox_contents *c)
{
    _Static_assert(sizeof(MPI_Aint) == sizeof(int64_t), "addresses are displacements as they are");
    const bool list = c->combiner == MPI_COMBINER_HINDEXED || c->combiner == MPI_COMBINER_HINDEXED_BLOCK;
    if (!list || c->n_counts > 0 || c->n_addresses == 0 || c->n_integers > c->n_addresses + 1 ||
        mpiox_items_room(c->n_addresses, &c->items) != MPIOX_OK) {
        return false;
    }
    c->addresses = (MPI_Aint *)(void *)c->items.displacements;
    c->integers = c->items.lengths;
    return true;
}

int mpiox_contents_get(MPI_Datatype datatype, mpiox_contents *c)
{
    *c = (mpiox_contents){.combiner = MPI_COMBINER_NAMED};
    int code = mpiox_contents_envelope(datatype, c);
    if (code != MPIOX_OK || mpiox_contents_are_predefined(c)) {
        c->n_types = 0;
        return code;
    }
    if (!make_room(c)) {
        c->integers = malloc((size_t)(c->n_integers + 1) * sizeof *c->integers);
        c->addresses = malloc((size_t)(c->n_addresses + 1) * sizeof *c->addresses);
    }
    c->counts = malloc((size_t)(c->n_counts + 1) * sizeof *c->counts);
    c->types = malloc((size_t)(c->n_types + 1) * sizeof(MPI_Datatype));
    if (c->integers == NULL || c->addresses == NULL || c->counts == NULL || c->types == NULL) {
        c->n_types = 0; /* no handles were returned yet */
        mpiox_contents_free(c);
        return MPIOX_E_NOMEM;
    }
    code = get_contents(datatype, c);
    if (code != MPIOX_OK) {
        c->n_types = 0;
        mpiox_contents_free(c);
    }
    return code;
}

void mpiox_contents_free(mpiox_contents *c)
{
    for (int64_t i = 0; i < c->n_types; i++) {
        mpiox_contents member = {.combiner = MPI_COMBINER_NAMED};
        if (mpiox_contents_envelope(c->types[i], &member) == MPIOX_OK && !mpiox_contents_are_predefined(&member)) {
            PMPI_Type_free(&c->types[i]);
        }
    }
    if (c->items.n > 0) { /* they lie, or lay, in the room */
        mpiox_items_free(&c->items);
    } else {
        free(c->integers);
        free(c->addresses);
    }
    free(c->counts);
    free(c->types);
    *c = (mpiox_contents){.combiner = MPI_COMBINER_NAMED};
}

int mpiox_contents_integer(mpiox_contents *c)
{
    if (c->next_integer >= c->n_integers) {
        c->exhausted = true;
        return 0;
    }
    return c->integers[c->next_integer++];
}

int64_t mpiox_contents_count(mpiox_contents *c)
{
    if (c->n_counts == 0) {
        return mpiox_contents_integer(c);
    }
    if (c->next_count >= c->n_counts) {
        c->exhausted = true;
        return 0;
    }
    return c->counts[c->next_count++];
}

int64_t mpiox_contents_address(mpiox_contents *c)
{
    if (c->n_counts > 0 || c->n_addresses == 0) { /* the _INTEGER combiners of old Fortran keep addresses as integers */
        return mpiox_contents_count(c);
    }
    if (c->next_address >= c->n_addresses) {
        c->exhausted = true;
        return 0;
    }
    return c->addresses[c->next_address++];
}
