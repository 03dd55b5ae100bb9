/*
 * mpiox_storage_internal.h - what the back ends share. Private to csrc/storage.
 */
#ifndef MPIOX_STORAGE_INTERNAL_H
#define MPIOX_STORAGE_INTERNAL_H

#include "mpiox_storage.h"

#define MPIOX_STORAGE_CALL_BYTES INT64_C(0x7ffff000) /* most that Linux moves in one call (MAX_RW_COUNT) */
#define MPIOX_STORAGE_CALL_VECTORS 1024              /* IOV_MAX of Linux (UIO_MAXIOV) */

/* Add one request of `bytes` bytes to the counters. */
void mpiox_storage_count(mpiox_storage *storage, bool write, int64_t bytes);

/* An open posix handle, without MPIOX_FAULT. */
int mpiox_storage_open_posix(const char *path, int flags, mpiox_storage **out, mpiox_error *error);

#endif
