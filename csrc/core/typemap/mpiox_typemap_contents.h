/*
 * mpiox_typemap_contents.h - how a datatype was built, by MPI, in one form for all MPI versions.
 */
#ifndef MPIOX_TYPEMAP_CONTENTS_H
#define MPIOX_TYPEMAP_CONTENTS_H

#include <mpi.h>

#include "mpiox_typemap.h"
#include "mpiox_typemap_items.h"

/* The arguments of the type's constructor. The reader gets them in the order of the constructor's argument list: small
 * counts from `integers`, addresses from `addresses`; of a type made by a large-count constructor both from `counts`.
 * If the type is a list with an address for each item, `addresses` and `integers` are in `items`, the memory of that
 * list's description. */
typedef struct mpiox_contents {
    int combiner;                                       /* MPI_COMBINER_* */
    int64_t n_integers, n_addresses, n_counts, n_types; /* lengths of the four arrays */
    int *integers;
    MPI_Aint *addresses;
    MPI_Count *counts;
    MPI_Datatype *types;
    mpiox_items items;
    int64_t next_integer, next_address, next_count; /* arguments of each kind that were read */
    bool exhausted; /* more arguments were read than there are: the MPI library violates its standard */
} mpiox_contents;

/* Combiner and numbers only; nothing to free. */
int mpiox_contents_envelope(MPI_Datatype datatype, mpiox_contents *contents);
/* Is it a named type, or one of MPI_Type_create_f90_*? Such handles are never freed. */
bool mpiox_contents_are_predefined(const mpiox_contents *contents);
/* The same for a datatype; false if MPI does not return it. */
bool mpiox_contents_is_predefined(MPI_Datatype datatype);

/* Read all arguments: 0, MPIOX_E_MPI or MPIOX_E_NOMEM, and then nothing is to be freed. Local. */
int mpiox_contents_get(MPI_Datatype datatype, mpiox_contents *contents);
/* Also frees the derived handles among `types`. */
void mpiox_contents_free(mpiox_contents *contents);

/* The next argument of that kind, 0 if there is none (then contents->exhausted is set). Addresses are bytes. */
int mpiox_contents_integer(mpiox_contents *contents);
int64_t mpiox_contents_count(mpiox_contents *contents);
int64_t mpiox_contents_address(mpiox_contents *contents);

#endif
