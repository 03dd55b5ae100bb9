/*
 * mpiox_recording_format.h - the format of one process's recording: the recorder writes it,
 * pioneer/darshan/recordings.py reads it.
 *
 * Problem. A trace grows with the calls. A recording must not, must survive the death of its process at any moment, and
 *          show what is missing.
 * Layout.  A header, then items one behind the other, each with its kind and its bytes (a multiple of 8), up to `used`.
 *          An item is complete before `used` includes it; its counters grow in place. Moments are CLOCK_MONOTONIC in
 *          ns; 0: there is none. Arrays of two: reads, writes.
 */
#ifndef MPIOX_RECORDING_FORMAT_H
#define MPIOX_RECORDING_FORMAT_H

#include <stdint.h>

#include "mpiox_tracefile.h"

#define MPIOX_RECORDING_MAGIC "MPIOXREC"
#define MPIOX_RECORDING_OTHERS "<other files>" /* the name of what had no room for a record of its own */

enum {
    MPIOX_RECORDING_VERSION = 4,
    MPIOX_RECORDING_HEADER_BYTES = 4096,
    MPIOX_RECORDING_COUNTS = 16,
    MPIOX_RECORDING_FEW = 4,   /* values that are followed in the record itself */
    MPIOX_RECORDING_MORE = 28, /* further ones */
    MPIOX_RECORDING_BUCKETS = 10,
    MPIOX_RECORDING_ALIGNED = 17,    /* places by the power of two that divides them: below 2^9, 2^9 ... from 2^24 on */
    MPIOX_RECORDING_FIRST_POWER = 9, /* the least one that is distinguished */
    MPIOX_RECORDING_VIEWS = 8,       /* of a file: further ones are not counted */
    MPIOX_RECORDING_VIEW_BYTES = 320,
    MPIOX_RECORDING_BINS = 200,            /* as Darshan's heat maps have at most */
    MPIOX_RECORDING_FIRST_BIN = 100000000, /* ns */
    MPIOX_RECORDING_THREADS = 4,           /* whose calls in progress are recorded: those that made the first calls */
    MPIOX_RECORDING_LEVELS = 2,            /* of these: the call itself, one on a file inside of an MPI-IO call */
    MPIOX_RECORDING_OPERATION_BYTES = 32,
    MPIOX_RECORDING_OPENED_BYTES = 400
};

/* How a recording ended; as that of a trace. */
enum { MPIOX_RECORDING_RUNNING, MPIOX_RECORDING_CLOSED, MPIOX_RECORDING_EXECUTED };

enum { MPIOX_RECORDING_POSIX, MPIOX_RECORDING_MPIIO, MPIOX_RECORDING_STDIO, MPIOX_RECORDING_MODULES };

/* Classes of time: calls on files; and calls of MPI-IO without those. If the library carries a call out it reports when
 * it waits for other ranks and when it exchanges messages with other nodes, and the rest is its own; if the MPI library
 * does, the parts are unknown. */
enum {
    MPIOX_RECORDING_READ,
    MPIOX_RECORDING_WRITE,
    MPIOX_RECORDING_META,
    MPIOX_RECORDING_IN_MPI, /* the MPI library carries it out */
    MPIOX_RECORDING_IN_LIBRARY,
    MPIOX_RECORDING_WAITING,
    MPIOX_RECORDING_MESSAGES,
    MPIOX_RECORDING_CLASSES,
    MPIOX_RECORDING_NO_CLASS = MPIOX_RECORDING_CLASSES
};

/* Lanes of bins: bytes of module m read 2 * m, written 2 * m + 1; then ns of each class. */
enum { MPIOX_RECORDING_LANES = 2 * MPIOX_RECORDING_MODULES + MPIOX_RECORDING_CLASSES };

enum {
    MPIOX_RECORDING_NAME = 1,
    MPIOX_RECORDING_RECORD,
    MPIOX_RECORDING_VALUES,
    MPIOX_RECORDING_LANE,
    MPIOX_RECORDING_SEGMENTS,
    MPIOX_RECORDING_STEPS,
    MPIOX_RECORDING_NOTHING, /* bytes given up for a larger item */
    MPIOX_RECORDING_VIEW,
    MPIOX_RECORDING_TALLY
};

/* A call that a thread is in: the only trace of it if the process was killed there. */
typedef struct mpiox_recording_doing {
    int64_t start, part_start;
    int32_t name;  /* number of a name; 0: none; -1: `opened` has it */
    int32_t class; /* of time, and 1 added: written last; 0: there is no call */
    int32_t part;  /* the library's part of the call since part_start: a class and 1; 0: not known */
    int32_t own;   /* the library carries the call out */
} mpiox_recording_doing;

