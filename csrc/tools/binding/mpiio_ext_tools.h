/*
 * mpiio_ext_tools.h - the C part of the tools that read and compute, and call no MPI: raw traces, sanitization, trace
 * files, the critical files of a job, the lock model.
 *
 * It is the declaration file of the Python module mpiio_ext._tools, which contains all of this code: nothing of it is
 * in libmpiio_ext.so, which runs under simulations. Everything between the two cffi markers is read by build.py; that
 * part therefore uses only <stdint.h> types, opaque and plain structs, and no preprocessor lines.
 * Functions return 0 or a negative MPIOX_E_* code (see mpiio_ext_tools_error_name) unless stated otherwise. The callee
 * owns returned pointers unless the comment names another owner.
 */
#ifndef MPIIO_EXT_TOOLS_H
#define MPIIO_EXT_TOOLS_H

#include <stdint.h>

/* cffi: begin */

/* A short English name for a negative result code. */
const char *mpiio_ext_tools_error_name(int code);

/* What is read after it, of memory that another process changes, is no older than what was read before it. */
void mpiio_ext_fence(void);

/* ---- pioneer ---- */

/* One of two sequences that are compared; the caller owns the arrays. */
typedef struct mpiio_ext_diff_sequence {
    const int32_t *elements; /* numbers 0 .. symbols - 1 */
    int64_t count;           /* number of elements */
    unsigned char *common;   /* out, `count` bytes: 1 if the element has a counterpart, else 0 */
} mpiio_ext_diff_sequence;

/* Which elements of two sequences correspond, with as few differences as can be found: the k-th 1 of a->common
 * corresponds to the k-th 1 of b->common. effort: differences after which a middle is guessed; 0: never. *minimal: 1 if
 * there are no fewer differences. 0, MPIOX_E_ARG (-2), MPIOX_E_NOMEM (-1). Pure; mpiox_diff.h. */
int mpiio_ext_diff(const mpiio_ext_diff_sequence *a, const mpiio_ext_diff_sequence *b, int32_t symbols, int32_t effort,
                   int *minimal);

/* One pass over the operations of one rank: names for handles, offsets for file pointers, marks for what MPI-IO has
 * made itself. See csrc/tools/pioneer/mpiox_handle_resolution.h, which has the meaning of every column; all have
 * `count`
 * elements, but extra_at one more, and is_system one for each file. */
typedef struct mpiio_ext_rows {
    int64_t count;
    const unsigned char *step, *layer;
    const int16_t *depth;
    const int32_t *file, *thread;
    const int64_t *line, *start, *duration, *handle, *result, *offset, *moved;
    const char *extra;
    const int32_t *extra_at;
    const unsigned char *is_system;
    int final;
    int32_t *named;
    int64_t *place;
    unsigned char *mask;
    int64_t *parent;
    int64_t *session;
} mpiio_ext_rows;
typedef struct mpiio_ext_handle_resolver mpiio_ext_handle_resolver;

/* NULL: no memory. Free with mpiio_ext_handle_resolver_free() (NULL-safe). */
mpiio_ext_handle_resolver *mpiio_ext_handle_resolver_new(void);
/* The rank's next rows. How many were taken: the others have to be given again with those that follow, never where
 * `final` is set. MPIOX_E_NOMEM (-1). */
int64_t mpiio_ext_handle_resolver_feed(mpiio_ext_handle_resolver *sanitizer, const mpiio_ext_rows *rows);
void mpiio_ext_handle_resolver_free(mpiio_ext_handle_resolver *sanitizer);

/* ---- raw traces ---- */

/* A raw trace (strace, ltrace, LANL-Trace, DFTracer, Recorder), fed piece by piece, handed out as rows, of which
 * mpiio_ext.pioneer makes tables. Not thread-safe. Everything that is returned holds until the next call that takes the
 * trace. */
typedef struct mpiio_ext_rawtrace mpiio_ext_rawtrace;

/* A call. Times in ns; INT64_MIN: unknown in the trace; operation, file: numbers of names, file -1: none; depth: -1
 * or the MPI-IO calls around it on its thread; layer: 0 mpiio, 1 mpi, 2 stdio, 3 posix. */
