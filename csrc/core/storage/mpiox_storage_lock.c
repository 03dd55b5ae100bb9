/* mpiox_storage_lock.c - see mpiox_storage_lock.h. */
#include "mpiox_storage_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#ifndef F_OFD_SETLKW
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif

/* The lock of mpiox_storage_guard(), and the end of all other ones. */
static const int64_t guard_at = (INT64_C(1) << 62) + 1;

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
    if (length == 0 && offset < guard_at)
        length = guard_at - offset;
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
    if (length == 0 && offset < guard_at)
        length = guard_at - offset;
    if (storage->fd >= 0)
        set_lock(storage->fd, F_UNLCK, offset, length, false);
    mpiox_storage_unpin(storage);
}

int mpiox_storage_guard(int fd, mpiox_storage_guarding how)
{
    enum { WRITERS, DELEGATES, READERS, CHANGES, CLOSES }; /* bytes, from guard_at on */
    static const struct {
        short type;
        int at;
        bool waits;
    } locks[] = {[MPIOX_GUARD_SHARED] = {F_RDLCK, WRITERS, true},    [MPIOX_GUARD_READS] = {F_RDLCK, READERS, true},
                 [MPIOX_GUARD_ALONE] = {F_WRLCK, WRITERS, false},    [MPIOX_GUARD_REMOVE] = {F_WRLCK, WRITERS, false},
                 [MPIOX_GUARD_BEHIND] = {F_RDLCK, DELEGATES, false}, [MPIOX_GUARD_CHANGE] = {F_WRLCK, CHANGES, true},
                 [MPIOX_GUARD_NAME] = {F_WRLCK, CHANGES, false},     [MPIOX_GUARD_CHANGED] = {F_UNLCK, CHANGES, false},
                 [MPIOX_GUARD_CLOSED] = {F_RDLCK, CLOSES, false},    [MPIOX_GUARD_REOPENED] = {F_UNLCK, CLOSES, false}};
    struct flock asked = {.l_type = F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = guard_at + (how == MPIOX_GUARD_IS_CLOSED ? CLOSES : WRITERS),
                          .l_len = how == MPIOX_GUARD_LOOK ? 2 : 1};
    if (how == MPIOX_GUARD_LOOK || how == MPIOX_GUARD_OTHERS || how == MPIOX_GUARD_IS_CLOSED)
        return fcntl(fd, F_OFD_GETLK, &asked) != 0 ? errno : asked.l_type == F_UNLCK ? 0 : EAGAIN;
    if (how == MPIOX_GUARD_ALONE)
        (void)set_lock(fd, F_UNLCK, guard_at, 1, false);
    if (set_lock(fd, locks[how].type, guard_at + locks[how].at, 1, locks[how].waits) == 0 &&
        (how != MPIOX_GUARD_REMOVE || set_lock(fd, F_WRLCK, guard_at + READERS, 1, false) == 0))
        return 0;
    return errno == EACCES ? EAGAIN : errno;
}
