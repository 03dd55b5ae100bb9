/*
 * mpiox_storage_posix.c - the default back end: pread, pwrite and their vector forms on one descriptor.
 *
 * Offsets are explicit, so the descriptor's file position is never used and threads cannot disturb each other, on one
 * handle or on several.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"
#include "mpiox_storage_pool.h"

_Static_assert(sizeof(off_t) == 8, "file offsets have 64 bits");

int mpiox_storage_cut(const struct iovec *iov, int iov_count, int64_t limit, struct iovec *out, int room)
{
    int n = 0;
    for (; n < iov_count && n < room && limit > 0; n++) {
        out[n] = iov[n];
        if (out[n].iov_len > (uint64_t)limit)
            out[n].iov_len = (size_t)limit;
        limit -= (int64_t)out[n].iov_len;
    }
    return n;
}

int64_t mpiox_storage_posix_call(int fd, bool write, const struct iovec *iov, int iov_count, int64_t offset)
{
    ssize_t moved;
    assert(fd >= 0 && iov_count > 0 && offset >= 0);
    if (write)
        moved = iov_count == 1 ? pwrite(fd, iov->iov_base, iov->iov_len, offset) : pwritev(fd, iov, iov_count, offset);
    else
        moved = iov_count == 1 ? pread(fd, iov->iov_base, iov->iov_len, offset) : preadv(fd, iov, iov_count, offset);
    return moved < 0 ? -errno : moved;
}

/* A piece that is longer than storage->most_written is moved up to the next multiple of that: a short transfer. */
int64_t mpiox_storage_posix_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count,
                                     int64_t offset)
{
    const int64_t most = storage->most_written;
    struct iovec part;
    if (write && most > 0 && iov_count == 1 && (int64_t)iov->iov_len > most) {
        mpiox_storage_cut(iov, 1, most - offset % most, &part, 1);
        iov = &part;
    }
    return mpiox_storage_posix_call(storage->fd, write, iov, iov_count, offset);
}

static int posix_close(mpiox_storage *storage)
{
    /* Linux releases the descriptor even when close() is interrupted: trying again could close somebody else's. */
    return storage->fd < 0 || close(storage->fd) == 0 || errno == EINTR ? 0 : -errno;
}

static const mpiox_storage_backend posix_backend = {
    .name = "posix",
    .transfer = mpiox_storage_posix_transfer,
    .close = posix_close,
    .mappable = true,
};

int mpiox_storage_open_posix(const char *path, int flags, mpiox_storage **out, mpiox_error *error)
{
    *out = NULL;
    mpiox_storage *storage = calloc(1, sizeof *storage);
    if (storage == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, ENOMEM, -1, -1, "open");
    storage->fd = mpiox_storage_pool_open(path, flags);
    if (storage->fd < 0) {
        int saved = -storage->fd;
        free(storage);
        return mpiox_error_set(error, MPIOX_E_IO, saved, -1, -1, "open");
    }
    storage->backend = &posix_backend;
    *out = storage;
    return MPIOX_OK;
}
