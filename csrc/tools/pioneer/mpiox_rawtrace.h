/*
 * mpiox_rawtrace.h - a raw trace in text, fed piece by piece, handed out as rows.
 *
 * Problem.   Traces have more lines than memory has bytes, and come through decompressors.
 * Algorithm. Bytes are cut into lines, of which the last, unfinished one waits for the next piece; the parser of the
 *            form in force reads each. A line beyond MPIOX_RAWTRACE_MAX_LINE is counted and skipped.
 * Guarantee. Memory does not depend on the number of lines, only on names, threads and calls that wait for their end.
 *            Rows do not depend on how the bytes were cut into pieces; of DFTracer, whose rows are sorted by time as
 *            far as they are handed out together, their order does.
 */
#ifndef MPIOX_RAWTRACE_H
#define MPIOX_RAWTRACE_H

#include "mpiox_rawtrace_dftracer.h"
#include "mpiox_rawtrace_recorder.h"
#include "mpiox_rawtrace_text.h"

enum { MPIOX_RAWTRACE_MAX_LINE = 1 << 20 };

typedef enum mpiox_rawtrace_form {
    MPIOX_RAWTRACE_NONE,
    MPIOX_RAWTRACE_TEXT,
    MPIOX_RAWTRACE_DFTRACER,
    MPIOX_RAWTRACE_DFTRACER_TABLES,
    MPIOX_RAWTRACE_RECORDER
} mpiox_rawtrace_form;

typedef struct mpiox_rawtrace {
    mpiox_rawtrace_form form;            /* of the file; NONE: no file was begun */
    mpiox_rawtrace_calls calls;          /* functions and constants that were described */
    mpiox_rawtrace_rows rows;            /* rows, problems and counts */
    mpiox_rawtrace_text text;            /* form TEXT */
    mpiox_rawtrace_dftracer dftracer;    /* forms DFTRACER and DFTRACER_TABLES */
    mpiox_rawtrace_recorder recorder;    /* form RECORDER */
    char *carry;                         /* the beginning of a line whose end has not come; owned */
    int64_t carry_bytes, carry_capacity; /* bytes in `carry`; room in it */
    bool too_long;                       /* the rest of this line is skipped */
} mpiox_rawtrace;

mpiox_rawtrace *mpiox_rawtrace_create(void);
void mpiox_rawtrace_free(mpiox_rawtrace *trace);

/* Begin a file: names, functions and tables of hashes stay, all else is as new. MPIOX_E_ARG: no such form. */
int mpiox_rawtrace_begin(mpiox_rawtrace *trace, const char *form);

/* The next bytes of the file. MPIOX_E_NOMEM. */
int mpiox_rawtrace_feed(mpiox_rawtrace *trace, const char *bytes, int64_t count);

/* The next records of a file of Recorder that is a table: columns[i] is record `first + i`. */
typedef struct mpiox_rawtrace_columns {
    int64_t count;             /* records */
    const double *start, *end; /* s; NaN: none */
    /* numbers: of arguments. MPIOX_RAWTRACE_NULL: none, MPIOX_RAWTRACE_BAD: no number. */
    const int64_t *rank, *thread, *level, *numbers;
    int64_t texts;                 /* columns of texts: names of functions, first arguments, second ones ... */
    const char *const *bytes;      /* by column: all its texts */
    const int64_t *const *offsets; /* count + 1 in each */
} mpiox_rawtrace_columns;

/* MPIOX_E_NOMEM; MPIOX_E_ARG: there is no column of names, or the file has another form. */
int mpiox_rawtrace_records(mpiox_rawtrace *trace, const mpiox_rawtrace_columns *columns);

/* The file ends. */
int mpiox_rawtrace_end(mpiox_rawtrace *trace);

#endif
