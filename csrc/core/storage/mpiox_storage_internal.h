/* mpiox_storage_internal.h - shared by the back ends, including those of other folders. */
#ifndef MPIOX_STORAGE_INTERNAL_H
#define MPIOX_STORAGE_INTERNAL_H

#include "mpiox_storage.h"

#define MPIOX_STORAGE_CALL_BYTES INT64_C(0x7ffff000) /* most that Linux moves in one call (MAX_RW_COUNT) */
#define MPIOX_STORAGE_CALL_VECTORS 1024              /* IOV_MAX of Linux (UIO_MAXIOV) */

enum { MPIOX_STORAGE_DEPTH = 64 }; /* requests in flight by default */

/* Add one request of `bytes` bytes to the counters. */
void mpiox_storage_count(mpiox_storage *storage, bool write, int64_t bytes);

/* Total bytes of the vectors, or -1 when they are not a legal request at this offset. */
int64_t mpiox_storage_request_bytes(const struct iovec *iov, int iov_count, int64_t offset);

/* Fill in the error of a request that has failed. MPIOX_E_IO. */
int mpiox_storage_failed(const mpiox_storage *storage, bool write, int sys_errno, int64_t offset, int64_t length,
                         mpiox_error *error);
/* Move the rest of a legal request, whose first `already` bytes are done, by as many calls as it takes. Of `call`
 * only vectors and offset count. *done = bytes done in all. 0 or MPIOX_E_IO. */
int mpiox_storage_finish(mpiox_storage *storage, bool write, const mpiox_storage_call *call, int64_t already,
                         int64_t *done, mpiox_error *error);

/* One system call on a descriptor: bytes moved or -errno. */
int64_t mpiox_storage_posix_call(int fd, bool write, const struct iovec *iov, int iov_count, int64_t offset);
/* The same as a back end's transfer. */
int64_t mpiox_storage_posix_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count,
                                     int64_t offset);

/* Copy vectors whose bytes sum up to `limit` at most, the last one shortened; returns how many (up to `room`). */
int mpiox_storage_cut(const struct iovec *iov, int iov_count, int64_t limit, struct iovec *out, int room);

/* open(2), never creating or truncating, closed on exec, repeated on EINTR. The descriptor or -errno. */
int mpiox_storage_descriptor(const char *path, int flags);

/* An open handle by the options, behind MPIOX_FAULT, whose descriptor stays open. */
int mpiox_storage_open_stack(const char *path, int flags, int rank, const mpiox_storage_options *options,
                             mpiox_storage **out, mpiox_error *error);
/* An open handle by the options, without MPIOX_FAULT. */
int mpiox_storage_open_plain(const char *path, int flags, int rank, const mpiox_storage_options *options,
                             mpiox_storage **out, mpiox_error *error);
int mpiox_storage_open_posix(const char *path, int flags, mpiox_storage **out, mpiox_error *error);
/* Give a posix handle a ring; automatic: the ring is made when a list of reads needs it. False, with the reason: no
 * ring is possible, and the handle is unchanged. */
bool mpiox_storage_add_ring(mpiox_storage *storage, int depth, bool automatic, const char **reason);
/* Put direct I/O before an open handle, which it then owns. False (reason): the file has no direct I/O. */
bool mpiox_storage_add_direct(mpiox_storage **storage, const char *path, int flags, int rank,
                              const mpiox_storage_options *options, const char **reason);

/* rename(2) that replaces no file, as far as the file system can. 0 or an errno. */
int mpiox_storage_give_name(const char *from, const char *to);

/* ftruncate(2), repeated on EINTR. 0 or an errno. */
int mpiox_storage_cut_file(int fd, int64_t bytes);

/* The steps of mpiox_storage_reserve(), of `bytes` > 0. 0 or an errno. _claim_space() does not change the size, so that
 * no byte which another process writes meanwhile is beyond it; without fallocate(2) it does nothing. After a failure
 * _free_claimed() frees the space beyond the size that the file has then. Between these two system calls a write may
 * extend the file, and would be cut; MPI forbids such a write during MPI_File_preallocate. */
int mpiox_storage_claim_space(int fd, int64_t bytes);
int mpiox_storage_grow_file(int fd, int64_t bytes);
int mpiox_storage_free_claimed(int fd, int64_t unused);

/* Rank 0 reports once per process (per flag) that an option is not possible. */
void mpiox_storage_report(atomic_flag *reported, int rank, const char *option, const char *reason);

#endif
