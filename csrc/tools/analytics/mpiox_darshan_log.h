/*
 * mpiox_darshan_log.h - one Darshan log as rows.
 */
#ifndef MPIOX_DARSHAN_LOG_H
#define MPIOX_DARSHAN_LOG_H

#include <stdint.h>

#include "mpiox_darshan_library.h"
#include "mpiox_darshan_rows.h"

/* The parts of a log. One that cannot be read is left out, and the log is read again without it. */
enum {
    MPIOX_DARSHAN_STAGE_OPEN, /* header, job, list of modules: without them there is nothing */
    MPIOX_DARSHAN_STAGE_NAMES,
    MPIOX_DARSHAN_STAGE_MOUNTS,
    MPIOX_DARSHAN_STAGE_POSIX,
    MPIOX_DARSHAN_STAGE_STDIO,
    MPIOX_DARSHAN_STAGE_MPIIO,
    MPIOX_DARSHAN_STAGE_LUSTRE,
    MPIOX_DARSHAN_STAGES
};

enum { MPIOX_DARSHAN_BLAME = 192 }; /* bytes of a reason */

/* Where a reader stands; in memory that its parent sees. */
typedef struct mpiox_darshan_progress {
    volatile int64_t log;   /* index of the log */
    volatile int64_t stage; /* MPIOX_DARSHAN_STAGE_* */
    volatile int64_t beat;  /* changes as long as something goes on */
} mpiox_darshan_progress;

/* Why parts of this log must not be read (again); empty: read the part. */
typedef struct mpiox_darshan_blame {
    char why[MPIOX_DARSHAN_STAGES][MPIOX_DARSHAN_BLAME];
} mpiox_darshan_blame;

/* Read a log and append its rows: always one to the logs; one to the jobs and any number to the files unless it is
 * skipped. `blame` (copied) may exclude parts. `messages` is a descriptor of a file that receives what the library
 * writes to standard error, or -1. 0, or MPIOX_E_NOMEM: then the rows are as before. */
int mpiox_darshan_log_read(const mpiox_darshan_library *library, const char *path, const mpiox_darshan_blame *blame,
                           int messages, mpiox_darshan_progress *progress, mpiox_darshan_rows *rows);
/* Append the row of a log of which nothing could be read. */
void mpiox_darshan_log_skip(mpiox_darshan_rows *rows, const char *why);
/* "header", "file names", "POSIX" ... */
const char *mpiox_darshan_stage_name(int stage);

#endif
