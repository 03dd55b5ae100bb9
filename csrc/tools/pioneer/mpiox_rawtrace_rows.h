/*
 * mpiox_rawtrace_rows.h - the rows of a parser, handed out in the order in which the calls began.
 *
 * Problem.   A call that another thread interrupts in the text, or that contains calls, is complete only lines later;
 *            readers need rows by their beginning, and memory must not grow with the file.
 * Algorithm. A ring of rows in the order of their beginnings. A row is put in when its call begins and marked when the
 *            call is complete; complete rows leave at the head. If MPIOX_RAWTRACE_HELD rows wait behind an incomplete
 *            row, the incomplete row is set aside, and follows when it is complete. A trace that has calls by their end
 *            is nearly in order: the rows of one batch are sorted (insertion sort; qsort if they are far apart).
 * Guarantee. Every row leaves once. A call without an end leaves without duration and result.
 */
#ifndef MPIOX_RAWTRACE_ROWS_H
#define MPIOX_RAWTRACE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_rawtrace_names.h"

enum { MPIOX_RAWTRACE_HELD = 1 << 18, MPIOX_RAWTRACE_PROBLEMS = 20, MPIOX_RAWTRACE_QUOTE = 200 };
enum { MPIOX_LAYER_MPIIO, MPIOX_LAYER_MPI, MPIOX_LAYER_STDIO, MPIOX_LAYER_POSIX };

/* Stands for "unknown" in a column. */
#define MPIOX_RAWTRACE_NULL INT64_MIN

/* As mpiio_ext_rawtrace_row of the public header. */
typedef struct mpiox_rawtrace_row {
    int64_t timestamp, offset, size, duration, result, handle;
    int64_t line, process, thread;
    int32_t operation, file; /* numbers of names; file: -1 is null */
    int32_t depth, layer;
} mpiox_rawtrace_row;

typedef struct mpiox_rawtrace_held {
    mpiox_rawtrace_row row; /* its columns so far */
    char *extra;            /* JSON object, or NULL */
    int64_t number;         /* of the row, in the order in which the calls began */
    bool done;              /* the row is complete */
} mpiox_rawtrace_held;

typedef struct mpiox_rawtrace_problem {
    int64_t line;                    /* from 1 */
    const char *why;                 /* static */
    int32_t bytes;                   /* of the text */
    char text[MPIOX_RAWTRACE_QUOTE]; /* the beginning of the line */
} mpiox_rawtrace_problem;

/* A line that is kept as it is, for the reader above. */
typedef struct mpiox_rawtrace_note {
    int64_t line, bytes; /* number of the line; its bytes */
    char *text;          /* the line; owned */
} mpiox_rawtrace_note;

/* When the row at a place of those that are handed out began. */
typedef struct mpiox_rawtrace_moment {
    int64_t timestamp, place; /* ns; among the rows that are handed out */
} mpiox_rawtrace_moment;

typedef struct mpiox_rawtrace_rows {
    mpiox_rawtrace_names operations, files;   /* names by number; they stay from file to file */
    mpiox_rawtrace_held *ring, *aside;        /* aside: incomplete rows that the ring no longer holds */
    int64_t head, next, ring_capacity;        /* numbers of rows; row n is at n & (ring_capacity - 1) */
    int64_t aside_count, aside_capacity;      /* rows in `aside`; room for them */
    mpiox_rawtrace_row *out;                  /* rows that are handed out; owned */
    char *out_extra;                          /* their JSON objects, one behind the other; owned */
    int32_t *out_offsets;                     /* of each object in out_extra; owned */
    int64_t out_capacity, out_extra_capacity; /* rows that `out` has room for; bytes that out_extra has room for */
    bool sorted; /* rows that are handed out together are sorted by time; equal ones stay as they are */
    mpiox_rawtrace_moment *order; /* scratch of the sorting; owned */
    int64_t order_capacity;       /* room in `order` */
    /* of the file: lines; lines that are in no row and should be; rows; lines that are no calls */
    int64_t lines, skipped, made, events;
    int truncated, problem_count; /* 1: the file ends in the middle of a line; entries of problems[] */
    mpiox_rawtrace_problem problems[MPIOX_RAWTRACE_PROBLEMS]; /* the first ones of the file */
    mpiox_rawtrace_note *notes;                               /* [note_count]; owned */
    int64_t note_count, note_capacity;                        /* notes; room for them */
    mpiox_rawtrace_names categories; /* of records that are no calls of the table's layers, of all files */
    int64_t *category_events;        /* records of each category; owned */
    int64_t category_capacity;       /* room in category_events */
} mpiox_rawtrace_rows;

void mpiox_rawtrace_rows_free(mpiox_rawtrace_rows *rows);

/* Forget lines, problems and counts of the source before; names stay. */
void mpiox_rawtrace_rows_begin(mpiox_rawtrace_rows *rows);

/* Put in a row whose columns are null. Its number, or MPIOX_E_NOMEM. */
int64_t mpiox_rawtrace_rows_push(mpiox_rawtrace_rows *rows);

/* The row of a number that is not done; NULL when it is not there. The pointer holds until the next push. */
mpiox_rawtrace_held *mpiox_rawtrace_rows_get(mpiox_rawtrace_rows *rows, int64_t number);

/* A row is complete; extra (may be NULL) is owned by the rows from now on. */
int mpiox_rawtrace_rows_done(mpiox_rawtrace_rows *rows, int64_t number, char *extra);

/* Hand out the rows that are ready: their number, or MPIOX_E_NOMEM. The arrays, in rows->out*, hold until the next
 * call; extra i is out_extra[out_offsets[i] .. out_offsets[i + 1]), empty: null. */
int64_t mpiox_rawtrace_rows_take(mpiox_rawtrace_rows *rows);

/* Count a line that is in no row and should be. */
void mpiox_rawtrace_rows_problem(mpiox_rawtrace_rows *rows, const char *why, const char *text, int64_t bytes);

/* Remember a problem of a line whose row is there. */
void mpiox_rawtrace_rows_remark(mpiox_rawtrace_rows *rows, const char *why, const char *text, int64_t bytes);

int mpiox_rawtrace_rows_note(mpiox_rawtrace_rows *rows, const char *text, int64_t bytes);

/* Count a record that is understood and no call, by its category. MPIOX_E_NOMEM. */
int mpiox_rawtrace_rows_other(mpiox_rawtrace_rows *rows, const char *category, int64_t bytes);

#endif
