/*
 * mpiox_independent_impl.h - the ways to move one chunk of an access. Private to csrc/independent.
 */
#ifndef MPIOX_INDEPENDENT_IMPL_H
#define MPIOX_INDEPENDENT_IMPL_H

#include "mpiox_independent.h"

typedef struct mpiox_chunk {
    int64_t position;        /* first stream byte */
    int64_t memory_position; /* the same byte, counted from the request's start */
    int64_t length;          /* stream bytes, > 0 */
    int64_t offset, span;    /* the file range that holds them; span == length: no holes */
    int64_t pieces;          /* estimate */
} mpiox_chunk;

typedef struct mpiox_mover { /* one access in progress */
    const mpiox_independent_file *file;
    const mpiox_request *request;
    char *staging; /* scratch; NULL while not needed */
    int64_t staging_bytes;
} mpiox_mover;

/* Each moves the chunk: 0 with *moved == length (less at the end of the file), or an error's code with *moved = stream
 * bytes that are known to be where they belong. */
int mpiox_chunk_whole(mpiox_mover *mover, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error);
int mpiox_chunk_list(mpiox_mover *mover, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error);
int mpiox_chunk_sieve_read(mpiox_mover *mover, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error);
int mpiox_chunk_sieve_write(mpiox_mover *mover, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error);
/* False: the file cannot be mapped here; nothing but the chunk's last piece may have been written. True: dealt with, and
 * error->code says how. */
bool mpiox_chunk_map(mpiox_mover *mover, const mpiox_chunk *chunk, int64_t *moved, mpiox_error *error);

#endif