typedef struct mpiox_recording_header {
    char magic[8];
    uint32_t version, header_bytes, state, changing; /* changing: bins or steps are being rearranged */
    uint64_t capacity, used;                         /* bytes of the file: at most; that hold something */
    int64_t unix_minus_monotonic;
    int64_t started, stopped, last; /* MPI_Init has ended, or the process began; MPI_Finalize; the last call's end */
    int64_t pid, parent;
    int32_t rank, ranks;     /* -1, 0: not known */
    uint64_t others;         /* files without a record of their own */
    uint64_t unkept;         /* accesses without a segment */
    int64_t bin_ns, step_ns; /* width of a bin; time that is not distinguished within a step */
    char host[256], command[2048];
    char counts[MPIOX_RECORDING_MODULES][256]; /* names of `counts` of the module's records, with spaces between */
    uint32_t exited;                           /* the process has reported its end, with this status */
    int32_t exit_status;
    /* At `started`, and at MPI_Finalize or the end: ns of CPU time of the process, ns in which its first thread waited
     * for a CPU (0: Linux does not count them), and how often the process had to leave one. */
    int64_t cpu[2], queued[2], switches[2];
    int64_t left, aborted; /* the end was reported; MPI_Abort was called */
    int32_t abort_code;
    uint32_t heard; /* set by the process that watches the run: it has printed the line on the terminal */
    mpiox_recording_doing doing[MPIOX_RECORDING_THREADS][MPIOX_RECORDING_LEVELS];
    char operation[MPIOX_RECORDING_THREADS][MPIOX_RECORDING_OPERATION_BYTES]; /* name of the outermost call of MPI */
    char opened[MPIOX_RECORDING_OPENED_BYTES]; /* the end of the name of a file that has no other record yet */
    mpiox_tracefile_left_out left_out;
} mpiox_recording_header;

typedef struct mpiox_recording_item {
    uint32_t kind, bytes;
} mpiox_recording_item;

typedef struct mpiox_recording_name {
    mpiox_recording_item item;
    int64_t number;
    char text[]; /* ended by 0 */
} mpiox_recording_name;

/* One of the first views of a file: the name of its etype, a space, its file type (mpiox_trace_view.h). */
typedef struct mpiox_recording_view {
    mpiox_recording_item item;
    int64_t name;
    char text[]; /* ended by 0 */
} mpiox_recording_view;

/* The calls on a file by one module. */
typedef struct mpiox_recording_record {
    mpiox_recording_item item;
    uint32_t module, name;       /* number of the name */
    uint32_t values[2], more[2]; /* sizes, strides: how many are followed; place of the VALUES in the file, or 0 */
    int64_t counts[MPIOX_RECORDING_COUNTS];
    int64_t mode, renamed_from; /* number of a name */
    int64_t bytes[2], max_byte[2], consecutive[2], sequential[2], switches;
    int64_t buckets[2][MPIOX_RECORDING_BUCKETS];
    int64_t aligned[MPIOX_RECORDING_ALIGNED];
    int64_t first[4], last[4]; /* moments: begins and ends of opens, reads, writes, closes */
    int64_t busy[3];           /* ns in reads, in writes, in calls on metadata */
    /* Of MPI-IO: ns in which ranks wait for others, as the library reports, in calls that move bytes and in other ones;
     * and ns in calls on files that are in no record. */
    int64_t waited[2], unrecorded;
    int64_t longest[2], longest_size[2];
    int64_t value[2][MPIOX_RECORDING_FEW], often[2][MPIOX_RECORDING_FEW];
    /* the base of comparison for the next call */
    int64_t last_byte[2], busy_until[3], last_kind;
} mpiox_recording_record;

/* The calls of one function on one file with one outcome: those of MPI-IO, and of the others all but the accesses that
 * a record counts. */
typedef struct mpiox_recording_tally {
    mpiox_recording_item item;
    uint32_t name, next; /* number of the name, 0: of several files; place of the function's next one, or 0 */
    uint32_t inside;     /* made inside of a call of MPI-IO */
    int32_t error;       /* 0: they succeeded; of POSIX and stdio errno, -1: not known; of MPI not 0 */
    int64_t calls, ns;
    char operation[MPIOX_RECORDING_OPERATION_BYTES], class[MPIOX_RECORDING_OPERATION_BYTES]; /* of the error, of MPI */
} mpiox_recording_tally;

/* Further sizes or strides of a record. */
typedef struct mpiox_recording_values {
    mpiox_recording_item item;
    int64_t value[MPIOX_RECORDING_MORE], often[MPIOX_RECORDING_MORE];
} mpiox_recording_values;

typedef struct mpiox_recording_lane {
    mpiox_recording_item item;
    int64_t lane, bin[MPIOX_RECORDING_BINS];
} mpiox_recording_lane;

/* An access, as it was. */
typedef struct mpiox_recording_segment {
    int64_t offset, length, start, duration;
    uint32_t name, module, writes, reserved;
} mpiox_recording_segment;

typedef struct mpiox_recording_segments {
    mpiox_recording_item item;
    int64_t count;
    mpiox_recording_segment segment[];
} mpiox_recording_segments;

/* Calls of a class that follow each other closely. */
typedef struct mpiox_recording_step {
    int64_t start, end, busy, bytes, calls; /* busy: ns of the class between start and end */
    uint32_t name, class;                   /* name 0: of several files */
} mpiox_recording_step;

typedef struct mpiox_recording_steps {
    mpiox_recording_item item;
    int64_t count;
    mpiox_recording_step step[];
} mpiox_recording_steps;

#endif
