/*
 * mpiox_typemap_decode.h - from a datatype's constructor calls to a typemap, without the cache.
 */
#ifndef MPIOX_TYPEMAP_DECODE_H
#define MPIOX_TYPEMAP_DECODE_H

#include <mpi.h>

#include "mpiox_typemap.h"

/* A new reference in *out (free it), or MPIOX_E_UNSUPPORTED, MPIOX_E_ARG, MPIOX_E_MPI, MPIOX_E_NOMEM. Local. */
int mpiox_typemap_decode(MPI_Datatype datatype, mpiox_typemap **out);

#endif
