/*
 * mpiox_storage_transfer.c - whole transfers made of single system calls, on any back end.
 *
 * Problem.   A system call may move fewer bytes than requested, be interrupted, take at most IOV_MAX vectors and at
 *            most MAX_RW_COUNT bytes. Callers need all bytes, or an error that names the missing ones.
 * Algorithm. A position (vector, bytes of it already done) advances over the caller's vectors, which are never copied
 *            or changed. A vector that is partly done, or larger than one call may be, is finished by calls of its own;
 *            otherwise as many whole vectors go into one call as its limits allow.
 * Guarantee. Bytes are moved in order, so after an error everything before error->offset has arrived. A write that
 *            moves nothing and has no error would loop endlessly: it is reported as ENOSPC, as most tools do.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_count.h"
#include "mpiox_print.h"
#include "mpiox_storage_internal.h"
#include "mpiox_storage_pool.h"

typedef struct position {
    const struct iovec *iov;
    int count;    /* vectors left */
    size_t skip;  /* bytes of the first one already done */
    int64_t left; /* bytes left in all */
    int64_t offset;
} position;

static void skip_empty(position *at)
{
    while (at->count > 0 && at->skip == at->iov->iov_len) {
        at->iov++;
        at->count--;
        at->skip = 0;
    }
}

static void advance(position *at, int64_t bytes)
{
    at->left -= bytes;
    at->offset += bytes;
    while (bytes > 0) {
        size_t rest = at->iov->iov_len - at->skip;
        size_t step = (uint64_t)bytes < rest ? (size_t)bytes : rest;
        at->skip += step;
        bytes -= (int64_t)step;
        skip_empty(at);
    }
}

/* One call: the rest of a vector that is cut, or whole vectors. Returns what the back end returned. */
static int64_t transfer_once(mpiox_storage *storage, bool write, const position *at)
{
    size_t first = at->iov->iov_len - at->skip;
    if (at->skip > 0 || first > (size_t)MPIOX_STORAGE_CALL_BYTES) {
        size_t bytes = first < (size_t)MPIOX_STORAGE_CALL_BYTES ? first : (size_t)MPIOX_STORAGE_CALL_BYTES;
        struct iovec part = {.iov_base = (char *)at->iov->iov_base + at->skip, .iov_len = bytes};
        return storage->backend->transfer(storage, write, &part, 1, at->offset);
    }
    int n = 1;
    size_t bytes = first;
    while (n < at->count && n < MPIOX_STORAGE_CALL_VECTORS &&
           at->iov[n].iov_len <= (size_t)MPIOX_STORAGE_CALL_BYTES - bytes)
        bytes += at->iov[n++].iov_len;
    return storage->backend->transfer(storage, write, at->iov, n, at->offset);
}

/* Relaxed: the sums are read after the threads that add to them have finished. */
void mpiox_storage_count(mpiox_storage *storage, bool write, int64_t bytes)
{
    mpiox_storage_counters *counters = &storage->counters;
    int bucket = bytes > 0 ? 63 - __builtin_clzll((unsigned long long)bytes) : 0;
    mpiox_count(write ? &counters->write_requests : &counters->read_requests, 1);
    mpiox_count(write ? &counters->write_bytes : &counters->read_bytes, bytes);
    mpiox_count(&counters->request_size_log2[bucket < 47 ? bucket : 47], 1);
}

int64_t mpiox_storage_request_bytes(const struct iovec *iov, int iov_count, int64_t offset)
{
    int64_t total = 0;
    if (iov_count < 0 || offset < 0)
        return -1;
    for (int i = 0; i < iov_count; i++) {
        if (iov[i].iov_len > (uint64_t)(INT64_MAX - offset - total))
            return -1;
        total += (int64_t)iov[i].iov_len;
    }
    return total;
}

int mpiox_storage_failed(const mpiox_storage *storage, bool write, int sys_errno, int64_t offset, int64_t length,
                         mpiox_error *error)
{
    const char *what = write ? "write" : "read";
    char text[48];
    if (storage->backend->part_of != NULL) {
        snprintf(text, sizeof text, "%s (%s %d)", what, storage->backend->part,
                 (int)storage->backend->part_of(storage, offset));
        what = text;
    }
    return mpiox_error_set(error, MPIOX_E_IO, sys_errno, offset, length, what);
}

