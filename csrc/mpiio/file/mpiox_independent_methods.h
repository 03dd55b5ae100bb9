/*
 * mpiox_independent_methods.h - the access methods for one window of an access. Private to csrc/mpiio/file.
 */
#ifndef MPIOX_INDEPENDENT_METHODS_H
#define MPIOX_INDEPENDENT_METHODS_H

#include "mpiox_independent_file.h"

typedef struct mpiox_independent_window { /* the bytes of an access that are moved together */
    int64_t position;                     /* first stream byte */
    int64_t memory_position;              /* the same byte, counted from the request's start */
    int64_t length;                       /* stream bytes, > 0 */
    int64_t offset, span;                 /* the file range that holds them; span == length: no holes */
    int64_t pieces;                       /* estimate */
} mpiox_independent_window;

typedef struct mpiox_independent_call { /* one access in progress */
    const mpiox_independent_file *file; /* borrowed */
    const mpiox_request *request;       /* borrowed */
    char *staging;                      /* sieve buffer, freed by the caller; NULL while none is needed */
    int64_t staging_bytes;              /* size of the sieve buffer; 0 while there is none */
} mpiox_independent_call;

/* Each moves the window: 0 with *moved == length (less at the end of the file), or an error's code with *moved = stream
 * bytes that are known to be where they belong. Local and blocking. */
int mpiox_independent_contiguous(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                                 mpiox_error *error);
/* List I/O: Thakur, Gropp and Lusk, "On implementing MPI-IO portably and with high performance", IOPADS 1999; Ching et
 * al., "Noncontiguous I/O through PVFS", CLUSTER 2002. */
int mpiox_independent_list(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                           mpiox_error *error);
/* Data sieving: Thakur, Gropp and Lusk, "Data sieving and collective I/O in ROMIO", Frontiers 1999, section 3. */
int mpiox_independent_sieve_read(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                                 mpiox_error *error);
int mpiox_independent_sieve_write(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                                  mpiox_error *error);
/* Writes only. False: the file cannot be mapped here; nothing but the window's last byte may have been written. True:
 * the window is dealt with, and error->code says how. */
bool mpiox_independent_map_write(mpiox_independent_call *call, const mpiox_independent_window *window, int64_t *moved,
                                 mpiox_error *error);

#endif
