/* mpiox_recording.h - calls as counters: the contents of a recording, in place of the calls themselves. */
#ifndef MPIOX_RECORDING_H
#define MPIOX_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_recording_file.h"
#include "mpiox_trace_lock.h"
#include "mpiox_trace_names.h"
#include "mpiox_tracefile.h"

/* Under mpiox_trace_lock(): count a call that has ended. */
void mpiox_recording_add(const mpiox_tracefile_record *call);
/* Under mpiox_trace_lock(): count a read or write by POSIX that has moved `size` bytes, where it is like the one before
 * it of that file, direction and size. False: it is not, and nothing was counted. */
bool mpiox_recording_read_again(int64_t file, int64_t offset, int64_t size, int64_t start, int64_t end);
bool mpiox_recording_write_again(int64_t file, int64_t offset, int64_t size, int64_t start, int64_t end);
/* Under mpiox_trace_lock(): whether calls that begin then count; and what of files of the system was left out so far
 * (false: there is no recording yet). */
bool mpiox_recording_counts(int64_t start);
bool mpiox_recording_leave_out(const mpiox_tracefile_left_out *left_out);
/* Under mpiox_trace_lock(): within the call of MPI-IO that this thread is in, the library has waited for other ranks,
 * or exchanged messages. */
void mpiox_recording_add_part(bool waiting, int64_t start, int64_t end);
/* Under mpiox_trace_lock(): whether a view of a file has to be described, and its description. */
bool mpiox_recording_wants_view(int64_t file);
void mpiox_recording_add_view(int64_t file, const char *text);
/* Without the lock: this thread begins a call, has ended it; `operation`: its name where it is one of MPI, else NULL.
 * Then: what the library does within the call of MPI-IO that the thread is in, since when. */
void mpiox_recording_begin(const mpiox_tracefile_record *call, const char *operation);
void mpiox_recording_done(int64_t thread, int64_t depth);
void mpiox_recording_attach(void); /* let mpiox_recording_moves() know this thread's place */
void mpiox_recording_in_part(bool waiting, int64_t since);
void mpiox_recording_in_own(void);
/* Under mpiox_trace_lock(): MPI_Finalize begins; nothing is counted from now on. */
void mpiox_recording_stop(int64_t now);

/* Where this thread records its present call; NULL: nowhere. */
static inline mpiox_recording_doing *mpiox_recording_doing_of(int64_t thread, int64_t depth)
{
    mpiox_recording_header *page = atomic_load_explicit(&mpiox_recording_page, memory_order_relaxed);

    return page != NULL && (uint64_t)thread < MPIOX_RECORDING_THREADS ? &page->doing[thread][depth > 0] : NULL;
}

/* A file of the system has no name in a recording. */
static inline int32_t mpiox_recording_known(int64_t file)
{
    return (file & MPIOX_TRACE_LEFT_OUT) == 0 ? (int32_t)file : 0;
}

static inline void mpiox_recording_put(mpiox_recording_doing *doing, int class)
{
    atomic_store_explicit((_Atomic int32_t *)(void *)&doing->class, class, memory_order_release);
}

/* The same as mpiox_recording_begin() of a call on a descriptor, for what is called most. */
static inline mpiox_recording_doing *mpiox_recording_moves(int class, int32_t file, int64_t start)
{
    mpiox_recording_doing *doing = mpiox_trace_self.doing;

    if (doing == NULL)
        return NULL;
    doing += mpiox_trace_self.depth > 0;
    doing->start = start;
    doing->name = mpiox_recording_known(file);
    mpiox_recording_put(doing, class + 1);
    return doing;
}

static inline void mpiox_recording_has_moved(mpiox_recording_doing *doing)
{
    if (doing != NULL)
        mpiox_recording_put(doing, 0);
}

#endif
