/*
 * mpiox_trace_calls.c - the sink that stores each call: mpiox_trace_sink.h.
 *
 * Algorithm. A record is written under the lock. If it names a file, operation or text for the first time, the trace
 *            file gets the definition before the record.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>

#include "mpiox_trace_clock.h"
#include "mpiox_trace_core.h"
#include "mpiox_trace_file.h"
#include "mpiox_trace_lock.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_sink.h"

static atomic_int defined[MPIOX_TRACEFILE_OPERATIONS]; /* by generation of the trace file */
static const char *event_names[MPIOX_TRACEFILE_OPERATIONS];
static int n_events;

/* ---- names ------------------------------------------------------------------------------------------------------- */

__attribute__((cold, noinline)) static bool define_operation(int operation, int layer)
{
    const int generation = mpiox_trace_file_generation();

    if (atomic_load_explicit(&defined[operation], memory_order_relaxed) == generation)
        return true;
    const char *name = operation < MPIOX_TRACE_EVENTS ? mpiox_trace_operation_names[operation]
                                                      : event_names[operation - MPIOX_TRACE_EVENTS];
    if (!mpiox_trace_file_operation(operation, layer, name))
        return false;
    atomic_store_explicit(&defined[operation], generation, memory_order_relaxed);
    return true;
}

static bool is_text(int key)
{
    return key == MPIOX_KEY_FILE2 || key == MPIOX_KEY_DATAREP || key == MPIOX_KEY_DETAILS;
}

/* Whether the trace file has the name of the operation. */
static inline bool is_defined(int operation)
{
    return atomic_load_explicit(&defined[operation], memory_order_relaxed) == mpiox_trace_file_generation();
}

/* Calls whose file may have no name in the trace yet, and which may last: opening a pipe waits for its other end. */
static inline bool names_a_file(int operation)
{
    return operation == OP_open || operation == OP_openat || operation == OP_creat || operation == OP_fopen ||
           operation == OP_freopen;
}

__attribute__((cold, noinline)) static bool define_call(const mpiox_tracefile_record *call)
{
    const bool ready = mpiox_trace_file_ready();

    mpiox_trace_report_left_out();
    return ready && define_operation(call->operation, call->layer) && mpiox_trace_names_define((int32_t)call->file);
}

static bool define_texts(const mpiox_tracefile_record *call)
{
    for (int i = 0; i < call->extras; i++)
        if (is_text(call->extra[i].key) && !mpiox_trace_names_define((int32_t)call->extra[i].value))
            return false;
    return true;
}

/* Under the lock: make sure that the trace has the names of a call. It has the file that the layer's last record in
 * this block is for. */
