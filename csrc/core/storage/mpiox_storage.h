/*
 * mpiox_storage.h - how bytes reach a file: a vtable with interchangeable back ends.
 *
 * Back ends: posix (pread/pwrite, preadv/pwritev); io_uring (posix, with lists of pieces in flight together); auto
 * (posix or a ring, list by list); direct (wraps any of these: whole blocks past the page cache); fault (wraps any of
 * them; errors, short transfers and delays by rule, for tests); the back end of a container (mpiox_storage_container.h:
 * spreads a file over several, each with a stack of these back ends). Offsets and lengths are bytes. Local and
 * blocking; no MPI.
 *
 * Threads: several threads may use one handle at once, except to open and close it. Requests of different threads that
 * overlap are not ordered. Counters are exact once the threads have finished.
 */
#ifndef MPIOX_STORAGE_H
#define MPIOX_STORAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "mpiox_error.h"

typedef struct mpiox_storage mpiox_storage;

/* One independent call of a batch. */
typedef struct mpiox_storage_call {
    const struct iovec *iov; /* [iov_count] memory; borrowed */
    int iov_count, fd;       /* fd: another descriptor than the handle's, or -1 */
    int64_t offset;          /* in the file */
    int64_t moved;           /* result, as of transfer(); or MPIOX_STORAGE_NOT_STARTED */
    bool skip;               /* `moved` is set already: do not make the call */
} mpiox_storage_call;

#define MPIOX_STORAGE_NOT_STARTED INT64_MIN /* the back end did nothing; the caller makes the call by transfer() */

typedef struct mpiox_storage_backend {
    const char *name; /* static text */
    /* Make one system call: move up to sum(iov) bytes at offset; returns bytes moved (may be short, 0 = end of file on
     * read) or -errno. */
    int64_t (*transfer)(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count, int64_t offset);
    int (*close)(mpiox_storage *storage); /* 0 or -errno; frees the back end's own state */
    /* Make calls together, in any order. The caller has set every `moved` to NOT_STARTED; many() sets it for each call
     * that it made. Nothing is in flight on return; after a call has failed, later calls may stay NOT_STARTED. NULL:
     * the caller makes them one by one. */
    void (*many)(mpiox_storage *storage, bool write, mpiox_storage_call *calls, int count);
    /* The functions of these names, for a file with more than one descriptor, else NULL; 0 or -errno. */
    int (*sync)(mpiox_storage *storage);
    int (*reserve)(mpiox_storage *storage, int64_t bytes);
    int (*resize)(mpiox_storage *storage, int64_t bytes, int part, int parts);
    int (*size)(mpiox_storage *storage, int64_t *bytes);
    int (*refresh)(mpiox_storage *storage);
    /* For a file stored as several: the number of the part with that byte, and the word for a part, for messages. NULL:
     * one file. */
    int32_t (*part_of)(const mpiox_storage *storage, int64_t offset);
    const char *part;
    bool mappable; /* a mapping of fd may be used beside the requests */
    bool separate; /* pieces that touch each other stay separate calls */
} mpiox_storage_backend;

typedef struct mpiox_storage_counters { /* since open */
    _Atomic int64_t write_requests, write_bytes, read_requests, read_bytes;
    _Atomic int64_t request_size_log2[48]; /* histogram of request sizes: bucket k counts sizes in [2^k, 2^(k+1)) */
} mpiox_storage_counters;

struct mpiox_storage {
    const mpiox_storage_backend *backend; /* static */
    int fd; /* descriptor of the posix back end (wrapped or not), else -1; may change while the handle is not pinned */
    struct mpiox_storage_pooled *pooled; /* how to open the descriptor again; NULL: it stays open */
    bool exact;                          /* nothing is read ahead (mpiox_storage_refresh.h) */
    int64_t most_written;                /* bytes of one system call that writes one piece; 0: any */
    void *state;                         /* the back end's own; close() frees it */
    mpiox_storage_counters counters;     /* of this handle */
};

typedef enum mpiox_storage_kind {
    MPIOX_STORAGE_AUTO = 0,
    MPIOX_STORAGE_POSIX,
    MPIOX_STORAGE_IO_URING
} mpiox_storage_kind;

typedef struct mpiox_storage_options { /* all zero: the defaults */
    mpiox_storage_kind kind;
    int32_t io_uring_depth;         /* requests in flight at most; 0 = 64 */
    bool direct_read, direct_write; /* whole blocks go past the page cache, where the file system can */
    bool changing;                  /* the program may change memory during a write: direct writes use a copy */
    bool only_writes;               /* no caller reads through a handle that was opened for both */
} mpiox_storage_options;

/* flags: as open(2), O_CREAT never. options: NULL = defaults. If an option is not possible (io_uring not built in or
 * refused by the kernel, no direct I/O on this file system), posix and the page cache replace it, and rank 0 reports
 * this once on standard error. In a library for tests MPIOX_FAULT (see mpiox_fault.h) wraps the back end. 0, or
 * MPIOX_E_IO, MPIOX_E_NOMEM, or MPIOX_E_ARG (bad MPIOX_FAULT) with *error filled. */
int mpiox_storage_open(const char *path, int flags, int rank, const mpiox_storage_options *options, mpiox_storage **out,
                       mpiox_error *error);
/* Frees the handle in any case. NULL-safe; 0 or MPIOX_E_IO (errno is set). */
int mpiox_storage_close(mpiox_storage *storage);

/* Until mpiox_storage_unpin(), storage->fd is the file's descriptor and does not change (mpiox_storage_pool.h). The
 * functions below pin by themselves. Blocking; 0, or MPIOX_E_IO: then the handle is not pinned. */
