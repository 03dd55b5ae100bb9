/*
 * mpiox_storage_refresh.c - see mpiox_storage_refresh.h.
 *
 * Problem.   A client of NFS or of a FUSE file system caches pages, sizes and times of a file, in the kernel and (FUSE)
 *            in a process of its own. There is no call that drops them all.
 * Algorithm. One call after the other, each of which makes one layer query its server again:
 *              fsync      sends this client's writes to the server; GlusterFS' md-cache takes the server's answer for
 *                         the file's new size and times
 *              fallocate  of a byte that stays at its place, without changing the size: GlusterFS' quick-read drops the
 *                         content of a small file, which it otherwise uses without a query for a second, and FUSE drops
 *                         size and times. Needs a handle open for writing; may set the file's time of change
 *              lock       NFS drops its cached pages when a lock is granted (nfs(5), "Using file locks with NFS").
 *                         Its byte lies behind all data, and the lock is shared if the handle can be read
 *              fadvise    the kernel drops the clean pages; after the fsync these are all but those that are just
 *                         being read: hence this call stops reading ahead, which continues after it
 *              statx      AT_STATX_FORCE_SYNC: size and times from the server
 *            Calls that a file system does not know are skipped: only the fsync can fail.
 */
#include "mpiox_storage_refresh.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "mpiox_storage_lock.h"

static const int64_t behind_all_data = INT64_C(1) << 62;

void mpiox_storage_read_exactly(mpiox_storage *storage)
{
    mpiox_error error;
    storage->exact = true;
    if (mpiox_storage_pin(storage, &error) != MPIOX_OK)
        return; /* the next opener does the rest */
    posix_fadvise(storage->fd, 0, 0, POSIX_FADV_RANDOM);
    mpiox_storage_unpin(storage);
}

int mpiox_storage_refresh(mpiox_storage *storage, mpiox_error *error)
{
    const int saved_errno = errno;
    mpiox_error no_locks = {.code = MPIOX_OK};
    struct statx status;

    if (storage->backend->refresh != NULL) {
        const int code = -storage->backend->refresh(storage);
        return code == 0 ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "fsync");
    }
    if (mpiox_storage_sync(storage, error) != MPIOX_OK || mpiox_storage_pin(storage, error) != MPIOX_OK)
        return error->code;
    (void)!fallocate(storage->fd, FALLOC_FL_KEEP_SIZE, 0, 1);
    if (mpiox_storage_lock(storage, false, behind_all_data, 1, &no_locks) == MPIOX_OK)
        mpiox_storage_unlock(storage, behind_all_data, 1);
    posix_fadvise(storage->fd, 0, 0, POSIX_FADV_DONTNEED);
    (void)!statx(storage->fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &status);
    mpiox_storage_unpin(storage);
    errno = saved_errno;
    return MPIOX_OK;
}
