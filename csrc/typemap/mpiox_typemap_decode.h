/*
 * mpiox_typemap_decode.h - from a datatype's constructor calls to a description, without the cache.
 */
#ifndef MPIOX_TYPEMAP_DECODE_H
#define MPIOX_TYPEMAP_DECODE_H

#include <mpi.h>

#include "mpiox_typemap.h"

int mpiox_typemap_decode(MPI_Datatype datatype, mpiox_typemap **out);

#endif
