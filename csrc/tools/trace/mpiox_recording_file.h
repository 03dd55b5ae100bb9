/*
 * mpiox_recording_file.h - the file of this process's recording.
 *
 * All functions but mpiox_recording_note_exit() and _abort(): under mpiox_trace_lock().
 */
#ifndef MPIOX_RECORDING_FILE_H
#define MPIOX_RECORDING_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpiox_recording_format.h"

typedef struct mpiox_recording_file {
    mpiox_recording_header *header; /* mapped, with what follows it; NULL: there is no file */
    uint64_t used, taken, capacity; /* bytes: that hold something, that have disk space, at most */
    int32_t generation;             /* of contents: changes when all that was recorded is given up */
} mpiox_recording_file;

extern mpiox_recording_file mpiox_recording;
/* The header once more, mapped for ever, since threads write to it without the lock. NULL: there is no file. */
extern _Atomic(mpiox_recording_header *) mpiox_recording_page;

/* How much there may be, by the environment, before everything else. Returns what the names of files may take in
 * memory. */
int64_t mpiox_recording_bound(void);
/* A file to record into, made when there is none yet, at that time. False: there cannot be one. */
bool mpiox_recording_ready(int64_t now);
/* Room for an item, all 0 but its kind and bytes. NULL: there is none, unless `spare` bytes of the rest may be used. It
 * is part of the recording once it is published. */
void *mpiox_recording_take(int kind, uint64_t bytes, uint64_t spare);
void mpiox_recording_publish(void);
void mpiox_recording_restart(int64_t now);       /* give up what was recorded so far */
void mpiox_recording_rank(void);                 /* the rank is known from now on: the file's name contains it */
void mpiox_recording_end(int state, bool again); /* `again`: what follows begins another file */
void mpiox_recording_mark(int state);
/* the machine's resources that it got until the start (0), and until the end (1) */
void mpiox_recording_measure(int which);
void mpiox_recording_note_exit(int status);             /* the process is about to end */
void mpiox_recording_note_abort(int code, int64_t now); /* it calls MPI_Abort */
void mpiox_recording_forget(void);                      /* in the child of a fork: the file is the parent's */

static inline uint32_t mpiox_recording_place(const void *item)
{
    return (uint32_t)((const uint8_t *)item - (const uint8_t *)mpiox_recording.header);
}

static inline void *mpiox_recording_at(uint32_t place)
{
    return (uint8_t *)mpiox_recording.header + place;
}

#endif
