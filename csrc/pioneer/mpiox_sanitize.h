/*
 * mpiox_sanitize.h - one pass over the operations of a rank: which file, which offset, and who has really made them.
 *
 * Problem.   A raw trace has descriptors and handles in place of names, no offsets where the file pointer is used, and
 *            the POSIX calls that MPI-IO makes beside those of the application (He, Du, Narasimhamurthy, "PIONEER",
 *            section V-A and Table II).
 * Algorithm. A table of open handles is carried along: what each stands for (through dup and fdopen), where its file
 *            pointer is, which view it has. An operation is MPI-IO's own when it was made inside of an MPI-IO call; so
 *            is every operation, on whatever thread, on a descriptor that was opened inside of one, which is how the
 *            writes of nonblocking calls on other threads are found.
 * Guarantee. Every row gets a name and an offset or the mark that they are not known; nothing is guessed. Memory grows
 *            with the number of open handles and of files, not with that of the rows.
 */
#ifndef MPIOX_SANITIZE_H
#define MPIOX_SANITIZE_H

#include <stdint.h>

enum mpiox_step { /* what a row does to handles */
                  MPIOX_STEP_NONE = 0,
                  MPIOX_STEP_OPEN, /* `result` is the handle, negative: it failed */
                  MPIOX_STEP_CLOSE,
                  MPIOX_STEP_MOVE,    /* reads or writes at the file pointer */
                  MPIOX_STEP_MOVE_AT, /* at `offset` */
                  MPIOX_STEP_SEEK,
                  MPIOX_STEP_DUPLICATE, /* `result` becomes another name of `handle`; fdopen: of layer stdio */
                  MPIOX_STEP_VIEW,
                  MPIOX_STEP_USE /* anything else on a handle */
};

enum mpiox_trace_layer { MPIOX_TRACE_POSIX = 0, MPIOX_TRACE_STDIO, MPIOX_TRACE_MPIIO, MPIOX_TRACE_OTHER };

enum mpiox_mask { MPIOX_MASK_NONE = 0, MPIOX_MASK_INSIDE, MPIOX_MASK_OWNED };

enum { MPIOX_WHENCE_SET = 0, MPIOX_WHENCE_CUR, MPIOX_WHENCE_END };

#define MPIOX_UNKNOWN INT64_MIN

/* Columns of `count` rows, the caller's. MPIOX_UNKNOWN: not known; of `file` and `depth` -1. */
typedef struct mpiox_rows {
    int64_t count;
    const uint8_t *step, *layer, *whence;
    const uint8_t *flags; /* of an open: 1 appends */
    const int16_t *depth; /* MPI-IO calls around it */
    const int32_t *file;  /* as the row itself names it: numbers from 0 on */
    const int64_t *line;  /* names the row as the parent of others */
    const int64_t *handle, *result, *offset;
    const int64_t *moved; /* bytes that were read or written */
    const int64_t *etype; /* of a view: bytes of its elementary type */
    /* out */
    int32_t *named;  /* the file, -1 */
    int64_t *place;  /* offset in bytes: of the file, of MPI-IO of the view's data stream */
    uint8_t *mask;   /* mpiox_mask */
    int64_t *parent; /* line of the MPI-IO call, MPIOX_UNKNOWN */
} mpiox_rows;

typedef struct mpiox_sanitizer mpiox_sanitizer;

/* One for each rank. NULL: no memory. */
mpiox_sanitizer *mpiox_sanitizer_new(void);
/* The rank's next rows, in the order in which the calls were begun. MPIOX_OK or MPIOX_E_NOMEM. */
int mpiox_sanitizer_feed(mpiox_sanitizer *sanitizer, const mpiox_rows *rows);
void mpiox_sanitizer_free(mpiox_sanitizer *sanitizer); /* NULL-safe */

#endif
