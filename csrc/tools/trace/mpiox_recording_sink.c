/* mpiox_recording_sink.c - the sink that counts calls (mpiox_trace_sink.h), by the counters of mpiox_recording.h. */
#include "mpiox_recording.h"
#include "mpiox_recording_file.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_core.h"
#include "mpiox_trace_lock.h"
#include "mpiox_trace_sink.h"

static void begin(const mpiox_tracefile_record *call)
{
    mpiox_recording_begin(call, NULL);
}

static void enter(mpiox_tracefile_record *call)
{
    call->start = mpiox_trace_now();
    mpiox_recording_begin(call, mpiox_trace_operation_names[call->operation]);
}

static void add(const mpiox_tracefile_record *call)
{
    mpiox_recording_done(call->thread, call->depth);
    mpiox_trace_lock();
    mpiox_recording_add(call);
    if (call->operation == OP_MPI_Init || call->operation == OP_MPI_Init_thread)
        mpiox_trace_forget_left_out(); /* the recording begins now */
    mpiox_trace_report_left_out();
    mpiox_trace_unlock();
}

/* Its beginning was no count. */
static void cancel(int64_t thread)
{
    (void)thread;
}

/* What the library does is no call of the program. */
static void event(const char *name, const char *file, int64_t offset, int64_t size, int64_t start_ns,
                  int64_t duration_ns, const char *details)
{
    (void)name, (void)file, (void)offset, (void)size, (void)start_ns, (void)duration_ns, (void)details;
}

static void part(bool waiting, int64_t start, int64_t end)
{
    if (!mpiox_trace_enabled() || mpiox_trace_self.depth == 0)
        return;
    if (end == 0) {
        mpiox_recording_in_part(waiting, start);
        return;
    }
    mpiox_trace_lock();
    mpiox_recording_add_part(waiting, start, end);
    mpiox_trace_unlock();
}

static void finalizing(void)
{
    mpiox_trace_lock();
    mpiox_recording_stop(mpiox_trace_now());
    mpiox_trace_unlock();
}

static bool ready(void)
{
    return mpiox_recording_ready(mpiox_trace_now());
}

const mpiox_trace_sink mpiox_recording_counters = {.counts = true,
                                                   .begin = begin,
                                                   .enter = enter,
                                                   .done = mpiox_recording_done,
                                                   .add = add,
                                                   .cancel = cancel,
                                                   .event = event,
                                                   .part = part,
                                                   .finalizing = finalizing,
                                                   .covers = mpiox_recording_counts,
                                                   .leave_out = mpiox_recording_leave_out,
                                                   .ready = ready,
                                                   .rank = mpiox_recording_rank,
                                                   .end = mpiox_recording_end,
                                                   .mark = mpiox_recording_mark,
                                                   .forget = mpiox_recording_forget};
