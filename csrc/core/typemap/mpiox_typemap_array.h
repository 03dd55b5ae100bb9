/*
 * mpiox_typemap_array.h - typemaps of parts of arrays, as nested loops in file order. Local; no MPI.
 *
 * Source. Subarrays: MPI-4.1, section 5.1.3; distributed arrays: section 5.1.4. Each function returns 0 and a new
 * reference in *out (free it), or MPIOX_E_ARG, MPIOX_E_NOMEM, MPIOX_E_UNSUPPORTED.
 */
#ifndef MPIOX_TYPEMAP_ARRAY_H
#define MPIOX_TYPEMAP_ARRAY_H

#include "mpiox_typemap.h"

typedef enum mpiox_distribution {
    MPIOX_DISTRIBUTE_NONE,
    MPIOX_DISTRIBUTE_BLOCK,
    MPIOX_DISTRIBUTE_CYCLIC
} mpiox_distribution;

/* One dimension of a distributed array. block_items 0: the default (BLOCK: size / processes rounded up; CYCLIC: 1). */
typedef struct mpiox_dimension {
    int64_t size;                    /* items of the whole array */
    mpiox_distribution distribution; /* of the items over processes */
    int64_t block_items;             /* see above */
    int64_t processes;               /* in this dimension, >= 1 */
    int64_t coordinate;              /* of this process, 0 .. processes - 1 */
} mpiox_dimension;

/* Items starts[d] .. starts[d] + subsizes[d] - 1 of each dimension of an array of `element`; dimension 0 varies fastest
 * when fastest_first, else slowest. The extent is that of the whole array. MPIOX_E_ARG for a part outside the array. */
int mpiox_typemap_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                           bool fastest_first, const mpiox_typemap *element, mpiox_typemap **out);

/* One process's items of a distributed array. */
int mpiox_typemap_darray(int ndims, const mpiox_dimension *dimensions, bool fastest_first, const mpiox_typemap *element,
                         mpiox_typemap **out);

#endif
