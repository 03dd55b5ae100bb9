/*
 * mpiox_typemap_order.h - the order of the pieces of one element, as MPI requires it of etypes and file types.
 *
 * MPI-4.1, section 14.3 (File Views): their displacements are not negative and do not descend; if the file is open for
 * writing they must not overlap either. Local; no MPI.
 */
#ifndef MPIOX_TYPEMAP_ORDER_H
#define MPIOX_TYPEMAP_ORDER_H

#include "mpiox_typemap.h"

typedef struct mpiox_typemap_order {
    bool reaches_back; /* has bytes before its origin */
    bool descends;     /* a piece begins before its predecessor begins */
    bool overlaps;     /* a piece begins before its predecessor ends; only set if none descends */
} mpiox_typemap_order;

/* Immediate for monotonic descriptions; otherwise one pass over the runs of one element, up to the first that
 * descends. */
mpiox_typemap_order mpiox_typemap_order_of(const mpiox_typemap *map);

#endif
