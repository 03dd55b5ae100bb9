/*
 * mpiox_tracefile_reader.h - a trace file as rows, batch by batch.
 *
 * Guarantee. Any file, whole, truncated or damaged, is read to its end without a crash and in bounded memory.
 *            Unreadable parts are returned as problems, and counted if the file has their number.
 */
#ifndef MPIOX_TRACEFILE_READER_H
#define MPIOX_TRACEFILE_READER_H

#include "mpiox_tracefile.h"

/* Columns of a batch; null is MPIOX_TRACEFILE_NONE, of the file -1. */
enum {
    MPIOX_COLUMN_TIMESTAMP, /* since the Unix epoch, ns */
    MPIOX_COLUMN_DURATION,
    MPIOX_COLUMN_OPERATION, /* index of a name */
    MPIOX_COLUMN_FILE,      /* index of a name */
    MPIOX_COLUMN_OFFSET,
    MPIOX_COLUMN_SIZE,
    MPIOX_COLUMN_HANDLE,
    MPIOX_COLUMN_RESULT,
    MPIOX_COLUMN_THREAD,
    MPIOX_COLUMN_DEPTH,
    MPIOX_COLUMN_LINE,
    MPIOX_COLUMN_LAYER, /* MPIOX_TRACEFILE_MPIIO... */
    MPIOX_COLUMNS
};

typedef struct mpiox_tracefile_problem {
    int64_t line;    /* record, from 1 */
    const char *why; /* static text */
} mpiox_tracefile_problem;

enum { MPIOX_TRACEFILE_PROBLEMS = 20 };

typedef struct mpiox_tracefile_reader mpiox_tracefile_reader;

/* 0; MPIOX_E_IO: the file cannot be read; MPIOX_E_CORRUPT: it is no trace file of this version; MPIOX_E_NOMEM. Free it
 * with _free (NULL-safe). The second reads `bytes` of memory, which must live as long. */
int mpiox_tracefile_reader_open(const char *path, mpiox_tracefile_reader **reader);
int mpiox_tracefile_reader_open_memory(const void *data, int64_t bytes, mpiox_tracefile_reader **reader);
void mpiox_tracefile_reader_free(mpiox_tracefile_reader *reader);
const mpiox_tracefile_header *mpiox_tracefile_reader_header(const mpiox_tracefile_reader *reader);

/* The next rows, about `wanted` of them, in the order of their starts; more where a call holds others. 0: that was all;
 * MPIOX_E_NOMEM. What the functions below return holds until the next call. */
int64_t mpiox_tracefile_reader_next(mpiox_tracefile_reader *reader, int64_t wanted);
const int64_t *mpiox_tracefile_reader_column(const mpiox_tracefile_reader *reader, int column);
/* JSON objects one behind the other, UTF-8; row i has [offsets[i], offsets[i+1]), none where it is empty. */
const char *mpiox_tracefile_reader_extras(const mpiox_tracefile_reader *reader, const int32_t **offsets);
/* Names by index; NULL: no more. */
const char *mpiox_tracefile_reader_operation(const mpiox_tracefile_reader *reader, int64_t index);
const char *mpiox_tracefile_reader_file(const mpiox_tracefile_reader *reader, int64_t index);

/* So far: records, records that are lost, whether the end is missing; the first problems (NULL: no more). */
int64_t mpiox_tracefile_reader_records(const mpiox_tracefile_reader *reader);
int64_t mpiox_tracefile_reader_lost(const mpiox_tracefile_reader *reader);
int mpiox_tracefile_reader_truncated(const mpiox_tracefile_reader *reader);
/* Bytes so far that are in the file and were left out; bytes that the file should have by its header and has not. */
int64_t mpiox_tracefile_reader_unread(const mpiox_tracefile_reader *reader);
int64_t mpiox_tracefile_reader_missing(const mpiox_tracefile_reader *reader);
const mpiox_tracefile_problem *mpiox_tracefile_reader_problem(const mpiox_tracefile_reader *reader, int index);

#endif
