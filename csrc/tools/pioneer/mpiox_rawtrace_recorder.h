/*
 * mpiox_rawtrace_recorder.h - records of Recorder: lines of recorder2text, or columns of recorder2parquet.
 *
 *   START END FUNCTION LEVEL TYPE ( ARGUMENT ARGUMENT ... )
 *
 * Problem.   Arguments are printed by position, separated by blanks; a file stands in place of its descriptor, "0-2"
 *            (the third file of rank 0) in place of an MPI file. LEVEL counts all recorded calls around one, of HDF5
 *            and of the application too, and is 0 everywhere with RECORDER_LOG_LEVEL=0.
 * Algorithm. Times are read digit by digit: their nanoseconds are exact, where a double has 53 bits. The signatures of
 *            mpiox_rawtrace_call.h give arguments their meaning. If a handle is a text, it is a file in calls of POSIX
 *            and stdio; its number, and that of an MPI file, is the handle, so that positions are known. If MPI and the
 *            application open one name, these are two handles. Calls are sorted by their beginning, inner calls behind
 *            outer ones: the depth counts the MPI calls of the levels below. The depth is unknown if the outer call is
 *            missing, or if a call of level 0 lies in time within an MPI call of level 0.
 * Guarantee. Every record is a row, a problem, or counted as one of another layer (HDF5, netCDF, ADIOS, the
 *            application's own). If there are more arguments than the signature has, all of them are stored in `extra`:
 *            a name with blanks has moved the others.
 */
#ifndef MPIOX_RAWTRACE_RECORDER_H
#define MPIOX_RAWTRACE_RECORDER_H

#include "mpiox_rawtrace_call.h"
#include "mpiox_rawtrace_rows.h"

enum { MPIOX_RAWTRACE_RECORD_ARGUMENTS = 64, MPIOX_RAWTRACE_RECORD_LEVELS = 64 };

/* Stands in a column of numbers for "not a number that can be". */
#define MPIOX_RAWTRACE_BAD INT64_MAX

/* The last call of each level of a thread. */
typedef struct mpiox_rawtrace_recorder_thread {
    int64_t rank, thread;                          /* as in the records */
    int64_t start, end;                            /* ns, of the last MPI call of level 0 */
    int levels;                                    /* so many are there */
    int16_t mpi[MPIOX_RAWTRACE_RECORD_LEVELS + 1]; /* MPI calls in the levels below i */
} mpiox_rawtrace_recorder_thread;

/* Zeroed memory is the state before a trace. */
typedef struct mpiox_rawtrace_recorder {
    mpiox_rawtrace_names datatypes;          /* as written */
    mpiox_rawtrace_names mpi_files;          /* as written: "0-2" */
    int64_t *element_bytes;                  /* of datatype i; 0: not known */
    int64_t capacity;                        /* room in element_bytes */
    mpiox_rawtrace_recorder_thread *threads; /* of this file; the last one is the likeliest */
    int64_t thread_count, thread_capacity;   /* threads; room for them */
} mpiox_rawtrace_recorder;

/* One record. Times in s; NaN: there is none. */
typedef struct mpiox_rawtrace_record {
    double start, end;           /* of the call */
    int64_t rank, thread, level; /* MPIOX_RAWTRACE_NULL: the record does not have it */
    mpiox_rawtrace_span name;    /* of the function */
    int count;                   /* arguments */
    mpiox_rawtrace_span argument[MPIOX_RAWTRACE_RECORD_ARGUMENTS]; /* the first `count` */
} mpiox_rawtrace_record;

void mpiox_rawtrace_recorder_free(mpiox_rawtrace_recorder *state);

/* One line without its end. MPIOX_E_NOMEM. */
int mpiox_rawtrace_recorder_line(mpiox_rawtrace_recorder *state, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                                 const char *p, const char *end);

/* One record of columns. MPIOX_E_NOMEM. */
int mpiox_rawtrace_recorder_record(mpiox_rawtrace_recorder *state, mpiox_rawtrace_calls *calls,
                                   mpiox_rawtrace_rows *rows, const mpiox_rawtrace_record *record);

#endif
