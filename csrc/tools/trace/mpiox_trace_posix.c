/*
 * mpiox_trace_posix.c - calls on descriptors: open, close, transfers, positions.
 *
 * Only descriptors whose opening was recorded count: sockets, pipes, the standard streams and the system's files pass
 * at the cost of one look-up. On 64-bit Linux the 64 variants are the same functions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mpiox_recording.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_descriptors.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_sink.h"
#include "mpiox_trace_wrap.h"

_Static_assert(sizeof(off_t) == 8 && sizeof(long) == 8, "the 64 variants are taken for the same functions");

/* Whether a call on this descriptor is recorded; then it has been started. */
/* ---- open, close, dup -------------------------------------------------------------------------------------------- */

static int opened(mpiox_tracefile_record *call, int fd, int32_t file, int flags, mode_t mode)
{
    const int error = errno;

    mpiox_trace_stop(call);
    if (fd >= 0)
        mpiox_trace_descriptor_open(fd, file, flags);
    call->handle = fd >= 0 ? fd : MPIOX_TRACEFILE_NONE;
    mpiox_trace_extra(call, MPIOX_KEY_FLAGS, mpiox_tracefile_open_flags(flags, O_DIRECTORY));
    if (flags & O_CREAT)
        mpiox_trace_extra(call, MPIOX_KEY_MODE, mode);
    errno = error;
    mpiox_trace_commit(call, fd);
    return fd;
}

/* The earlier use of the descriptor is over, however it was closed. */
static int unseen(int fd)
{
    if (fd >= 0 && mpiox_trace_self.inside == 0)
        mpiox_trace_descriptor_close(fd);
    return fd;
}

