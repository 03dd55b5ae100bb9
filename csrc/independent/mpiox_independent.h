/*
 * mpiox_independent.h - one rank's access to a file through its view, without any other rank.
 *
 * Used by independent and nonblocking data access, by collectives that go straight to the file, and by everything in
 * atomic mode. Local and blocking; no MPI. Several threads may use one file at once (the storage allows it, the rest of
 * mpiox_independent_file is only read).
 */
#ifndef MPIOX_INDEPENDENT_H
#define MPIOX_INDEPENDENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_typemap.h"
#include "mpiox_hints.h"
#include "mpiox_layout.h"
#include "mpiox_storage.h"

/* What one rank wants moved between its memory and the stream of its view. */
typedef struct mpiox_request {
    bool write;
    int64_t position;           /* stream position in the view, bytes */
    int64_t length;             /* data bytes of this rank, >= 0 */
    void *buffer;               /* origin of the memory description; not modified by writes */
    const mpiox_typemap *memory; /* borrowed, tiled from `buffer` on; NULL = contiguous */
    int64_t memory_position;    /* data bytes of the memory to skip first; 0 as a rule */
    mpiox_error local_error;    /* code != 0: found before the access began */
} mpiox_request;

typedef struct mpiox_independent_counters { /* since open; any thread may raise them */
    atomic_int_least64_t reads, writes;      /* accesses of at least one byte */
    atomic_int_least64_t bytes_read, bytes_written;
    atomic_int_least64_t sieved, mapped, listed, whole; /* chunks by the way they were moved (mpiox_independent.c) */
    atomic_int_least64_t locks;
    atomic_int_least64_t nanoseconds;
} mpiox_independent_counters;

typedef struct mpiox_independent_file { /* everything is borrowed */
    mpiox_storage *storage;
    const mpiox_typemap *view; /* monotonic, size > 0 */
    int64_t displacement;
    int64_t tile_extent; /* 0: tiles of the view follow each other at its extent; else at this one, and may overlap */
    const mpiox_layout *layout;
    const mpiox_hints *hints;
    bool atomic; /* MPI's atomic mode: every access holds a lock on its file range */
    bool locked; /* such a lock is being held around what is done */
    mpiox_independent_counters *counters;
    pthread_mutex_t *threads; /* with a file lock: locks of a file exclude processes, not the threads of one */
} mpiox_independent_file;

/* Move request->length bytes (> 0) from stream position request->position on. *done = bytes moved, in stream order from
 * the start: all of them, or fewer at the end of the file (reads) or at an error. 0, or *error's code with the file
 * offset and length that failed. */
int mpiox_independent_access(const mpiox_independent_file *file, const mpiox_request *request, int64_t *done,
                             mpiox_error *error);

/* Half-open file range of a request of length > 0. False when it reaches beyond MPIOX_INDEPENDENT_MAX_OFFSET; checked
 * by tiles, before anything is computed that could overflow. */
#define MPIOX_INDEPENDENT_MAX_OFFSET (INT64_C(1) << 62)
bool mpiox_independent_range(const mpiox_typemap *view, int64_t displacement, int64_t position, int64_t length,
                             int64_t *first, int64_t *last);

/* File systems whose page cache is the file, and that reserve space ahead of a mapping's page faults: there many small
 * runs may be stored through a mapping. */
bool mpiox_independent_maps(const mpiox_layout *layout);
/* Is a mapping faster when its pages are made at once? On tmpfs; elsewhere most of the cost is the file system's. Such a
 * mapping should be no longer than MPIOX_INDEPENDENT_MAP_BYTES, so that fresh pages are still in cache when stored to. */
#define MPIOX_INDEPENDENT_MAP_BYTES (256 * 1024)
bool mpiox_independent_populates(const mpiox_layout *layout);

/* With romio_ds_write=enable every other write of the file holds a shared lock on what it writes, so that no sieved
 * write carries old bytes over it. True when such a lock has been taken (release it by mpiox_independent_unlock). */
bool mpiox_independent_guard(const mpiox_independent_file *file, int64_t offset, int64_t length, int *code,
                             mpiox_error *error);
/* Lock a range against other processes and this one's other threads. 0, or an error and no lock. */
int mpiox_independent_lock(const mpiox_independent_file *file, bool exclusive, int64_t offset, int64_t length,
                           mpiox_error *error);
void mpiox_independent_unlock(const mpiox_independent_file *file, int64_t offset, int64_t length);

#endif
