/*
 * mpiox_storage.h - how bytes reach a file: a vtable with interchangeable back ends.
 *
 * Back ends: posix (pread/pwrite, preadv/pwritev), memory (tests), fault (wraps another one; errors, short transfers
 * and delays by rule, for tests). Blocking; a handle is used by one thread at a time; no MPI.
 */
#ifndef MPIOX_STORAGE_H
#define MPIOX_STORAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mpiox_error.h"

typedef struct mpiox_storage mpiox_storage;

typedef struct mpiox_storage_backend {
    const char *name;
    /* One system call's worth: transfer up to sum(iov) bytes at offset; returns bytes moved (may be short, 0 = end of
     * file on read) or -errno. */
    int64_t (*write_some)(mpiox_storage *storage, const struct iovec *iov, int iov_count, int64_t offset);
    int64_t (*read_some)(mpiox_storage *storage, const struct iovec *iov, int iov_count, int64_t offset);
    int (*close)(mpiox_storage *storage); /* 0 or -errno; frees the back end's own state */
} mpiox_storage_backend;

typedef struct mpiox_storage_counters { /* since open */
    int64_t write_requests, write_bytes, read_requests, read_bytes;
    int64_t request_size_log2[48]; /* histogram of system-call sizes: bucket k counts sizes in [2^k, 2^(k+1)) */
} mpiox_storage_counters;

struct mpiox_storage {
    const mpiox_storage_backend *backend;
    int fd; /* of the posix back end (wrapped or not), else -1 */
    void *state;
    mpiox_storage_counters counters;
};

/* flags: as open(2), O_CREAT never. The environment variable MPIOX_FAULT (see mpiox_fault.h) wraps the back end.
 * 0, or MPIOX_E_IO, MPIOX_E_NOMEM, or MPIOX_E_ARG (bad MPIOX_FAULT) with *error filled. */
int mpiox_storage_open(const char *path, int flags, int rank, mpiox_storage **out, mpiox_error *error);
/* A new, empty file in memory that never grows beyond limit_bytes: writes past it end with ENOSPC. 0 or MPIOX_E_NOMEM.
 * Meant for tests; reading a hole yields zeros. */
int mpiox_storage_open_memory(int64_t limit_bytes, mpiox_storage **out);
/* Its bytes (valid until the next write) and their number. NULL when the back end is not memory. */
const void *mpiox_storage_memory(const mpiox_storage *storage, int64_t *bytes);
/* Frees the handle in any case. NULL-safe; 0 or MPIOX_E_IO (errno is set). */
int mpiox_storage_close(mpiox_storage *storage);

/* All of `length` bytes or an error: goes on after short writes and EINTR, keeps to IOV_MAX vectors and the kernel's
 * limit of 0x7ffff000 bytes per call; a write of 0 bytes is ENOSPC. error->offset/length is what did not arrive.
 * Negative lengths or counts, and ranges beyond INT64_MAX, are MPIOX_E_ARG. */
int mpiox_storage_write(mpiox_storage *storage, const void *buffer, int64_t length, int64_t offset, mpiox_error *error);
int mpiox_storage_writev(mpiox_storage *storage, const struct iovec *iov, int iov_count, int64_t offset,
                         mpiox_error *error);
/* Bring what this handle wrote to stable storage (fsync). Blocking; 0 or MPIOX_E_IO. Nothing to do without a descriptor. */
int mpiox_storage_sync(mpiox_storage *storage, mpiox_error *error);
/* *done = bytes read: less than length only at end of file. */
int mpiox_storage_read(mpiox_storage *storage, void *buffer, int64_t length, int64_t offset, int64_t *done,
                       mpiox_error *error);
int mpiox_storage_readv(mpiox_storage *storage, const struct iovec *iov, int iov_count, int64_t offset, int64_t *done,
                        mpiox_error *error);

/* A shared mapping of part of the file, for storing many small runs. data points at the first byte asked for. */
typedef struct mpiox_storage_mapping {
    void *data;
    void *base;
    int64_t bytes; /* of the whole mapping from base on */
} mpiox_storage_mapping;

/* Map `length` bytes from `offset`, all inside the file's present size and with their space reserved. MPIOX_E_UNSUPPORTED
 * when this handle, file system or free space does not allow it: the caller then writes by requests. Only for file systems
 * whose page cache is coherent with read and write. */
int mpiox_storage_map(mpiox_storage *storage, int64_t offset, int64_t length, mpiox_storage_mapping *out);
/* `written`: bytes stored, for the counters (one request). */
void mpiox_storage_unmap(mpiox_storage *storage, mpiox_storage_mapping *mapping, int64_t written);

#endif
