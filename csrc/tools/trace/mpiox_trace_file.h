/*
 * mpiox_trace_file.h - writing the trace file of this process. All functions need mpiox_trace_lock(), unless stated
 * otherwise.
 */
#ifndef MPIOX_TRACE_FILE_H
#define MPIOX_TRACE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpiox_tracefile.h"

/* The state for writing a record, side by side: after each system call it has to be fetched anew. */
typedef struct mpiox_trace_writer {
    _Alignas(64) uint8_t *at, *block_end;  /* where the next item goes, and may go to */
    _Atomic uint64_t *committed;           /* of the header, mapped */
    uint64_t to_offset;                    /* of a place in the window: where in the file it is */
    uint64_t records;                      /* so far */
    _Atomic(mpiox_tracefile_slot *) slots; /* never unmapped, since other threads may write; NULL: no file */
    atomic_int generation;                 /* of files: a text or operation is defined once in each */
    _Alignas(64) mpiox_tracefile_state state;
} mpiox_trace_writer;

extern mpiox_trace_writer mpiox_trace_file;

/* A file to write to, created if there is none yet. False: there cannot be one; that has been reported on stderr. */
bool mpiox_trace_file_ready(void);
/* Append. False: the file is full for good. */
bool mpiox_trace_file_record(const mpiox_tracefile_record *record);
bool mpiox_trace_file_begin(const mpiox_tracefile_record *call);
bool mpiox_trace_file_cancel(int64_t thread);
bool mpiox_trace_file_text(int64_t number, const char *text);
bool mpiox_trace_file_operation(int operation, int layer, const char *name);
void mpiox_trace_file_select(bool selected); /* by names that the user gave, before there is a file */
/* Record the calls on system files that were left out so far; false: there is no file yet. */
bool mpiox_trace_file_leave_out(const mpiox_tracefile_left_out *left_out, const char *name);
void mpiox_trace_file_rank(void); /* the rank is known from now on: the file's name contains it */
/* Record how the process ended, and cut the file to its contents. `again`: later records begin another file. */
void mpiox_trace_file_end(int state, bool again);
void mpiox_trace_file_mark(int state); /* change the state alone: MPIOX_TRACEFILE_EXECUTED, _RUNNING */
void mpiox_trace_file_forget(void);    /* in the child of a fork: the file is the parent's */

/* Number of files that this process has begun. */
static inline int mpiox_trace_file_generation(void)
{
    return atomic_load_explicit(&mpiox_trace_file.generation, memory_order_relaxed);
}

/* Whether a record can be written at once; then there is a file. */
static inline bool mpiox_trace_file_has_room(void)
{
    return mpiox_trace_file.block_end - mpiox_trace_file.at >= MPIOX_TRACEFILE_ITEM_MAX;
}

/* Written bytes are part of the file from now on. */
static inline void mpiox_trace_file_commit(void)
{
    atomic_store_explicit(mpiox_trace_file.committed,
                          (uint64_t)(uintptr_t)mpiox_trace_file.at + mpiox_trace_file.to_offset, memory_order_release);
}

/* Append, where there is room. */
static inline void mpiox_trace_file_append(const mpiox_tracefile_record *record)
{
    mpiox_trace_file.at = mpiox_tracefile_encode(&mpiox_trace_file.state, record, mpiox_trace_file.at);
    mpiox_trace_file.records++;
    mpiox_trace_file_commit();
}

/* ---- what a thread is doing, for the case that the process is killed meanwhile; without the lock ----------------- */

static inline mpiox_tracefile_slot *mpiox_trace_file_slot(int64_t thread, int64_t depth)
{
    mpiox_tracefile_slot *all = atomic_load_explicit(&mpiox_trace_file.slots, memory_order_acquire);

    if (all == NULL || thread >= MPIOX_TRACEFILE_SLOT_THREADS || depth >= MPIOX_TRACEFILE_SLOT_LEVELS)
        return NULL;
    return &all[thread * MPIOX_TRACEFILE_SLOT_LEVELS + depth];
}

static inline bool mpiox_trace_file_noting(void)
{
    return atomic_load_explicit(&mpiox_trace_file.slots, memory_order_relaxed) != NULL;
}

static inline void mpiox_trace_file_put_slot(mpiox_tracefile_slot *slot, uint64_t what)
{
    atomic_store_explicit((_Atomic uint64_t *)(void *)&slot->what, what, memory_order_release);
}

/* Once its operation and the name of its file are defined. */
static inline void mpiox_trace_file_note(const mpiox_tracefile_record *call)
{
    mpiox_tracefile_slot *slot = mpiox_trace_file_slot(call->thread, call->depth);

    if (slot == NULL)
        return;
    slot->start = call->start;
    slot->handle = call->handle;
    slot->file = call->file;
    mpiox_trace_file_put_slot(slot, MPIOX_TRACEFILE_SLOT(call->operation, call->layer));
}

static inline void mpiox_trace_file_done(int64_t thread, int64_t depth)
{
    mpiox_tracefile_slot *slot = mpiox_trace_file_slot(thread, depth);

    if (slot != NULL)
        mpiox_trace_file_put_slot(slot, 0);
}

#endif