static inline bool is_named(const mpiox_tracefile_record *call)
{
    const bool known = mpiox_trace_file_has_room() && is_defined(call->operation) &&
                       mpiox_trace_file.state.last[call->layer].file == call->file;

    return __builtin_expect(known, 1) || define_call(call);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

__attribute__((cold, noinline)) static void stop_for_good(void)
{
    atomic_store_explicit(&mpiox_trace_running, false, memory_order_relaxed);
}

__attribute__((cold, noinline)) static void note_new(const mpiox_tracefile_record *call)
{
    mpiox_trace_lock();
    const bool done = define_call(call);
    mpiox_trace_unlock();
    if (done)
        mpiox_trace_file_note(call);
}

/* Record this thread's present call: at the cost of a few stores, unless a name has to be defined first. */
static void begin(const mpiox_tracefile_record *call)
{
    if (!mpiox_trace_file_noting() || (call->file & MPIOX_TRACE_LEFT_OUT) != 0)
        return;
    if (__builtin_expect(!is_defined(call->operation) || names_a_file(call->operation), 0))
        note_new(call);
    else
        mpiox_trace_file_note(call);
}

/* Under the lock, so that beginnings are in the order of their times. */
static void enter(mpiox_tracefile_record *call)
{
    mpiox_trace_lock();
    call->start = mpiox_trace_now();
    if (is_named(call) && mpiox_trace_file_begin(call))
        mpiox_trace_file_note(call);
    else
        stop_for_good();
    mpiox_trace_unlock();
}

static void done(int64_t thread, int64_t depth)
{
    mpiox_trace_file_done(thread, depth);
}

static inline bool is_written(const mpiox_tracefile_record *call)
{
    if (!is_named(call) || (call->extras > 0 && !define_texts(call)))
        return false;
    if (__builtin_expect(!mpiox_trace_file_has_room(), 0))
        return mpiox_trace_file_record(call);
    mpiox_trace_file_append(call);
    return true;
}

static void add(const mpiox_tracefile_record *call)
{
    mpiox_trace_lock();
    if (!is_written(call))
        stop_for_good();
    mpiox_trace_file_done(call->thread, call->depth);
    mpiox_trace_unlock();
}

static void cancel(int64_t thread)
{
    mpiox_trace_lock();
    if (!mpiox_trace_file_cancel(thread))
        stop_for_good();
    mpiox_trace_unlock();
}

/* ---- what libmpiio_ext reports ----------------------------------------------------------------------------------- */

/* Number of an operation that is not in the list, by its name; -1: there are too many. */
static int event_number(const char *name)
{
    int number = -1;

    mpiox_trace_lock();
    for (int i = 0; i < n_events && number < 0; i++)
        if (strcmp(event_names[i], name) == 0)
            number = MPIOX_TRACE_EVENTS + i;
    if (number < 0 && MPIOX_TRACE_EVENTS + n_events < MPIOX_TRACEFILE_OPERATIONS) {
        const int32_t text = mpiox_trace_names_number(name);

        if (text > 0) {
            event_names[n_events] = mpiox_trace_names_text(text);
            number = MPIOX_TRACE_EVENTS + n_events++;
        }
    }
    mpiox_trace_unlock();
    return number;
}

static void event(const char *name, const char *file, int64_t offset, int64_t size, int64_t start_ns,
                  int64_t duration_ns, const char *details)
{
    const int operation = mpiox_trace_enabled() ? event_number(name) : -1;
    mpiox_tracefile_record call;

    if (operation < 0)
        return;
    mpiox_trace_start(&call, operation, MPIOX_TRACEFILE_EXTENSION, mpiox_trace_file_number(AT_FDCWD, file));
    call.file &= ~(int64_t)MPIOX_TRACE_LEFT_OUT;
    call.start = start_ns;
    call.duration = duration_ns > 0 ? duration_ns : 0;
    call.offset = offset < 0 ? MPIOX_TRACEFILE_NONE : offset;
    call.size = size < 0 ? MPIOX_TRACEFILE_NONE : size;
    mpiox_trace_extra_text(&call, MPIOX_KEY_DETAILS, details);
    mpiox_trace_commit(&call, MPIOX_TRACEFILE_NONE);
}

/* The time of a part is known when the part has ended. */
static void part(bool waiting, int64_t start, int64_t end)
{
    enum { SHORTEST_NS = 1000 }; /* that is worth a record */

    if (end != 0 && end - start >= SHORTEST_NS)
        event(waiting ? "waiting" : "messages", NULL, -1, -1, start, end - start, NULL);
}

static void finalizing(void) {}

static bool covers(int64_t start)
{
    (void)start;
    return true;
}

static bool leave_out(const mpiox_tracefile_left_out *left_out)
{
    return mpiox_trace_file_leave_out(left_out, mpiox_trace_names_text(left_out->name));
}

const mpiox_trace_sink mpiox_trace_calls = {.counts = false,
                                            .begin = begin,
                                            .enter = enter,
                                            .done = done,
                                            .add = add,
                                            .cancel = cancel,
                                            .event = event,
                                            .part = part,
                                            .finalizing = finalizing,
                                            .covers = covers,
                                            .leave_out = leave_out,
                                            .ready = mpiox_trace_file_ready,
                                            .rank = mpiox_trace_file_rank,
                                            .end = mpiox_trace_file_end,
                                            .mark = mpiox_trace_file_mark,
                                            .forget = mpiox_trace_file_forget};