typedef struct mpiio_ext_rawtrace_row {
    int64_t timestamp, offset, size, duration, result, handle;
    int64_t line, process, thread;
    int32_t operation, file;
    int32_t depth, layer;
} mpiio_ext_rawtrace_row;

/* Records as columns, of `count` elements each. Times in s, NaN: none; numbers: INT64_MIN: none, INT64_MAX: what stands
 * there is no such number. Texts: names of functions, then of arguments 1, 2 ...; text i of a column is
 * bytes[offsets[i] .. offsets[i + 1]). */
typedef struct mpiio_ext_rawtrace_columns {
    int64_t count;
    const double *start, *end;
    const int64_t *rank, *thread, *level, *numbers; /* level: calls around it; numbers: how many arguments */
    int64_t texts;
    const char *const *bytes;
    const int64_t *const *offsets;
} mpiio_ext_rawtrace_columns;

/* A new one, NULL when memory is exhausted; free it with mpiio_ext_rawtrace_free() (NULL-safe). */
mpiio_ext_rawtrace *mpiio_ext_rawtrace_create(void);
void mpiio_ext_rawtrace_free(mpiio_ext_rawtrace *trace);
/* Describe a function: its name in rows, its layer, and its arguments (csrc/tools/pioneer/mpiox_rawtrace_call.h). */
int mpiio_ext_rawtrace_describe(mpiio_ext_rawtrace *trace, const char *name, const char *operation, int layer,
                                const char *signature);
/* The name by which extra gives a number of one key. */
int mpiio_ext_rawtrace_constant(mpiio_ext_rawtrace *trace, const char *key, int64_t value, const char *text);
/* The name of a datatype by its handle, and the bytes of an element (> 0). */
int mpiio_ext_rawtrace_datatype(mpiio_ext_rawtrace *trace, int64_t value, const char *name, int64_t element_bytes);
/* Begin a file of the form "text", "dftracer", "dftracer tables" (its hashes alone) or "recorder"; feed its bytes, or
 * hand in columns of records ("recorder"); end it. 0, MPIOX_E_ARG (-2): no such form; MPIOX_E_NOMEM (-1). */
int mpiio_ext_rawtrace_begin(mpiio_ext_rawtrace *trace, const char *form);
int mpiio_ext_rawtrace_feed(mpiio_ext_rawtrace *trace, const void *bytes, int64_t count);
int mpiio_ext_rawtrace_records(mpiio_ext_rawtrace *trace, const mpiio_ext_rawtrace_columns *columns);
int mpiio_ext_rawtrace_end(mpiio_ext_rawtrace *trace);
/* Rows that are ready, in the order in which the calls began; their number, 0: none now; MPIOX_E_NOMEM (-1). The JSON
 * of row i is extra[offsets[i] .. offsets[i + 1]), empty: none. */
int64_t mpiio_ext_rawtrace_take(mpiio_ext_rawtrace *trace, const mpiio_ext_rawtrace_row **rows, const char **extra,
                                const int32_t **offsets);
/* Names of operations (0), files (1), or categories of events that are no calls (2): their number; name i is
 * bytes[offsets[i] .. offsets[i + 1]). Numbers stay, also from file to file. */
int64_t mpiio_ext_rawtrace_names(const mpiio_ext_rawtrace *trace, int which, const char **bytes,
                                 const int64_t **offsets);
/* Events of category `index`. */
int64_t mpiio_ext_rawtrace_category_events(const mpiio_ext_rawtrace *trace, int64_t index);
/* Of the file: lines (0), lines that are in no row and should be (1), rows (2), lines that are understood and no calls
 * (3), whether it ends in the middle of a line (4), problems that are kept (5), notes (6). */
int64_t mpiio_ext_rawtrace_count(const mpiio_ext_rawtrace *trace, int what);
/* Problem `index`: what is wrong; line number and beginning of the line. NULL: there is none. */
const char *mpiio_ext_rawtrace_problem(const mpiio_ext_rawtrace *trace, int64_t index, int64_t *line, const char **text,
                                       int64_t *bytes);
