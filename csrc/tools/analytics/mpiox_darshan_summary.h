/*
 * mpiox_darshan_summary.h - one log as a row of scalars: totals, extremes and counts over the records of POSIX, the
 * slowest rank's time, and what each interface moved.
 */
#ifndef MPIOX_DARSHAN_SUMMARY_H
#define MPIOX_DARSHAN_SUMMARY_H

#include <stdint.h>

#include "mpiox_darshan_files.h"
#include "mpiox_darshan_library.h"
#include "mpiox_darshan_rows.h"

typedef struct mpiox_darshan_summary {
    mpiox_darshan_slot slots[MPIOX_DARSHAN_SUMMARY_WIDTH];
    mpiox_darshan_map ranks; /* rank -> place in unique_times */
    double *unique_times;    /* s in I/O on files of its own, by rank */
    int64_t rank_count, rank_capacity;
} mpiox_darshan_summary;

/* Forget everything, keep the memory; free it. A zeroed summary has to be cleared before its first record. */
void mpiox_darshan_summary_clear(mpiox_darshan_summary *summary);
void mpiox_darshan_summary_release(mpiox_darshan_summary *summary);
/* Count a record of `kind` (MPIOX_DARSHAN_POSIX ...). MPIOX_E_NOMEM. */
int mpiox_darshan_summary_add(mpiox_darshan_summary *summary, const mpiox_darshan_library *library, int kind,
                              const mpiox_darshan_record *record);
/* After the last record: the time of the slowest rank. */
void mpiox_darshan_summary_finish(mpiox_darshan_summary *summary, int64_t log_id);

#endif
