/*
 * mpiox_trace_lock.h - the state of a thread, and the one lock of the tracer.
 *
 * Problem.   Threads, signal handlers and the tracer's own calls must not disturb each other, at the cost of some tens
 *            of nanoseconds a call.
 * Algorithm. A word in memory, which names the thread that has locked it: another one that finds it locked yields. A
 *            process of one thread does not use it. A thread notes that it is inside the tracer before it locks; calls
 *            that it makes then, or a signal handler in it, are not recorded. A signal handler that ends the process or
 *            forks needs the lock that the code under it may have: it does not wait for itself.
 */
#ifndef MPIOX_TRACE_LOCK_H
#define MPIOX_TRACE_LOCK_H

#include <features.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { MPIOX_TRACE_FRAMES = 32 };

typedef struct mpiox_trace_thread {
    int inside;   /* of the tracer itself */
    int again;    /* locks of a signal handler, beyond that of the code under it */
    int depth;    /* MPI calls that are being made */
    int number;   /* from 1 on; 0: none yet */
    int64_t time; /* the last one that the thread has read, ns */
    /* For the outermost call of MPI under way: ns in calls on files, and those of them that are in no record; ns that
     * the library has reported, and those of them in which it waited for other ranks; and whether the library carries
     * it out. */
    int64_t in_files, unrecorded, reported, waited;
    int own;
    struct mpiox_recording_doing *doing; /* where it records its present call; NULL: nowhere, or not known yet */
    int frames;                          /* of them, those whose place on the stack is known: the innermost ones */
    uintptr_t frame[MPIOX_TRACE_FRAMES];
} mpiox_trace_thread;

extern _Thread_local mpiox_trace_thread mpiox_trace_self __attribute__((tls_model("initial-exec")));

extern atomic_uintptr_t mpiox_trace_lock_word; /* 0: unlocked */

#ifdef __GLIBC__
/* Not 0: the process has one thread, which the lock need not keep from others. C libraries before 2.32 have none. */
extern char __libc_single_threaded __attribute__((weak));
#define MPIOX_TRACE_ALONE (&__libc_single_threaded != NULL && __libc_single_threaded != 0)
#else
#define MPIOX_TRACE_ALONE 0
#endif

void mpiox_trace_lock_wait(void); /* until it is free, and take it; at once if this thread has it */

static inline void mpiox_trace_lock(void)
{
    uintptr_t unlocked = 0;

    mpiox_trace_self.inside++;
    if (!MPIOX_TRACE_ALONE && __builtin_expect(!atomic_compare_exchange_strong_explicit(
                                                   &mpiox_trace_lock_word, &unlocked, (uintptr_t)&mpiox_trace_self,
                                                   memory_order_acquire, memory_order_relaxed),
                                               0))
        mpiox_trace_lock_wait();
}

static inline void mpiox_trace_unlock(void)
{
    if (__builtin_expect(mpiox_trace_self.again > 0, 0))
        mpiox_trace_self.again--;
    else
        atomic_store_explicit(&mpiox_trace_lock_word, 0, memory_order_release);
    mpiox_trace_self.inside--;
}

#endif