/* Note `index`, a line of metadata as it stands in the file. NULL: there is none. */
const char *mpiio_ext_rawtrace_note(const mpiio_ext_rawtrace *trace, int64_t index, int64_t *line, int64_t *bytes);

/* ---- traces ---- */

/* A trace file of `mpiio-ext trace`, read batch by batch (docs/howto/trace.md). 0, or MPIOX_E_IO (-3): it cannot be
 * read; MPIOX_E_CORRUPT (-6): it is no trace file of this version; MPIOX_E_NOMEM (-1). Close it (NULL-safe). */
typedef struct mpiio_ext_trace mpiio_ext_trace;
int mpiio_ext_trace_open(const char *path, mpiio_ext_trace **trace);
void mpiio_ext_trace_close(mpiio_ext_trace *trace);
/* Rank (-1: not known), ranks (0: not known), host, process id, command line. */
int mpiio_ext_trace_rank(const mpiio_ext_trace *trace);
int mpiio_ext_trace_ranks(const mpiio_ext_trace *trace);
int64_t mpiio_ext_trace_pid(const mpiio_ext_trace *trace);
const char *mpiio_ext_trace_host(const mpiio_ext_trace *trace);
const char *mpiio_ext_trace_command(const mpiio_ext_trace *trace);
/* When it was begun, ns since the Unix epoch. */
int64_t mpiio_ext_trace_started(const mpiio_ext_trace *trace);
/* Read the next rows, about `wanted`; their number, 0: no more; MPIOX_E_NOMEM. Columns, extras and the addresses of
 * names hold until the next call. */
int64_t mpiio_ext_trace_next(mpiio_ext_trace *trace, int64_t wanted);
/* Column 0 .. 11: timestamp (Unix, ns), duration (ns), operation (index), file (index, -1: none), offset, size, handle,
 * result, thread, depth, line, layer (0 mpiio, 1 mpi, 2 stdio, 3 posix, 4 extension). INT64_MIN: null. */
const int64_t *mpiio_ext_trace_column(const mpiio_ext_trace *trace, int column);
/* JSON objects, one behind the other; that of row i is [offsets[i], offsets[i+1]), empty where there is none. */
const char *mpiio_ext_trace_extras(const mpiio_ext_trace *trace, const int32_t **offsets);
/* Names of operations and files so far, by index; NULL: there is none. */
const char *mpiio_ext_trace_operation(const mpiio_ext_trace *trace, int64_t index);
const char *mpiio_ext_trace_file(const mpiio_ext_trace *trace, int64_t index);
/* So far: records; those that are lost; whether the end is missing; problem `index`, its record in *line, or NULL. */
int64_t mpiio_ext_trace_records(const mpiio_ext_trace *trace);
int64_t mpiio_ext_trace_lost(const mpiio_ext_trace *trace);
int mpiio_ext_trace_truncated(const mpiio_ext_trace *trace);
/* Whether its process has not ended it yet: it lives, or was killed. */
int mpiio_ext_trace_running(const mpiio_ext_trace *trace);
/* Bytes so far that are in the file and were left out, of damaged blocks; bytes that the file should have, by its
 * header, and has not. */
int64_t mpiio_ext_trace_unread(const mpiio_ext_trace *trace);
int64_t mpiio_ext_trace_missing(const mpiio_ext_trace *trace);
const char *mpiio_ext_trace_problem(const mpiio_ext_trace *trace, int index, int64_t *line);
/* Whether the user has named the files that are recorded. */
int mpiio_ext_trace_selected(const mpiio_ext_trace *trace);
/* Calls on files of the system, which have no records: how many, on how many files, and ns in them; returns the name of
 * the file with the longest of them, which ends with the trace. */
const char *mpiio_ext_trace_left_out(const mpiio_ext_trace *trace, int64_t numbers[3]);

/* ---- analytics: the sweep line ---- */

/* Critical files and their exclusive times in n intervals [start[i], end[i]), one group after the other (group: NULL
 * for one). state[i]: 0 covered by others, 1 critical, 2 empty, 3 unknown (NaN), 4 ends before it starts, 5 infinite;
 * only 0 and 1 are counted. exclusive[i]: seconds, 0 unless critical. since[i] (since may be NULL): where that part
 * begins, NaN unless critical; it goes to end[i]. 0, MPIOX_E_NOMEM (-1). Pure, reentrant;
 * csrc/tools/analytics/mpiox_critical_path.h. */