/* Moves bytes until all are done, the file ends (reads), or the back end fails. */
static int transfer(mpiox_storage *storage, bool write, position *at, int64_t *done, mpiox_error *error)
{
    while (at->left > 0) {
        int64_t moved = transfer_once(storage, write, at);
        if (moved == -EINTR)
            continue;
        if (moved == 0 && write)
            moved = -ENOSPC;
        mpiox_storage_count(storage, write, moved > 0 ? moved : 0);
        if (moved < 0)
            return mpiox_storage_failed(storage, write, (int)-moved, at->offset, at->left, error);
        if (moved == 0)
            return MPIOX_OK; /* end of file */
        *done += moved;
        if (moved == at->left) /* as a rule */
            return MPIOX_OK;
        advance(at, moved);
    }
    return MPIOX_OK;
}

static int transfer_pinned(mpiox_storage *storage, bool write, position *at, int64_t *done, mpiox_error *error)
{
    assert(at->offset >= 0 && at->left >= 0 && at->left <= INT64_MAX - at->offset); /* a legal request */
    int code = mpiox_storage_pin(storage, error);
    if (code != MPIOX_OK)
        return mpiox_error_set(error, code, error ? error->sys_errno : 0, at->offset, at->left,
                               write ? "write" : "read");
    code = transfer(storage, write, at, done, error);
    mpiox_storage_unpin(storage);
    return code;
}

int mpiox_storage_finish(mpiox_storage *storage, bool write, const mpiox_storage_call *call, int64_t already,
                         int64_t *done, mpiox_error *error)
{
    position at = {.iov = call->iov, .count = call->iov_count, .offset = call->offset};
    at.left = mpiox_storage_request_bytes(call->iov, call->iov_count, call->offset);
    skip_empty(&at);
    advance(&at, already);
    *done = already;
    return transfer_pinned(storage, write, &at, done, error);
}

static int checked_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int64_t offset, int64_t *done,
                            mpiox_error *error)
{
    position at = {.iov = iov, .count = 1, .offset = offset, .left = (int64_t)iov->iov_len};
    *done = 0;
    if (offset < 0 || at.left > INT64_MAX - offset)
        return mpiox_error_set(error, MPIOX_E_ARG, EINVAL, offset, -1, write ? "write" : "read");
    return transfer_pinned(storage, write, &at, done, error);
}

int mpiox_storage_write(mpiox_storage *storage, const void *buffer, int64_t length, int64_t offset, mpiox_error *error)
{
    int64_t done;
    if (length < 0)
        return mpiox_error_set(error, MPIOX_E_ARG, EINVAL, offset, length, "write");
    struct iovec iov = {.iov_base = (void *)buffer, .iov_len = (size_t)length}; /* only read from */
    return checked_transfer(storage, true, &iov, offset, &done, error);
}

int mpiox_storage_read(mpiox_storage *storage, void *buffer, int64_t length, int64_t offset, int64_t *done,
                       mpiox_error *error)
{
    *done = 0;
    if (length < 0)
        return mpiox_error_set(error, MPIOX_E_ARG, EINVAL, offset, length, "read");
    struct iovec iov = {.iov_base = buffer, .iov_len = (size_t)length};
    return checked_transfer(storage, false, &iov, offset, done, error);
}

int mpiox_storage_sync(mpiox_storage *storage, mpiox_error *error)
{
    if (mpiox_storage_pin(storage, error) != MPIOX_OK)
        return MPIOX_E_IO;
    const int before = mpiox_storage_pool_error(storage);
    int code = storage->backend->sync != NULL               ? -storage->backend->sync(storage)
               : storage->fd < 0 || fsync(storage->fd) == 0 ? 0
                                                            : errno;
    mpiox_storage_unpin(storage);
    code = code == 0 ? before : code;
    return code == 0 ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "fsync");
}

int mpiox_storage_claim_space(int fd, int64_t bytes)
{
    int code;
    assert(fd >= 0 && bytes > 0);
    do
        code = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes) == 0 ? 0 : errno;
    while (code == EINTR);
    return code == EOPNOTSUPP || code == ENOSYS ? 0 : code;
}

