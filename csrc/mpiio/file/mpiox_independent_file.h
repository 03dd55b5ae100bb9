/*
 * mpiox_independent_file.h - an open file as one rank alone sees it: its view, contiguous transfers, locks, mappings.
 *
 * Every access without other ranks uses it, and so does the window I/O of collectives. Offsets and lengths are bytes.
 * Local and blocking; no MPI. Several threads may use one file at once: the storage allows it, the rest is only read.
 */
#ifndef MPIOX_INDEPENDENT_FILE_H
#define MPIOX_INDEPENDENT_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_hints.h"
#include "mpiox_layout.h"
#include "mpiox_memory.h"
#include "mpiox_stats_paying.h"
#include "mpiox_storage.h"
#include "mpiox_typemap.h"

/* The request of one rank: bytes to move between its memory and the stream of its view. */
typedef struct mpiox_request {
    bool write;                  /* false: the access reads */
    int64_t position;            /* stream position in the view, bytes */
    int64_t length;              /* data bytes of this rank, >= 0 */
    void *buffer;                /* origin of the memory description; not modified by writes */
    const mpiox_typemap *memory; /* borrowed, tiled from `buffer` on; NULL = contiguous */
    int64_t memory_position;     /* data bytes of the memory to skip first; 0 as a rule */
    mpiox_error local_error;     /* code != 0: found before the access began */
} mpiox_request;

typedef struct mpiox_independent_counters {                      /* since open; any thread may raise them */
    atomic_int_least64_t reads, writes;                          /* accesses of at least one byte */
    atomic_int_least64_t bytes_read, bytes_written;              /* data bytes that were moved */
    atomic_int_least64_t sieved, mapped, listed, whole;          /* windows by access method (mpiox_independent.c) */
    atomic_int_least64_t locks;                                  /* file locks of accesses */
    atomic_int_least64_t nanoseconds;                            /* inside accesses */
    atomic_int_least64_t device_written, device_read, device_ns; /* of all accesses of the file, also collective ones */
    mpiox_stats_trail trails[2];                                 /* of reads and of writes; with statistics only */
} mpiox_independent_counters;

/* An access has moved bytes from or to the memory of a GPU, whose driver took `seconds`. */
static inline void mpiox_independent_count_device(mpiox_independent_counters *counters, bool write, int64_t bytes,
                                                  double seconds)
{
    atomic_fetch_add_explicit(write ? &counters->device_written : &counters->device_read, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->device_ns, (int64_t)(1e9 * seconds), memory_order_relaxed);
}

typedef struct mpiox_independent_file { /* everything is borrowed */
    mpiox_storage *storage;             /* of the file */
    const mpiox_typemap *view;          /* size > 0; monotonic, or of a file that is only read (mpiox_overlap.h) */
    int64_t displacement;               /* of the view, bytes */
    int64_t tile_extent; /* 0: tiles of the view follow each other at its extent; else at this one, and may overlap */
    const mpiox_layout *layout;           /* of the file */
    const mpiox_hints *hints;             /* in force */
    bool atomic;                          /* MPI's atomic mode: every access locks its file range */
    bool locked;                          /* the caller has locked the range of this access */
    mpiox_independent_counters *counters; /* raised by each access */
    pthread_mutex_t *threads; /* with a file lock: locks of a file exclude processes, not the threads of one */
    bool stripe_size_io;      /* requests hold one stripe at most: mpiox_stripe_size_io, or decided for a collective */
    bool refreshes;           /* nothing keeps nodes' caches coherent (mpiox_file_coherence.c): a lock's holder does */
} mpiox_independent_file;

/* Half-open file range of a request of length > 0; of a view that is not monotonic, of the tiles that it lies in. False
 * when it reaches beyond MPIOX_INDEPENDENT_MAX_OFFSET or begins before the file; checked by tiles, before anything is
 * computed that could overflow. */
#define MPIOX_INDEPENDENT_MAX_OFFSET (INT64_C(1) << 62)
bool mpiox_independent_range(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                             int64_t *first, int64_t *last);

/* Move `length` contiguous bytes at `offset`, as the hints say: requests are cut at stripe boundaries for
 * mpiox_stripe_size_io (Liao and Choudhary, SC08), writes are guarded for romio_ds_write. The caller has set
 * error->code to MPIOX_OK. *moved = bytes from the start that arrived: fewer than length at the end of the file (reads)
 * or at an error. 0, or *error's code. */
int mpiox_independent_transfer(const mpiox_independent_file *file, bool write, char *buffer, int64_t offset,
                               int64_t length, int64_t *moved, mpiox_error *error);

/* Is a write of `bytes` bytes in `pieces` pieces with holes between them faster through a mapping of the file than by
 * requests? Many small pieces, on file systems whose page cache is the file and that reserve space ahead of a mapping's
 * page faults; not with romio_ds_write=enable, whose locks a mapping would pass by. */
bool mpiox_independent_maps(const mpiox_independent_file *file, int64_t pieces, int64_t bytes);
/* Bytes that one mapping should span at most; INT64_MAX: any number. */
int64_t mpiox_independent_map_bytes(const mpiox_independent_file *file);
/* mpiox_storage_map() in the way that suits the file system. */
int mpiox_independent_map(const mpiox_independent_file *file, int64_t offset, int64_t length,
                          mpiox_storage_mapping *out);

/* Lock a range against other processes and this one's other threads. 0, or an error and no lock. */
int mpiox_independent_lock(const mpiox_independent_file *file, bool exclusive, int64_t offset, int64_t length,
                           mpiox_error *error);
void mpiox_independent_unlock(const mpiox_independent_file *file, int64_t offset, int64_t length);

#endif
