/* mpiox_storage_open.c - open a file, behind the rules of MPIOX_FAULT when there are any. */
#include <stdlib.h>

#include "mpiox_fault.h"
#include "mpiox_storage_internal.h"

int mpiox_storage_open(const char *path, int flags, int rank, const mpiox_storage_options *options, mpiox_storage **out,
                       mpiox_error *error)
{
    *out = NULL;
    const char *rules = getenv("MPIOX_FAULT");
    if (rules != NULL && rules[0] != '\0')
        return mpiox_fault_open(rules, path, flags, rank, options, out, error);
    return mpiox_storage_open_plain(path, flags, rank, options, out, error);
}
