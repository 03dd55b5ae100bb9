/*
 * mpiox_darshan_library.h - libdarshan-util, opened at run time.
 *
 * Nothing here is linked to it: it comes with the Python package `darshan`, and only who converts logs needs it. The
 * declarations repeat what it exports (darshan-logutils.h, darshan-log-format.h; PyDarshan's backend/api_def_c.py);
 * counters are found by name, so that a library with more of them, or fewer, is read as it is.
 */
#ifndef MPIOX_DARSHAN_LIBRARY_H
#define MPIOX_DARSHAN_LIBRARY_H

#include <stdint.h>

typedef struct mpiox_darshan_job {
    int64_t uid;
    int64_t start_time_sec;
    int64_t start_time_nsec;
    int64_t end_time_sec;
    int64_t end_time_nsec;
    int64_t nprocs;
    int64_t jobid;
    char metadata[1024];
} mpiox_darshan_job;

typedef struct mpiox_darshan_mount {
    char type[3015];
    char path[3015];
} mpiox_darshan_mount;

typedef struct mpiox_darshan_module {
    char *name;
    int len;
    int ver;
    int idx;
    int partial_flag;
} mpiox_darshan_module;

typedef struct mpiox_darshan_name {
    uint64_t id;
    char *name;
} mpiox_darshan_name;

/* A record of POSIX, STDIO or MPI-IO: this, then the module's integer counters, then its doubles. */
typedef struct mpiox_darshan_record {
    uint64_t id;
    int64_t rank; /* -1: shared by all ranks and reduced to one record */
    int64_t counters[];
} mpiox_darshan_record;

/* How a counter of a record joins the row of its file. */
enum { MPIOX_DARSHAN_SUM, MPIOX_DARSHAN_MAX, MPIOX_DARSHAN_FIRST, MPIOX_DARSHAN_LAST, MPIOX_DARSHAN_OPENS };
/* The kinds of records, and their module's index in a log. */
enum { MPIOX_DARSHAN_POSIX, MPIOX_DARSHAN_STDIO, MPIOX_DARSHAN_MPIIO, MPIOX_DARSHAN_KINDS };

enum { MPIOX_DARSHAN_MAX_RULES = 64 };
/* Counters of POSIX of which a summary has the sum, the number, the least and the greatest: integers, then times. */
enum { MPIOX_DARSHAN_OBSERVED_INTEGERS = 10, MPIOX_DARSHAN_OBSERVED = 13 };

typedef struct mpiox_darshan_rule {
    int16_t counter; /* index in the record's counters, doubles counted behind the integers */
    int16_t column;  /* of darshan_file */
    int8_t how;      /* MPIOX_DARSHAN_SUM ... */
    int8_t is_double;
} mpiox_darshan_rule;

/* What the library says about one kind of record. */
typedef struct mpiox_darshan_kind {
    int counters; /* integers */
    int doubles;
    int rules;
    mpiox_darshan_rule rule[MPIOX_DARSHAN_MAX_RULES];
    /* of a shared record, or -1: times (doubles), bytes and rank of its fastest and slowest rank */
    int fastest_time, slowest_time, fastest_bytes, slowest_bytes, slowest_rank;
    int bytes_read, bytes_written; /* counters, or -1 */
    int syncs[2];                  /* of fsync and fdatasync, or -1 */
    int observed[MPIOX_DARSHAN_OBSERVED];
} mpiox_darshan_kind;

typedef struct mpiox_darshan_library {
    void *handle;
    const char *version;
    void *(*open)(const char *path);
    void (*close)(void *log);
    int (*get_job)(void *log, mpiox_darshan_job *job);
    int (*get_runtime)(void *log, mpiox_darshan_job job, double *seconds);
    int (*get_exe)(void *log, char *text);
    int (*get_mounts)(void *log, mpiox_darshan_mount **mounts, int *count);
    void (*get_modules)(void *log, mpiox_darshan_module **modules, int *count);
    void (*get_names)(void *log, mpiox_darshan_name **names, int *count);
    int (*get_record)(void *log, int module, void **record);
    int (*get_mod)(void *log, int module, void *bytes, int count);
    void (*free)(void *memory);
    mpiox_darshan_kind kinds[MPIOX_DARSHAN_KINDS];
} mpiox_darshan_library;

/* Open the library at `path`. MPIOX_E_UNSUPPORTED and a sentence in `problem` when it is missing or not the one. */
int mpiox_darshan_library_open(const char *path, mpiox_darshan_library *library, char *problem, int64_t problem_bytes);
void mpiox_darshan_library_close(mpiox_darshan_library *library);

#endif
