/* mpiio_ext_critical_path.c - the sweep line of the log analytics, for Python; only passes arguments on. */
#include "mpiio_ext_tools.h"
#include "mpiox_critical_path.h"

int mpiio_ext_critical_path(const int64_t *group, const double *start, const double *end, int64_t n, double *exclusive,
                            double *since, int8_t *state)
{
    return mpiox_critical_path(group, start, end, n, exclusive, since, state);
}