int mpiox_storage_grow_file(int fd, int64_t bytes)
{
    int code;
    assert(fd >= 0 && bytes > 0);
    do
        code = posix_fallocate(fd, 0, bytes);
    while (code == EINTR);
    return code;
}

int mpiox_storage_free_claimed(int fd, int64_t unused)
{
    struct stat status;
    (void)unused;
    return fstat(fd, &status) == 0 ? mpiox_storage_cut_file(fd, status.st_size) : errno;
}

/* 0 or an errno. */
static int reserve_file(int fd, int64_t bytes)
{
    int code = bytes == 0 ? 0 : mpiox_storage_claim_space(fd, bytes);
    if (code == 0 && bytes > 0)
        code = mpiox_storage_grow_file(fd, bytes);
    if (code != 0)
        mpiox_storage_free_claimed(fd, bytes);
    return code;
}

int mpiox_storage_reserve(mpiox_storage *storage, int64_t bytes, mpiox_error *error)
{
    if (mpiox_storage_pin(storage, error) != MPIOX_OK)
        return MPIOX_E_IO;
    if (storage->fd < 0) /* then it is not pinned either */
        return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, ENOSYS, 0, bytes, "fallocate");
    const int code = storage->backend->reserve != NULL ? -storage->backend->reserve(storage, bytes)
                                                       : reserve_file(storage->fd, bytes);
    mpiox_storage_unpin(storage);
    return code == 0 ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_IO, code, 0, bytes, "fallocate");
}

int mpiox_storage_cut_file(int fd, int64_t bytes)
{
    int code;
    assert(fd >= 0 && bytes >= 0);
    do
        code = ftruncate(fd, bytes) == 0 ? 0 : errno;
    while (code == EINTR);
    return code;
}

/* 0 or an errno. */
static int size_of(mpiox_storage *storage, int64_t *bytes)
{
    struct stat status;
    if (storage->backend->size != NULL)
        return -storage->backend->size(storage, bytes);
    if (fstat(storage->fd, &status) != 0)
        return errno;
    *bytes = status.st_size;
    return 0;
}

int mpiox_storage_size(mpiox_storage *storage, int64_t *bytes, mpiox_error *error)
{
    if (mpiox_storage_pin(storage, error) != MPIOX_OK)
        return MPIOX_E_IO;
    if (storage->fd < 0) /* then it is not pinned either */
        return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, ENOSYS, -1, -1, "fstat");
    const int code = size_of(storage, bytes);
    mpiox_storage_unpin(storage);
    return code == 0 ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_IO, code, -1, -1, "fstat");
}

int mpiox_storage_resize(mpiox_storage *storage, int64_t bytes, int part, int parts, mpiox_error *error)
{
    int code = 0;
    assert(part >= 0 && part < parts);
    if (mpiox_storage_pin(storage, error) != MPIOX_OK)
        return MPIOX_E_IO;
    if (storage->fd < 0) /* then it is not pinned either */
        return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, ENOSYS, -1, bytes, "ftruncate");
    if (storage->backend->resize != NULL)
        code = -storage->backend->resize(storage, bytes, part, parts);
    else if (part == 0)
        code = mpiox_storage_cut_file(storage->fd, bytes);
    mpiox_storage_unpin(storage);
    return code == 0 ? MPIOX_OK : mpiox_error_set(error, MPIOX_E_IO, code, -1, bytes, "ftruncate");
}

int mpiox_storage_close(mpiox_storage *storage)
{
    if (storage == NULL)
        return MPIOX_OK;
    const int before = mpiox_storage_pool_remove(storage);
    int rc = storage->backend->close(storage);
    free(storage);
    rc = before != 0 ? -before : rc;
    if (rc == 0)
        return MPIOX_OK;
    errno = -rc;
    return MPIOX_E_IO;
}

void mpiox_storage_report(atomic_flag *reported, int rank, const char *option, const char *reason)
{
    if (rank == 0 && !atomic_flag_test_and_set(reported))
        mpiox_print("mpiio_ext: %s: %s\n", option, reason);
}
