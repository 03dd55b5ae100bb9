/*
 * mpiox_typemap_mpi.h - from an MPI datatype to a typemap.
 *
 * Decodes every combiner by MPI_Type_get_envelope/get_contents (large-count forms where the MPI has them). The result
 * is cached on derived types as an attribute, dropped when the type is freed, so that a second use costs one look-up.
 */
#ifndef MPIOX_TYPEMAP_MPI_H
#define MPIOX_TYPEMAP_MPI_H

#include <mpi.h>

#include "mpiox_typemap.h"

/* New reference in *out (free it). Local, calls PMPI_* only. MPIOX_E_UNSUPPORTED: an unknown combiner; MPIOX_E_MPI: an
 * MPI call failed. */
int mpiox_typemap_from_datatype(MPI_Datatype datatype, mpiox_typemap **out);

/* Release the attribute key; while MPI_Finalize runs. A later call makes a new key. */
void mpiox_typemap_mpi_finalize(void);

#endif