int mpiio_ext_critical_path(const int64_t *group, const double *start, const double *end, int64_t n, double *exclusive,
                            double *since, int8_t *state);

/* ---- lock model ---- */

/* A file system and how it locks: docs/explanation/locks.md. protocol: 0 none, 1 each server (Lustre), 2 tokens
 * (GPFS). */
typedef struct mpiio_ext_lock_model_system {
    /* protocol: see above; limits of a lock's growth, as in mpiox_lock_model_types.h */
    int32_t protocol, growth_holders, forward_holders;
    int64_t granularity_bytes;       /* of a lock unit; 0: the stripe size */
    int64_t growth_bytes, rpc_bytes; /* of a lock's growth, 0: no limit; of the largest data request on the wire */
    /* of a small message; of a client, a server, a server for each request: as in mpiox_lock_model_types.h */
    double round_trip_s, enqueue_s, lock_service_s, request_overhead_s;
    double server_bandwidth_bytes_s, client_bandwidth_bytes_s; /* of one server; of one aggregator */
    double commit_s;                                           /* of a server: from a write's transfer to its answer */
    int64_t dirty_server_bytes, dirty_client_bytes; /* limits of a client's cache; 0: none, both 0: no cache */
} mpiio_ext_lock_model_system;

/* How the collectives are carried out. Switches are 0 or 1; shuffle: aggregators in a random order by seed. */
typedef struct mpiio_ext_lock_model_run {
    int64_t window_bytes; /* of one collective buffer */
    /* as in mpiox_lock_model_types.h; collectives: their number, 1 or more */
    int32_t stripe_size_io, reads, synchronise, collectives, shuffle;
    uint64_t seed;       /* of shuffle */
    const int64_t *stop; /* NULL; or another thread sets it to end the run early */
    int64_t *done_bytes; /* NULL; or what has been accessed so far, for other threads to read */
} mpiio_ext_lock_model_run;

/* The region of the first collective, and between whom it is divided; limits: docs/explanation/file-domains.md. */
typedef struct mpiio_ext_lock_model_geometry {
    int64_t start, end;  /* half-open access region, bytes */
    int64_t stripe_size; /* bytes, 1 or more */
    int32_t servers;     /* number of I/O servers that the file's stripes lie on in turn, 1 or more */
    int32_t aggregators; /* number of I/O aggregators, 1 or more */
} mpiio_ext_lock_model_geometry;

/* What the model has counted. */
typedef struct mpiio_ext_lock_model_outcome {
    /* The caller's array, one row for each server of twelve numbers: lock requests, grants, matches, conflicts,
     * revocations, shared lock units, data requests, data bytes, owner changes, distinct aggregators, bytes of the
     * smallest and of the largest data request (0: none). */
    int64_t *counts;
    int64_t sizes[64]; /* number of file-system requests of [2^i, 2^(i+1)) bytes */
    double time_s;     /* when the last aggregator has finished */
    int64_t rounds;    /* number of rounds of all collectives; in each an aggregator handles one window at most */
    int64_t steps;     /* number of steps of all rounds; in each an aggregator has one request at most */
    int32_t aggregators_used; /* number of aggregators after the method's own adjustment */
} mpiio_ext_lock_model_outcome;

/* Run the model. method: name of a file-domain method. MPIOX_E_ARG (-2): something is out of range; MPIOX_E_NOMEM (-1);
 * MPIOX_E_STOPPED (-8): run->stop was set, the numbers are of no use. Not collective; may take seconds to years: about
 * 0.2 us for each stripe of each collective. */
int mpiio_ext_lock_model_simulate(const char *method, const mpiio_ext_lock_model_geometry *geometry,
                                  const mpiio_ext_lock_model_system *system, const mpiio_ext_lock_model_run *run,
                                  mpiio_ext_lock_model_outcome *outcome);

/* cffi: end */

#endif