static bool takes_mode(int flags)
{
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

BEHIND(int, open, (const char *, int, ...))
BEHIND(int, openat, (int, const char *, int, ...))
BEHIND(int, creat, (const char *, mode_t))

static int open_recorded(const char *path, int flags, mode_t mode)
{
    const int error = errno;
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_file_number(AT_FDCWD, path) : -1;
    mpiox_tracefile_record call;

    errno = error;
    if (file < 0)
        return unseen(NEXT(open)(path, flags, mode));
    mpiox_trace_start(&call, OP_open, MPIOX_TRACEFILE_POSIX, file);
    return opened(&call, NEXT(open)(path, flags, mode), file, flags, mode);
}

static int openat_recorded(int folder, const char *path, int flags, mode_t mode)
{
    const int error = errno;
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_file_number(folder, path) : -1;
    mpiox_tracefile_record call;

    errno = error;
    if (file < 0)
        return unseen(NEXT(openat)(folder, path, flags, mode));
    mpiox_trace_start(&call, OP_openat, MPIOX_TRACEFILE_POSIX, file);
    return opened(&call, NEXT(openat)(folder, path, flags, mode), file, flags, mode);
}

#define MODE_OF(flags, last, mode)                                                                                     \
    do {                                                                                                               \
        va_list list;                                                                                                  \
        va_start(list, last);                                                                                          \
        mode = takes_mode(flags) ? va_arg(list, mode_t) : 0;                                                           \
        va_end(list);                                                                                                  \
    } while (0)
#define OPEN(name, added)                                                                                              \
    MPIOX_TRACE_EXPORT int name(const char *path, int flags, ...)                                                      \
    {                                                                                                                  \
        mode_t mode;                                                                                                   \
        MODE_OF(flags, flags, mode);                                                                                   \
        return open_recorded(path, flags | (added), mode);                                                             \
    }
#define OPENAT(name, added)                                                                                            \
    MPIOX_TRACE_EXPORT int name(int folder, const char *path, int flags, ...)                                          \
    {                                                                                                                  \
        mode_t mode;                                                                                                   \
        MODE_OF(flags, flags, mode);                                                                                   \
        return openat_recorded(folder, path, flags | (added), mode);                                                   \
    }

OPEN(open, 0)
OPEN(open64, 0)
OPENAT(openat, 0)
OPENAT(openat64, 0)

FRONT(int, __open_2, (const char *path, int flags))
{
    return open_recorded(path, flags, 0);
}
ALIAS(__open64_2, __open_2);

FRONT(int, __openat_2, (int folder, const char *path, int flags))
{
    return openat_recorded(folder, path, flags, 0);
}
ALIAS(__openat64_2, __openat_2);

FRONT(int, creat, (const char *path, mode_t mode))
{
    const int error = errno;
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_file_number(AT_FDCWD, path) : -1;
    mpiox_tracefile_record call;

    errno = error;
    if (file < 0)
        return unseen(NEXT(creat)(path, mode));
    mpiox_trace_start(&call, OP_creat, MPIOX_TRACEFILE_POSIX, file);
    return opened(&call, NEXT(creat)(path, mode), file, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
ALIAS(creat64, creat);

/* The descriptor is forgotten before it is free: another thread may be given it at once. */
WRAP(int, close, (int fd))
{
    mpiox_tracefile_record call;

    if (!mpiox_trace_posix_started(&call, OP_close, fd))
        return NEXT(close)(fd);
    mpiox_trace_descriptor_close(fd);
    const int result = NEXT(close)(fd);
    mpiox_trace_commit(&call, result);
    return result;
}

static int copied(mpiox_tracefile_record *call, int from, int result)
{
    mpiox_trace_stop(call);
    if (result >= 0) {
        mpiox_trace_descriptor_copy(from, result);
        mpiox_trace_extra(call, MPIOX_KEY_HANDLE2, result);
    }
    mpiox_trace_commit(call, result);
    return result;
}

WRAP(int, dup, (int fd))
{
    mpiox_tracefile_record call;

    return mpiox_trace_posix_started(&call, OP_dup, fd) ? copied(&call, fd, NEXT(dup)(fd)) : unseen(NEXT(dup)(fd));
}

WRAP(int, dup2, (int fd, int other))
{
    mpiox_tracefile_record call;

    if (fd == other || !mpiox_trace_posix_started(&call, OP_dup2, fd))
        return fd == other ? NEXT(dup2)(fd, other) : unseen(NEXT(dup2)(fd, other));
    return copied(&call, fd, NEXT(dup2)(fd, other));
}

WRAP(int, dup3, (int fd, int other, int flags))
{
    mpiox_tracefile_record call;

    if (!mpiox_trace_posix_started(&call, OP_dup3, fd))
        return unseen(NEXT(dup3)(fd, other, flags));
    return copied(&call, fd, NEXT(dup3)(fd, other, flags));
}

BEHIND(int, fcntl, (int, int, ...))

static bool is_lock(int command)
{
    return command == F_SETLK || command == F_SETLKW || command == F_GETLK || command == F_OFD_SETLK ||
           command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

/* A recording has waits for locks, and copies of descriptors as those of dup(); a trace is carried out again, which
 * needs copies alone. */
FRONT(int, fcntl, (int fd, int command, ...))
{
    const bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    const bool locks = mpiox_trace_sink_chosen->counts && is_lock(command);
    mpiox_tracefile_record call;
    va_list list;

    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!copies && !locks)
        return NEXT(fcntl)(fd, command, argument);
    if (!mpiox_trace_posix_started(&call, copies && mpiox_trace_sink_chosen->counts ? OP_dup : OP_fcntl, fd))
        return copies ? unseen(NEXT(fcntl)(fd, command, argument)) : NEXT(fcntl)(fd, command, argument);
    mpiox_trace_extra(&call, MPIOX_KEY_COMMAND, command);
    if (copies)
        return copied(&call, fd, NEXT(fcntl)(fd, command, argument));
    const int result = NEXT(fcntl)(fd, command, argument);
    mpiox_trace_commit(&call, result);
    return result;
}
ALIAS(fcntl64, fcntl);

/* ---- transfers --------------------------------------------------------------------------------------------------- */

static int64_t bytes_of(const struct iovec *pieces, int n)
{
    int64_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += (int64_t)pieces[i].iov_len;
    return sum;
}

/* A transfer at the file's position: where it was shows in what was moved. */
static ssize_t moved(mpiox_tracefile_record *call, int64_t size, ssize_t result)
{
    mpiox_trace_stop(call);
    call->offset = mpiox_trace_descriptor_advance((int)call->handle, result);
    call->size = size;
    mpiox_trace_commit(call, result);
    return result;
}

static ssize_t moved_at(mpiox_tracefile_record *call, int64_t size, int64_t offset, ssize_t result)
{
    mpiox_trace_stop(call);
    call->offset = offset;
    call->size = size;
    mpiox_trace_commit(call, result);
    return result;
}

static ssize_t moved_pieces(mpiox_tracefile_record *call, const struct iovec *pieces, int n, int64_t offset,
                            ssize_t result)
{
    mpiox_trace_stop(call);
    mpiox_trace_extra(call, MPIOX_KEY_PIECES, n);
    return offset < 0 ? moved(call, bytes_of(pieces, n), result) : moved_at(call, bytes_of(pieces, n), offset, result);
}

#define TRANSFER(name, buffer_type, write)                                                                             \
    WRAP(ssize_t, name, (int fd, buffer_type buffer, size_t bytes))                                                    \
    {                                                                                                                  \
        const int32_t file = mpiox_trace_enabled() ? mpiox_trace_descriptor_file(fd) : 0;                              \
        mpiox_tracefile_record call;                                                                                   \
        if (file == 0)                                                                                                 \
            return NEXT(name)(fd, buffer, bytes);                                                                      \
        if (mpiox_trace_sink_chosen->counts) {                                                                         \
            const int64_t start = mpiox_trace_now();                                                                   \
            mpiox_recording_doing *doing = mpiox_recording_moves(write, file, start);                                  \
            const ssize_t result = NEXT(name)(fd, buffer, bytes);                                                      \
            mpiox_recording_has_moved(doing);                                                                          \
            const int64_t end = mpiox_trace_now();                                                                     \
            mpiox_trace_accessed(OP_##name, file, write, mpiox_trace_descriptor_advance(fd, result), result, start,    \
                                 end);                                                                                 \
            return result;                                                                                             \
        }                                                                                                              \
        mpiox_trace_start_on(&call, OP_##name, MPIOX_TRACEFILE_POSIX, file, fd);                                       \
        return moved(&call, (int64_t)bytes, NEXT(name)(fd, buffer, bytes));                                            \
    }
#define TRANSFER_AT(name, buffer_type, write)                                                                          \
    WRAP(ssize_t, name, (int fd, buffer_type buffer, size_t bytes, off_t offset))                                      \
    {                                                                                                                  \
        const int32_t file = mpiox_trace_enabled() ? mpiox_trace_descriptor_file(fd) : 0;                              \
        mpiox_tracefile_record call;                                                                                   \
        if (file == 0)                                                                                                 \
            return NEXT(name)(fd, buffer, bytes, offset);                                                              \
        if (mpiox_trace_sink_chosen->counts) {                                                                         \
            const int64_t start = mpiox_trace_now();                                                                   \
            mpiox_recording_doing *doing = mpiox_recording_moves(write, file, start);                                  \
            const ssize_t result = NEXT(name)(fd, buffer, bytes, offset);                                              \
            mpiox_recording_has_moved(doing);                                                                          \
            mpiox_trace_accessed(OP_##name, file, write, offset, result, start, mpiox_trace_now());                    \
            return result;                                                                                             \
        }                                                                                                              \
        mpiox_trace_start_on(&call, OP_##name, MPIOX_TRACEFILE_POSIX, file, fd);                                       \
        return moved_at(&call, (int64_t)bytes, offset, NEXT(name)(fd, buffer, bytes, offset));                         \
    }                                                                                                                  \
    ALIAS(name##64, name);
#define PIECES(name)                                                                                                   \
    WRAP(ssize_t, name, (int fd, const struct iovec *pieces, int n))                                                   \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!mpiox_trace_posix_started(&call, OP_##name, fd))                                                          \
            return NEXT(name)(fd, pieces, n);                                                                          \
        return moved_pieces(&call, pieces, n, -1, NEXT(name)(fd, pieces, n));                                          \
    }
#define PIECES_AT(name)                                                                                                \
    WRAP(ssize_t, name, (int fd, const struct iovec *pieces, int n, off_t offset))                                     \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!mpiox_trace_posix_started(&call, OP_##name, fd))                                                          \
            return NEXT(name)(fd, pieces, n, offset);                                                                  \
        return moved_pieces(&call, pieces, n, offset, NEXT(name)(fd, pieces, n, offset));                              \
    }                                                                                                                  \
    ALIAS(name##64, name);
#define PIECES_AT2(name, other)                                                                                        \
    WRAP(ssize_t, name, (int fd, const struct iovec *pieces, int n, off_t offset, int flags))                          \
    {                                                                                                                  \
        mpiox_tracefile_record call;                                                                                   \
        if (!mpiox_trace_posix_started(&call, OP_##name, fd))                                                          \
            return NEXT(name)(fd, pieces, n, offset, flags);                                                           \
        mpiox_trace_extra(&call, MPIOX_KEY_FLAGS, flags);                                                              \
        return moved_pieces(&call, pieces, n, offset, NEXT(name)(fd, pieces, n, offset, flags));                       \
    }                                                                                                                  \
    ALIAS(other, name);

TRANSFER(read, void *, false)
TRANSFER(write, const void *, true)
TRANSFER_AT(pread, void *, false)
TRANSFER_AT(pwrite, const void *, true)
PIECES(readv)
PIECES(writev)
PIECES_AT(preadv)
PIECES_AT(pwritev)
PIECES_AT2(preadv2, preadv64v2)
PIECES_AT2(pwritev2, pwritev64v2)

/* The C library's ends a program whose buffer is too small. */
WRAP(ssize_t, __read_chk, (int fd, void *buffer, size_t bytes, size_t room))
{
    return bytes > room ? NEXT(__read_chk)(fd, buffer, bytes, room) : read(fd, buffer, bytes);
}

WRAP(ssize_t, __pread_chk, (int fd, void *buffer, size_t bytes, off_t offset, size_t room))
{
    return bytes > room ? NEXT(__pread_chk)(fd, buffer, bytes, offset, room) : pread(fd, buffer, bytes, offset);
}
ALIAS(__pread64_chk, __pread_chk);

/* Whether it is no file of the system, nor something else that has no name here. */
static bool is_recorded(int fd)
{
    const int32_t file = mpiox_trace_descriptor_file(fd);

    return file > 0 && file < MPIOX_TRACE_LEFT_OUT;
}

static ssize_t moved_between(mpiox_tracefile_record *call, int out, int64_t at, int64_t bytes, ssize_t result)
{
    mpiox_trace_stop(call);
    call->size = bytes;
    mpiox_trace_extra(call, MPIOX_KEY_HANDLE2, out);
    if (is_recorded(out))
        mpiox_trace_extra(call, MPIOX_KEY_FILE2, mpiox_trace_descriptor_file(out));
    call->offset = at >= 0 ? at : mpiox_trace_descriptor_advance((int)call->handle, result);
    return result;
}

/* A copy whose source is not recorded, as a file of the system, is a write where calls are only counted: a trace is
 * carried out again, and cannot have it. */
static bool started_write(mpiox_tracefile_record *call, int out)
{
    return mpiox_trace_sink_chosen->counts && mpiox_trace_posix_started(call, OP_pwrite, out);
}

WRAP(ssize_t, sendfile, (int out, int in, off_t *offset, size_t bytes))
{
    const int64_t at = offset != NULL ? *offset : -1;
    mpiox_tracefile_record call;

    if (!is_recorded(in) || !mpiox_trace_posix_started(&call, OP_sendfile, in)) {
        const bool writes = started_write(&call, out);
        const ssize_t sent = NEXT(sendfile)(out, in, offset, bytes);
        const int64_t target = mpiox_trace_descriptor_advance(out, sent);
        return writes ? moved_at(&call, (int64_t)bytes, target, sent) : sent;
    }
    const ssize_t result = moved_between(&call, out, at, (int64_t)bytes, NEXT(sendfile)(out, in, offset, bytes));
    const int64_t out_at = mpiox_trace_descriptor_advance(out, result);
    if (out_at >= 0)
        mpiox_trace_extra(&call, MPIOX_KEY_OFFSET2, out_at);
    mpiox_trace_commit(&call, result);
    return result;
}
ALIAS(sendfile64, sendfile);

WRAP(ssize_t, copy_file_range, (int in, off_t *in_at, int out, off_t *out_at, size_t bytes, unsigned flags))
{
    const int64_t from = in_at != NULL ? *in_at : -1, to = out_at != NULL ? *out_at : -1;
    mpiox_tracefile_record call;

    if (!is_recorded(in) || !mpiox_trace_posix_started(&call, OP_copy_file_range, in)) {
        const bool writes = started_write(&call, out);
        const ssize_t copied = NEXT(copy_file_range)(in, in_at, out, out_at, bytes, flags);
        const int64_t target = to >= 0 ? to : mpiox_trace_descriptor_advance(out, copied);
        return writes ? moved_at(&call, (int64_t)bytes, target, copied) : copied;
    }
    const ssize_t result = moved_between(&call, out, from, (int64_t)bytes,
                                         NEXT(copy_file_range)(in, in_at, out, out_at, bytes, flags));
    const int64_t target = to >= 0 ? to : mpiox_trace_descriptor_advance(out, result);
    if (target >= 0)
        mpiox_trace_extra(&call, MPIOX_KEY_OFFSET2, target);
    mpiox_trace_commit(&call, result);
    return result;
}

/* ---- positions, sizes, mappings ---------------------------------------------------------------------------------- */

WRAP(off_t, lseek, (int fd, off_t offset, int whence))
{
    mpiox_tracefile_record call;

    if (!mpiox_trace_posix_started(&call, OP_lseek, fd))
        return NEXT(lseek)(fd, offset, whence);
    const off_t result = NEXT(lseek)(fd, offset, whence);
    mpiox_trace_stop(&call);
    mpiox_trace_descriptor_seek(fd, result);
    call.offset = offset;
    mpiox_trace_extra(&call, MPIOX_KEY_WHENCE, whence);
    mpiox_trace_commit(&call, result);
    return result;
}
ALIAS(lseek64, lseek);

#define ON_DESCRIPTOR(name, parameters, arguments, at, bytes, key, value)                                              \
    RECORDED(int, name, parameters, arguments, mpiox_trace_posix_started(&call, OP_##name, fd), at, bytes, key, value)

ON_DESCRIPTOR(fsync, (int fd), (fd), NO, NO, -1, 0)
ON_DESCRIPTOR(fdatasync, (int fd), (fd), NO, NO, -1, 0)
ON_DESCRIPTOR(sync_file_range, (int fd, off_t offset, off_t bytes, unsigned flags), (fd, offset, bytes, flags), offset,
              bytes, MPIOX_KEY_FLAGS, flags)
ON_DESCRIPTOR(ftruncate, (int fd, off_t bytes), (fd, bytes), NO, bytes, -1, 0)
ON_DESCRIPTOR(fallocate, (int fd, int mode, off_t offset, off_t bytes), (fd, mode, offset, bytes), offset, bytes,
              MPIOX_KEY_MODE, mode)
ON_DESCRIPTOR(posix_fallocate, (int fd, off_t offset, off_t bytes), (fd, offset, bytes), offset, bytes, -1, 0)
ALIAS(ftruncate64, ftruncate);
ALIAS(fallocate64, fallocate);
ALIAS(posix_fallocate64, posix_fallocate);

WRAP(void *, mmap, (void *address, size_t bytes, int protection, int flags, int fd, off_t offset))
{
    mpiox_tracefile_record call;

    if (fd < 0 || (flags & MAP_ANONYMOUS) || !mpiox_trace_posix_started(&call, OP_mmap, fd))
        return NEXT(mmap)(address, bytes, protection, flags, fd, offset);
    void *result = NEXT(mmap)(address, bytes, protection, flags, fd, offset);
    mpiox_trace_stop(&call);
    call.offset = offset;
    call.size = (int64_t)bytes;
    mpiox_trace_extra(&call, MPIOX_KEY_PROTECTION, protection);
    mpiox_trace_extra(&call, MPIOX_KEY_FLAGS, flags);
    if (result != MAP_FAILED) {
        mpiox_trace_mapping_open((int64_t)(intptr_t)result, (int64_t)bytes, (int32_t)call.file);
        mpiox_trace_extra(&call, MPIOX_KEY_ADDRESS, (int64_t)(intptr_t)result);
    }
    mpiox_trace_commit(&call, result == MAP_FAILED ? -1 : 0);
    return result;
}
ALIAS(mmap64, mmap);

/* `address`: where the mapping begins. */
static bool started_mapping(mpiox_tracefile_record *call, int operation, int64_t address, size_t bytes)
{
    const int32_t file = mpiox_trace_enabled() ? mpiox_trace_handle_file(address) : 0;

    if (file == 0)
        return false;
    mpiox_trace_start(call, operation, MPIOX_TRACEFILE_POSIX, file);
    call->size = (int64_t)bytes;
    mpiox_trace_extra(call, MPIOX_KEY_ADDRESS, address);
    return true;
}

WRAP(int, munmap, (void *address, size_t bytes))
{
    mpiox_tracefile_record call;

    if (!started_mapping(&call, OP_munmap, (int64_t)(intptr_t)address, bytes))
        return NEXT(munmap)(address, bytes);
    mpiox_trace_mapping_close((int64_t)(intptr_t)address);
    const int result = NEXT(munmap)(address, bytes);
    mpiox_trace_commit(&call, result);
    return result;
}

WRAP(int, msync, (void *address, size_t bytes, int flags))
{
    mpiox_tracefile_record call;

    if (!started_mapping(&call, OP_msync, mpiox_trace_mapping_of((int64_t)(intptr_t)address), bytes))
        return NEXT(msync)(address, bytes, flags);
    mpiox_trace_extra(&call, MPIOX_KEY_FLAGS, flags);
    const int result = NEXT(msync)(address, bytes, flags);
    mpiox_trace_commit(&call, result);
    return result;
}
