/*
 * mpiox_handle_resolution.h - one pass over the operations of a rank: their file, offset and real caller.
 *
 * Problem.   A raw trace has descriptors and handles in place of names, no offsets where the file pointer is used, and
 *            the POSIX calls that MPI-IO makes beside those of the application (He, Du, Narasimhamurthy, "PIONEER",
 *            section V-A and Table II). ltrace prints addresses: of the name that MPI_File_open is given, and of the
 *            variable that the new handle is put into.
 * Algorithm. A table contains the open handles: the object of each handle (through dup and fdopen), its file pointer,
 *            its view. An operation is MPI-IO's own if it was made inside of an MPI call. MPI-IO's own, too, is every
 *            operation, on whatever thread, on a descriptor that was opened inside of an MPI call: so the writes of
 *            nonblocking calls on other threads are found. A descriptor without an open that was used inside of an MPI
 *            call comes from the MPI library's launcher. The parent of an operation that is MPI-IO's own is the MPI
 *            call that the operation's thread is in. Else, on a thread of the MPI library, the parent is the call of
 *            any thread that was going on then (the latest one); else the last access to that file; else the last call.
 *            If the trace has no depths (Darshan DXT) a POSIX access is MPI-IO's own if it lies, in time, within one of
 *            MPI-IO by the same rank to the same file. An MPI_File_open without a name gets the name of the last file
 *            that was opened inside of it and is open when it returns. A handle without an open belongs to the open
 *            without a handle, if there is only one; a close by the address of the variable belongs to the open with
 *            that address. Opens are numbered. A row that uses a handle, or a duplicate of the handle, has the number
 *            of the handle's open, and so has the wait for a nonblocking access. A failed open has a number that no
 *            other row has.
 * Guarantee. Every row gets a name and an offset or the mark that they are not known; nothing is guessed. Memory grows
 *            with the number of open handles, of files and of threads, not with that of the rows.
 */
#ifndef MPIOX_HANDLE_RESOLUTION_H
#define MPIOX_HANDLE_RESOLUTION_H

#include <stdint.h>

#include "mpiox_handle_resolution_extra.h"

enum mpiox_step { /* a row's effect on handles */
                  MPIOX_STEP_NONE = 0,
                  MPIOX_STEP_OPEN, /* `result` is the handle, negative: it failed */
                  MPIOX_STEP_CLOSE,
                  MPIOX_STEP_MOVE,    /* reads or writes at the file pointer */
                  MPIOX_STEP_MOVE_AT, /* at `offset` */
                  MPIOX_STEP_SEEK,
                  MPIOX_STEP_DUPLICATE, /* `result` becomes another name of `handle`; fdopen: of layer stdio */
                  MPIOX_STEP_VIEW,
                  MPIOX_STEP_USE,    /* anything else on a handle */
                  MPIOX_STEP_WAIT,   /* for nonblocking accesses */
                  MPIOX_STEP_OBJECT, /* `result` is a descriptor of no file: socket, eventfd */
                  MPIOX_STEP_OTHER,  /* no I/O on files unless it names one */
                  MPIOX_STEP_MAP,    /* a mapping is another name of `handle`, which may be closed before it */
                  MPIOX_STEP_UNMAP,
                  MPIOX_STEP_MAPPED, /* anything else on a mapping */
                  MPIOX_STEP_PAIR    /* two descriptors of no file: [3, 4] in the arguments of pipe and socketpair */
};

enum mpiox_trace_layer { MPIOX_TRACE_POSIX = 0, MPIOX_TRACE_STDIO, MPIOX_TRACE_MPIIO, MPIOX_TRACE_OTHER };

enum mpiox_mask { MPIOX_MASK_NONE = 0, MPIOX_MASK_INSIDE, MPIOX_MASK_OWNED, MPIOX_MASK_SYSTEM, MPIOX_MASK_NO_IO };

/* Columns of `count` rows, the caller's. MPIOX_UNKNOWN: not known; of `file` and `depth` -1. */
typedef struct mpiox_rows {
    int64_t count;                   /* rows */
    const uint8_t *step, *layer;     /* enum mpiox_step; enum mpiox_trace_layer */
    const int16_t *depth;            /* MPI calls around it */
    const int32_t *file;             /* as the row itself names it: numbers from 0 on */
    const int32_t *thread;           /* from 0 on */
    const int64_t *line;             /* names the row as the parent of others */
    const int64_t *start, *duration; /* ns */
    /* as the trace has them; offset in bytes, of MPI-IO in etypes of the view */
    const int64_t *handle, *result, *offset;
    const int64_t *moved;     /* bytes that were read or written */
    const char *extra;        /* JSON of row i: [extra_at[i], extra_at[i + 1]) */
    const int32_t *extra_at;  /* count + 1 */
    const uint8_t *is_system; /* of each file: it is the system's */
    int final;                /* no more rows: do not wait for any */
    /* out */
    int32_t *named;   /* the file, -1 */
    int64_t *place;   /* offset in bytes: of the file, of MPI-IO of the view's data stream */
    uint8_t *mask;    /* mpiox_mask */
    int64_t *parent;  /* line of the MPI call, MPIOX_UNKNOWN */
    int64_t *session; /* number of the open whose handle it uses, from 0 on; MPIOX_UNKNOWN */
} mpiox_rows;

typedef struct mpiox_handle_resolver mpiox_handle_resolver;

/* One for each rank. NULL: no memory. */
mpiox_handle_resolver *mpiox_handle_resolver_new(void);

/* The rank's next rows, in the order in which the calls were begun. How many of them it has taken: a nameless
 * MPI_File_open whose end is not among the rows, and what is behind it, has to be given again with the rows that follow
 * (never where `final` is set). MPIOX_E_NOMEM. */
int64_t mpiox_handle_resolver_feed(mpiox_handle_resolver *sanitizer, const mpiox_rows *rows);
void mpiox_handle_resolver_free(mpiox_handle_resolver *sanitizer); /* NULL-safe */

#endif
