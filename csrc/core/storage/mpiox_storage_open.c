/* mpiox_storage_open.c - open a file, in tests behind the rules of MPIOX_FAULT when there are any. */
#include <stddef.h>

#include "mpiox_fault.h"
#include "mpiox_storage_internal.h"
#include "mpiox_storage_pool.h"
#include "mpiox_testing.h"

int mpiox_storage_open_stack(const char *path, int flags, int rank, const mpiox_storage_options *options,
                             mpiox_storage **out, mpiox_error *error)
{
#ifdef MPIOX_TESTING
    const char *rules = mpiox_testing_variable("MPIOX_FAULT");
    if (rules != NULL)
        return mpiox_fault_open(rules, path, flags, rank, options, out, error);
#endif
    return mpiox_storage_open_plain(path, flags, rank, options, out, error);
}

int mpiox_storage_open(const char *path, int flags, int rank, const mpiox_storage_options *options, mpiox_storage **out,
                       mpiox_error *error)
{
    *out = NULL;
    const int code = mpiox_storage_open_stack(path, flags, rank, options, out, error);
    if (code == MPIOX_OK && (*out)->backend->mappable) /* posix, with or without a ring */
        mpiox_storage_pool_add(*out, path, flags, options && options->only_writes);
    return code;
}
