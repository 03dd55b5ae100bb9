/* mpiox_storage_lock.c - see mpiox_storage_lock.h. */
#include "mpiox_storage_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#ifndef F_OFD_SETLKW
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif

static int set_lock(int fd, short type, int64_t offset, int64_t length, bool wait)
{
    struct flock lock;
    int rc;
    memset(&lock, 0, sizeof lock); /* l_pid has to be 0 */
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = offset;
    lock.l_len = length;
    do
        rc = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
    while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno == EINVAL) { /* a kernel without them */
        do
            rc = fcntl(fd, wait ? F_SETLKW : F_SETLK, &lock);
        while (rc != 0 && errno == EINTR);
    }
    return rc;
}

int mpiox_storage_lock(mpiox_storage *storage, bool exclusive, int64_t offset, int64_t length, mpiox_error *error)
{
    if (mpiox_storage_pin(storage, error) != MPIOX_OK) /* until it is unlocked */
        return MPIOX_E_IO;
    if (storage->fd < 0)
        return MPIOX_OK;
    const int mode = fcntl(storage->fd, F_GETFL) & O_ACCMODE;
    const short type = mode == O_RDONLY || (!exclusive && mode != O_WRONLY) ? F_RDLCK : F_WRLCK;
    if (set_lock(storage->fd, type, offset, length, true) == 0)
        return MPIOX_OK;
    const int code = errno;
    mpiox_storage_unpin(storage);
    return mpiox_error_set(error, MPIOX_E_IO, code, offset, length, "lock");
}

void mpiox_storage_unlock(mpiox_storage *storage, int64_t offset, int64_t length)
{
    if (storage->fd >= 0)
        set_lock(storage->fd, F_UNLCK, offset, length, false);
    mpiox_storage_unpin(storage);
}
