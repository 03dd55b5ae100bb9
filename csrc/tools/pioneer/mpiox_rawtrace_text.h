/*
 * mpiox_rawtrace_text.h - lines of strace and ltrace (and LANL-Trace, which is ltrace).
 *
 *   [PID] TIME [PROG->]NAME(ARGUMENTS) = RESULT [ERRNO (TEXT)] [<SECONDS>]
 *   [PID] TIME NAME(ARGUMENTS <unfinished ...>          and, lines later, of the same thread
 *   [PID] TIME <... NAME resumed> ARGUMENTS) = RESULT [<SECONDS>]
 *   [PID] TIME --- SIGNAL ... ---     [PID] TIME +++ exited ... +++      strace: Process ... attached
 *
 * Problem.   If lines of other threads come between, a tracer cuts a call into two lines. ltrace also cuts a call that
 *            has calls inside: both kinds look alike.
 * Algorithm. Each thread has a stack of the calls that are cut; the end belongs to the topmost of that name. Depth of a
 *            call: the MPI_* on the stack of its thread when it begins. A thread that is made inside of such a call is
 *            the MPI library's: its calls are as deep as those of its maker. The first line of a thread stands before
 *            or after the return of the call that makes the thread. A thread begins in the working folder of its maker,
 *            and shares the folder with CLONE_FS.
 * Guarantee. Each line is a row, a part of one, a signal or exit, or is counted as a problem.
 */
#ifndef MPIOX_RAWTRACE_TEXT_H
#define MPIOX_RAWTRACE_TEXT_H

#include "mpiox_rawtrace_call.h"
#include "mpiox_rawtrace_rows.h"

enum { MPIOX_RAWTRACE_TIME_UNKNOWN, MPIOX_RAWTRACE_TIME_DAY, MPIOX_RAWTRACE_TIME_EPOCH, MPIOX_RAWTRACE_TIME_DELTA };

/* A call of which the end has not come. */
typedef struct mpiox_rawtrace_pending {
    int64_t number;                     /* of its row */
    const char *name;                   /* of the function, without a NUL */
    char *arguments;                    /* those that have come; owned */
    int64_t name_bytes, argument_bytes; /* bytes of `name`; of `arguments` */
    int depth;                          /* brackets that are open in them */
    bool is_mpi, makes;                 /* makes: a thread or a process */
} mpiox_rawtrace_pending;

typedef struct mpiox_rawtrace_thread {
    mpiox_rawtrace_pending *stack; /* its calls without end, the innermost one last; owned */
    int64_t id;                    /* as in the trace */
    int32_t count, capacity;       /* calls in `stack`; room for them */
    int32_t mpi;                   /* calls of MPI around it, those of its maker included */
    int32_t folder;                /* its working folder, as in mpiox_rawtrace_calls */
    int32_t shared;                /* number + 1 of the thread whose working folder it has; 0: its own */
} mpiox_rawtrace_thread;

/* Zeroed memory is the state before a file. */
typedef struct mpiox_rawtrace_text {
    mpiox_rawtrace_thread *threads;                     /* [thread_count]; owned */
    int32_t *places;                                    /* of threads, by hashed id: number + 1 */
    int32_t thread_count, thread_capacity, place_count; /* threads; room for them; entries of `places` */
    int time_form;                                      /* MPIOX_RAWTRACE_TIME_* */
    bool has_zeros;                                     /* a piece that was fed has zero bytes: check each line */
    int64_t day_ns, last_ns;                            /* days that have passed; time of the line before */
} mpiox_rawtrace_text;

/* Forget everything; rows of calls without end are complete as they are. */
int mpiox_rawtrace_text_end(mpiox_rawtrace_text *text, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows);
void mpiox_rawtrace_text_free(mpiox_rawtrace_text *text);

/* One line without its end. MPIOX_E_NOMEM. Text that is no line of a trace is reported to the rows. */
int mpiox_rawtrace_text_line(mpiox_rawtrace_text *text, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                             const char *p, const char *end);

#endif
