/*
 * mpiox_access_mpi.h - from an MPI datatype to an access description.
 *
 * Decodes every combiner by MPI_Type_get_envelope/get_contents (large-count forms where the MPI has them). The result
 * is cached on derived types as an attribute, dropped when the type is freed, so that a second use costs one look-up.
 */
#ifndef MPIOX_ACCESS_MPI_H
#define MPIOX_ACCESS_MPI_H

#include <mpi.h>

#include "mpiox_access.h"

/* New reference in *out (free it). Local, calls PMPI_* only. MPIOX_E_UNSUPPORTED for a combiner it does not know,
 * MPIOX_E_MPI when an MPI call fails. */
int mpiox_access_from_datatype(MPI_Datatype datatype, mpiox_access **out);

/* Release the attribute key; while MPI_Finalize runs. A later need makes another one. */
void mpiox_access_mpi_finalize(void);

#endif
