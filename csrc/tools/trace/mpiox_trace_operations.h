/*
 * mpiox_trace_operations.h - the operations by number: X(name, layer). Those of MPI are generated.
 *
 * A trace file has the names of those that it uses, so numbers may change from release to release.
 */
#ifndef MPIOX_TRACE_OPERATIONS_H
#define MPIOX_TRACE_OPERATIONS_H

#include "mpiox_trace_mpi_operations.h"
#include "mpiox_tracefile.h"

#define MPIOX_TRACE_POSIX(X)                                                                                           \
    X(open)                                                                                                            \
    X(openat)                                                                                                          \
    X(creat)                                                                                                           \
    X(close)                                                                                                           \
    X(read)                                                                                                            \
    X(write)                                                                                                           \
    X(pread)                                                                                                           \
    X(pwrite)                                                                                                          \
    X(readv)                                                                                                           \
    X(writev)                                                                                                          \
    X(preadv)                                                                                                          \
    X(pwritev)                                                                                                         \
    X(preadv2)                                                                                                         \
    X(pwritev2)                                                                                                        \
    X(lseek)                                                                                                           \
    X(fsync)                                                                                                           \
    X(fdatasync)                                                                                                       \
    X(sync_file_range)                                                                                                 \
    X(ftruncate)                                                                                                       \
    X(truncate)                                                                                                        \
    X(fallocate)                                                                                                       \
    X(posix_fallocate)                                                                                                 \
    X(stat)                                                                                                            \
    X(lstat)                                                                                                           \
    X(fstat)                                                                                                           \
    X(fstatat)                                                                                                         \
    X(statx)                                                                                                           \
    X(access)                                                                                                          \
    X(faccessat)                                                                                                       \
    X(unlink)                                                                                                          \
    X(unlinkat)                                                                                                        \
    X(remove)                                                                                                          \
    X(rename)                                                                                                          \
    X(renameat)                                                                                                        \
    X(mkdir)                                                                                                           \
    X(mkdirat)                                                                                                         \
    X(rmdir)                                                                                                           \
    X(opendir)                                                                                                         \
    X(readdir)                                                                                                         \
    X(closedir)                                                                                                        \
    X(link)                                                                                                            \
    X(symlink)                                                                                                         \
    X(chmod)                                                                                                           \
    X(dup)                                                                                                             \
    X(dup2)                                                                                                            \
    X(dup3)                                                                                                            \
    X(fcntl)                                                                                                           \
    X(mmap)                                                                                                            \
    X(munmap)                                                                                                          \
    X(msync)                                                                                                           \
    X(sendfile)                                                                                                        \
    X(copy_file_range)                                                                                                 \
    X(chown)                                                                                                           \
    X(lchown)                                                                                                          \
    X(utime)                                                                                                           \
    X(utimes)                                                                                                          \
    X(utimensat)                                                                                                       \
    X(readlink)                                                                                                        \
    X(readlinkat)                                                                                                      \
    X(statfs)                                                                                                          \
    X(statvfs)                                                                                                         \
    X(getxattr)                                                                                                        \
    X(setxattr)                                                                                                        \
    X(fchmod)                                                                                                          \
    X(fchown)                                                                                                          \
    X(futimens)                                                                                                        \
    X(flock)                                                                                                           \
    X(posix_fadvise)                                                                                                   \
    X(readahead)                                                                                                       \
    X(fstatfs)                                                                                                         \
    X(fstatvfs)                                                                                                        \
    X(fgetxattr)                                                                                                       \
    X(fsetxattr)                                                                                                       \
    X(dprintf)                                                                                                         \
    X(mkstemp)

#define MPIOX_TRACE_STDIO(X)                                                                                           \
    X(fopen)                                                                                                           \
    X(freopen)                                                                                                         \
    X(fdopen)                                                                                                          \
    X(fclose)                                                                                                          \
    X(fread)                                                                                                           \
    X(fwrite)                                                                                                          \
    X(fseek)                                                                                                           \
    X(fseeko)                                                                                                          \
    X(ftell)                                                                                                           \
    X(ftello)                                                                                                          \
    X(rewind)                                                                                                          \
    X(fflush)                                                                                                          \
    X(fgets)                                                                                                           \
    X(fputs)                                                                                                           \
    X(fputc)                                                                                                           \
    X(fprintf)                                                                                                         \
    X(vfprintf)

enum {
    MPIOX_TRACE_BEFORE_POSIX = MPIOX_TRACEFILE_FIRST - 1,
#define MPIOX_TRACE_NUMBER(name) OP_##name,
    MPIOX_TRACE_POSIX(MPIOX_TRACE_NUMBER) MPIOX_TRACE_BEFORE_STDIO,
    MPIOX_TRACE_BEFORE_STDIO_ = MPIOX_TRACE_BEFORE_STDIO - 1,
    MPIOX_TRACE_STDIO(MPIOX_TRACE_NUMBER) MPIOX_TRACE_BEFORE_MPI,
    MPIOX_TRACE_BEFORE_MPI_ = MPIOX_TRACE_BEFORE_MPI - 1,
    MPIOX_TRACE_MPI(MPIOX_TRACE_NUMBER) MPIOX_TRACE_BEFORE_EVENTS, /* from here on, as they come: the extension's */
    MPIOX_TRACE_EVENTS = MPIOX_TRACE_BEFORE_EVENTS
};

_Static_assert(MPIOX_TRACE_EVENTS <= MPIOX_TRACEFILE_OPERATIONS - 16, "too many operations for one byte");

#endif