int mpiox_storage_pin(mpiox_storage *storage, mpiox_error *error);
void mpiox_storage_unpin(mpiox_storage *storage);
/* The program, or its MPI library, is about to open a file: if few descriptors are left, close those of handles that
 * are not in use. Local. */
void mpiox_storage_make_way(void);
/* Can the process open so many more descriptors (at most 32), after it has closed those of handles that are not in use?
 * Local. */
bool mpiox_storage_has_room(int descriptors);

/* Move all of `length` bytes or return an error: continues after short writes and EINTR, and obeys IOV_MAX vectors and
 * the kernel's limit of 0x7ffff000 bytes per call; a write of 0 bytes is ENOSPC. error->offset/length is the part that
 * did not arrive. Negative lengths or counts, and ranges beyond INT64_MAX, are MPIOX_E_ARG. */
int mpiox_storage_write(mpiox_storage *storage, const void *buffer, int64_t length, int64_t offset, mpiox_error *error);
/* Bring what this handle wrote to stable storage (fsync). Blocking; 0 or MPIOX_E_IO. Nothing to do without a
 * descriptor. */
int mpiox_storage_sync(mpiox_storage *storage, mpiox_error *error);
/* Reserve space for the first `bytes` bytes: the file is at least that long afterwards, its bytes stay. After a failure
 * the file has its old size, and no other space; bytes that other processes have written meanwhile stay, beyond the old
 * end too. On file systems without fallocate(2) libc reads and writes a byte of every block: then no other process may
 * write there, and after a failure the file stays longer. Blocking; 0, MPIOX_E_IO, or MPIOX_E_UNSUPPORTED without a
 * descriptor. */
int mpiox_storage_reserve(mpiox_storage *storage, int64_t bytes, mpiox_error *error);
/* Bytes of the file. Blocking; 0, MPIOX_E_IO, or MPIOX_E_UNSUPPORTED without a descriptor. */
int mpiox_storage_size(mpiox_storage *storage, int64_t *bytes, mpiox_error *error);
/* Set the size of the file (ftruncate), once each of `parts` processes has done its part. Blocking; as above. */
int mpiox_storage_resize(mpiox_storage *storage, int64_t bytes, int part, int parts, mpiox_error *error);
/* *done = bytes read: less than length only at end of file. */
int mpiox_storage_read(mpiox_storage *storage, void *buffer, int64_t length, int64_t offset, int64_t *done,
                       mpiox_error *error);

/* ---- lists ------------------------------------------------------------------------------------------------------- */

typedef struct mpiox_storage_piece {
    void *base;             /* only read from by a write */
    int64_t length, offset; /* bytes; in the file */
} mpiox_storage_piece;

/* Move many pieces in one call. Pieces may come in any order; pieces of a write must not overlap. Pieces that follow
 * each other in the list and in the file become one request. Each piece arrives as by mpiox_storage_write. After an
 * error nothing is in flight any more, every piece before the failed one has arrived completely, error->offset/length
 * is the missing part of the failed piece, and later pieces may have arrived or not. A bad piece (MPIOX_E_ARG) is
 * detected before any byte moves. */
int mpiox_storage_write_list(mpiox_storage *storage, const mpiox_storage_piece *pieces, int64_t count,
                             mpiox_error *error);
/* *end = the lowest file offset at which a piece met the end of the file, INT64_MAX if no piece did: the read has
 * returned all bytes before *end, and no later ones. */
int mpiox_storage_read_list(mpiox_storage *storage, const mpiox_storage_piece *pieces, int64_t count, int64_t *end,
                            mpiox_error *error);

/* A list that the caller fills piece by piece, in the order of a stream. It moves the pieces whenever it has
 * MPIOX_STORAGE_LIST_PIECES of them. Local to one thread; lives on the stack. */
enum { MPIOX_STORAGE_LIST_PIECES = 256 };
typedef struct mpiox_storage_list {
    mpiox_storage *storage; /* borrowed */
    mpiox_error *error;     /* of the caller, which has set its code to MPIOX_OK */
    bool write;             /* false: the list reads */
    int64_t moved;          /* bytes in list order that lie before a write's error or a read's end of the file */
    int64_t count;          /* pieces that have not been moved yet */
    mpiox_storage_piece pieces[MPIOX_STORAGE_LIST_PIECES]; /* the first `count` */
} mpiox_storage_list;

void mpiox_storage_list_begin(mpiox_storage_list *list, mpiox_storage *storage, bool write, mpiox_error *error);
/* A write only reads `base`. False after an error (see *error) or at the end of the file: then no further piece may be
 * added. */
bool mpiox_storage_list_add(mpiox_storage_list *list, void *base, int64_t length, int64_t offset);
/* Move the pieces that have not been moved yet. False as above. */
bool mpiox_storage_list_finish(mpiox_storage_list *list);

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

/* A shared mapping of part of the file, for storing many small runs. data points at the first requested byte. */
typedef struct mpiox_storage_mapping {
    void *data;    /* the first requested byte */
    void *base;    /* start of the mapping: the page of that byte */
    int64_t bytes; /* of the whole mapping from base on */
} mpiox_storage_mapping;

/* Map `length` bytes from `offset`, all inside the file's present size and with their space reserved.
 * MPIOX_E_UNSUPPORTED when this handle, file system or free space does not allow it: the caller then writes by
 * requests. populate: make the pages at once. Only for file systems whose page cache is coherent with read and
 * write. */
int mpiox_storage_map(mpiox_storage *storage, int64_t offset, int64_t length, bool populate,
                      mpiox_storage_mapping *out);
/* `written`: bytes stored, for the counters (one request). */
void mpiox_storage_unmap(mpiox_storage *storage, mpiox_storage_mapping *mapping, int64_t written);

#endif
