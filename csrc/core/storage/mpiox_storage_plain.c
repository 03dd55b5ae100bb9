/*
 * mpiox_storage_plain.c - from a path and options to a stack of back ends: direct( io_uring or posix ).
 *
 * An option that this build, kernel or file system does not offer is not an error: the data reaches the file by other
 * means. But rank 0 reports it once per process, for the user who set the hint.
 *
 * `auto` is posix that makes a ring when a list of reads must wait for a device (see mpiox_storage_uring.c for the
 * reason).
 */
#include <stddef.h>

#include "mpiox_storage_internal.h"

static void choose_ring(mpiox_storage *storage, int rank, const mpiox_storage_options *options)
{
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    const char *reason = NULL;
    bool automatic = options->kind == MPIOX_STORAGE_AUTO;
    if (options->kind == MPIOX_STORAGE_POSIX)
        return;
    if (!mpiox_storage_add_ring(storage, options->io_uring_depth, automatic, &reason) && !automatic)
        mpiox_storage_report(&reported, rank, "io_uring is not used, but posix", reason);
}

int mpiox_storage_open_plain(const char *path, int flags, int rank, const mpiox_storage_options *options,
                             mpiox_storage **out, mpiox_error *error)
{
    static const mpiox_storage_options defaults = {.kind = MPIOX_STORAGE_AUTO};
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    const char *reason = NULL;
    int code = mpiox_storage_open_posix(path, flags, out, error);
    if (code != MPIOX_OK)
        return code;
    options = options != NULL ? options : &defaults;
    choose_ring(*out, rank, options);
    if ((options->direct_read || options->direct_write) &&
        !mpiox_storage_add_direct(out, path, flags, rank, options, &reason))
        mpiox_storage_report(&reported, rank, "direct I/O is not used, but the page cache", reason);
    return MPIOX_OK;
}
