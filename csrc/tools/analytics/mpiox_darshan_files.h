/*
 * mpiox_darshan_files.h - the files of one log: records of its modules and ranks, joined to one row each.
 */
#ifndef MPIOX_DARSHAN_FILES_H
#define MPIOX_DARSHAN_FILES_H

#include <stdint.h>

#include "mpiox_darshan_library.h"
#include "mpiox_darshan_rows.h"

typedef struct mpiox_darshan_file {
    mpiox_darshan_slot slots[MPIOX_DARSHAN_FILE_WIDTH];
    uint64_t id;
    int64_t root_bytes; /* written by rank 0, from records of its own */
    int64_t osts;       /* where they begin in the table's list */
    int32_t ost_count;
    int8_t records; /* bit k: has records of kind k */
    int8_t opened;  /* by any rank, through any interface */
    int8_t opened_by_all;
    int8_t shared;  /* has a shared record of POSIX or STDIO */
    int8_t private; /* has records of single ranks of POSIX or STDIO */
    int8_t has_extremes;
    int8_t synced; /* POSIX has syncs of it */
} mpiox_darshan_file;

typedef struct mpiox_darshan_opener {
    int64_t file; /* row */
    int64_t rank;
} mpiox_darshan_opener;

/* From a 64-bit ID to a number; open addressing, `capacity` a power of two. */
typedef struct mpiox_darshan_map {
    struct mpiox_darshan_entry {
        uint64_t id;
        int64_t value; /* index + 1; 0: free */
    } *entries;
    int64_t capacity;
    int64_t count;
} mpiox_darshan_map;

/* The index of an ID, or -1. */
int64_t mpiox_darshan_map_find(const mpiox_darshan_map *map, uint64_t id);
/* Add an ID that is not there. MPIOX_E_NOMEM. */
int mpiox_darshan_map_add(mpiox_darshan_map *map, uint64_t id, int64_t index);
void mpiox_darshan_map_free(mpiox_darshan_map *map);

/* Zeroed: an empty table. */
typedef struct mpiox_darshan_files {
    mpiox_darshan_file *files;
    int64_t count, capacity;
    mpiox_darshan_map map;
    mpiox_darshan_opener *openers; /* every (file, rank) that a record says has opened it, maybe twice */
    int64_t opener_count, opener_capacity;
    int32_t *osts;
    int64_t ost_count, ost_capacity;
} mpiox_darshan_files;

/* Forget everything, keep the memory; free it. */
void mpiox_darshan_files_clear(mpiox_darshan_files *files);
void mpiox_darshan_files_release(mpiox_darshan_files *files);
/* The file of an ID, made when it is new; NULL without memory. Valid until the next file is added. */
mpiox_darshan_file *mpiox_darshan_files_at(mpiox_darshan_files *files, uint64_t id);
/* Join a record of `kind` (MPIOX_DARSHAN_POSIX ...). MPIOX_E_NOMEM. */
int mpiox_darshan_files_join(mpiox_darshan_files *files, const mpiox_darshan_library *library, int kind,
                             const mpiox_darshan_record *record);
/* After the last record: count ranks, make times absolute (`start`, seconds since 1970); a file is written until its
 * last sync ends, `run_time` seconds from the start at most (negative: unknown). */
void mpiox_darshan_files_finish(mpiox_darshan_files *files, int64_t processes, double start, double run_time);
/* Read all Lustre records of an open log: `module` is the module's index in the log, `version` its version, `swap` is 1
 * when the log has the other byte order. 0; MPIOX_E_NOMEM; MPIOX_E_CORRUPT; MPIOX_E_UNSUPPORTED for a newer version. */
int mpiox_darshan_layout_read(mpiox_darshan_files *files, const mpiox_darshan_library *library, void *log, int module,
                              int version, int swap, volatile int64_t *beat);

#endif
