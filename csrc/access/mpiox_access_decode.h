/*
 * mpiox_access_decode.h - from a datatype's constructor calls to a description, without the cache.
 */
#ifndef MPIOX_ACCESS_DECODE_H
#define MPIOX_ACCESS_DECODE_H

#include <mpi.h>

#include "mpiox_access.h"

int mpiox_access_decode(MPI_Datatype datatype, mpiox_access **out);

#endif
