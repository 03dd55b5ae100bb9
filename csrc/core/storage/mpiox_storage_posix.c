/*
 * mpiox_storage_posix.c - the back end that everybody uses: pread, pwrite and their vector forms on one descriptor.
 *
 * Offsets are explicit, so the descriptor's file position is never used and threads cannot disturb each other, on one
 * handle or on several.
 */
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
    if (write)
        moved = iov_count == 1 ? pwrite(fd, iov->iov_base, iov->iov_len, offset) : pwritev(fd, iov, iov_count, offset);
    else
        moved = iov_count == 1 ? pread(fd, iov->iov_base, iov->iov_len, offset) : preadv(fd, iov, iov_count, offset);
    return moved < 0 ? -errno : moved;
}

/* A write in calls that end at multiples of storage->most_written: one request to whoever counts. */
static int64_t write_in_parts(const mpiox_storage *storage, struct iovec part, int64_t offset)
{
    const int64_t most = storage->most_written;
    int64_t left = (int64_t)part.iov_len, done = 0;
    while (left > 0) {
        const int64_t room = most - (offset + done) % most;
        part.iov_len = (size_t)(left < room ? left : room);
        const int64_t moved = mpiox_storage_posix_call(storage->fd, true, &part, 1, offset + done);
        if (moved < 0)
            return done > 0 ? done : moved;
        done += moved;
        left -= moved;
        if (moved < (int64_t)part.iov_len)
            break;
        part.iov_base = (char *)part.iov_base + moved;
    }
    return done;
}

int64_t mpiox_storage_posix_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count,
                                     int64_t offset)
{
    if (write && storage->most_written > 0 && iov_count == 1 && (int64_t)iov->iov_len > storage->most_written)
        return write_in_parts(storage, *iov, offset);
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
