/* mpiio_ext_pioneer.c - what the phases of PIONEER do in C, for Python; everything here only passes on. */
#include "mpiio_ext.h"
#include "mpiox_diff.h"

int mpiio_ext_diff(const int32_t *a, int64_t n, const int32_t *b, int64_t m, int32_t symbols, int32_t effort,
                   unsigned char *common_a, unsigned char *common_b, int64_t *distance, int *minimal)
{
    return mpiox_diff(a, n, b, m, symbols, effort, common_a, common_b, distance, minimal);
}
