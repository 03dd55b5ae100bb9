/*
 * mpiox_darshan_isolated.h - many logs as rows, read in a child process that may crash.
 */
#ifndef MPIOX_DARSHAN_ISOLATED_H
#define MPIOX_DARSHAN_ISOLATED_H

#include <stdint.h>

#include "mpiox_darshan_library.h"
#include "mpiox_darshan_rows.h"

typedef struct mpiox_darshan_limits {
    double patience_s;    /* without any progress for so long, the child is ended and the log blamed */
    int64_t memory_bytes; /* that the child may take beyond what the process has; 0: no limit */
    int64_t rows_bytes;   /* stop after the log that makes the rows larger */
} mpiox_darshan_limits;

/* Read logs (`paths`: `count` strings, one behind the other, each with its NUL) and append one row to the logs for
 * each. Returns how many were read, fewer than `count` only at limits->rows_bytes; or MPIOX_E_NOMEM, MPIOX_E_IO (no
 * pipe or process; errno says why). */
int64_t mpiox_darshan_isolated_read(const mpiox_darshan_library *library, const char *paths, int64_t count,
                                    const mpiox_darshan_limits *limits, mpiox_darshan_rows *rows);

#endif
