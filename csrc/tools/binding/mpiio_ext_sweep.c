/* mpiio_ext_sweep.c - the sweep line of the log analytics, for Python; it only passes on. */
#include "mpiio_ext_tools.h"
#include "mpiox_sweep.h"

int mpiio_ext_sweep(const int64_t *group, const double *start, const double *end, int64_t n, double *exclusive,
                    double *since, int8_t *state)
{
    return mpiox_sweep(group, start, end, n, exclusive, since, state);
}
