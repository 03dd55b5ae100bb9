/*
 * mpiox_trace_core.c - see mpiox_trace_core.h.
 *
 * Algorithm. Each call makes its record on its stack, and writes the record under the lock. If the record names a file
 *            or operation for the first time, the trace file gets the definition before the record. A recording has
 *            counters instead.
 */
#include "mpiox_trace_core.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_recording.h"
#include "mpiox_recording_file.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_descriptors.h"
#include "mpiox_trace_file.h"
#include "mpiox_trace_lock.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_place.h"
#include "mpiox_trace_system.h"

enum { LIBRARIES = 2 };

atomic_bool mpiox_trace_running;

static atomic_int threads;
static atomic_int defined[MPIOX_TRACEFILE_OPERATIONS]; /* by generation of the trace file */
static const char *event_names[MPIOX_TRACEFILE_OPERATIONS];
static int n_events;
/* Counters of calls on files of the system, and the number of this count, which changes when it begins again. */
static mpiox_tracefile_left_out left_out;
static int32_t counting = 1;
static bool unreported;

/* ---- the functions that the tracer wraps ------------------------------------------------------------------------- */

/* A Python program opens its MPI library for itself alone, so that RTLD_NEXT does not find the library. The list lacks
 * libmpiio_ext.so. If that library is under the program, RTLD_NEXT finds it. If a tool has opened it for its other
 * functions (a replay, which must call the MPI library alone), the tracer must not call it. */
static void *find_in_libraries(const char *name)
{
    static const char *const libraries[LIBRARIES] = {"libmpi.so.40", "libmpi.so.12"};

    for (int i = 0; i < LIBRARIES; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        void *found = library != NULL ? dlsym(library, name) : NULL;

        if (library != NULL)
            dlclose(library);
        if (found != NULL)
            return found;
    }
    return NULL;
}

void *mpiox_trace_next(_Atomic(void *) *found, const char *name)
{
    void *function = atomic_load_explicit(found, memory_order_acquire);

    if (function != NULL)
        return function;
    mpiox_trace_self.inside++;
    function = dlsym(RTLD_NEXT, name);
    if (function == NULL && strcasestr(name, "mpi_") != NULL)
        function = find_in_libraries(name);
    mpiox_trace_self.inside--;
    atomic_store_explicit(found, function, memory_order_release);
    return function;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

int32_t mpiox_trace_text_number(const char *text)
{
    mpiox_trace_lock();
    const int32_t number = mpiox_trace_names_number(text);
    mpiox_trace_unlock();
    return number;
}

static int32_t folder_name(int fd, char *text, int bytes)
{
    char link[64];
    const char *known = mpiox_trace_names_text(mpiox_trace_descriptor_file(fd));

    if (known != NULL)
        return snprintf(text, (size_t)bytes, "%s", known);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return mpiox_trace_link_text(link, text, bytes);
}

int32_t mpiox_trace_file_number(int folder_fd, const char *name)
{
    char text[MPIOX_TRACE_NAME_BYTES], folder[MPIOX_TRACE_NAME_BYTES];
    int32_t number;

    if (name == NULL)
        return -1;
    mpiox_trace_lock();
    const bool below = folder_fd != AT_FDCWD && name[0] != '/' && folder_name(folder_fd, folder, sizeof folder) > 0;
    mpiox_trace_names_absolute(name, below ? folder : NULL, text);
    number = mpiox_trace_names_file(text);
    mpiox_trace_unlock();
    return number;
}

int mpiox_trace_event_number(const char *name)
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

void mpiox_trace_extra_text(mpiox_tracefile_record *call, int key, const char *text)
{
    const int32_t number = text != NULL && !mpiox_recording_wanted ? mpiox_trace_text_number(text) : 0;

    if (number > 0)
        mpiox_trace_extra(call, key, number);
}

/* ---- calls on files of the system -------------------------------------------------------------------------------- */

static inline bool is_left_out(const mpiox_tracefile_record *call)
{
    return (call->file & MPIOX_TRACE_LEFT_OUT) != 0;
}

static void forget_left_out(void)
{
    left_out = (mpiox_tracefile_left_out){0};
    counting++;
    unreported = false;
}

/* The file of this process has the numbers as soon as there is one. */
__attribute__((cold, noinline)) static void report_left_out(void)
{
    unreported = mpiox_recording_wanted ? !mpiox_recording_leave_out(&left_out)
                                        : !mpiox_trace_file_leave_out(&left_out, mpiox_trace_names_text(left_out.name));
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

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

__attribute__((cold, noinline)) static void stop_for_good(void)
{
    atomic_store_explicit(&mpiox_trace_running, false, memory_order_relaxed);
}

__attribute__((cold, noinline)) static void number_thread(mpiox_trace_thread *self)
{
    self->number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
}

static inline void prepare(mpiox_tracefile_record *call, int operation, int layer, int32_t file, int64_t handle)
{
    mpiox_trace_thread *self = &mpiox_trace_self;

    if (__builtin_expect(self->number == 0, 0))
        number_thread(self);
    call->operation = (uint8_t)operation;
    call->layer = (uint8_t)layer;
    call->closes = false;
    call->extras = 0;
    call->thread = self->number - 1;
    call->depth = self->depth;
    call->handle = handle;
    call->offset = call->size = call->result = MPIOX_TRACEFILE_NONE;
    call->file = file > 0 ? file : 0;
    call->duration = -1;
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

    if (unreported)
        report_left_out();
    return ready && define_operation(call->operation, call->layer) && mpiox_trace_names_define((int32_t)call->file);
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
static inline void note(const mpiox_tracefile_record *call)
{
    if (mpiox_recording_wanted)
        mpiox_recording_begin(call, NULL);
    if (!mpiox_trace_file_noting() || is_left_out(call))
        return;
    if (__builtin_expect(!is_defined(call->operation) || names_a_file(call->operation), 0))
        note_new(call);
    else
        mpiox_trace_file_note(call);
}

void mpiox_trace_start_on(mpiox_tracefile_record *call, int operation, int layer, int32_t file, int64_t handle)
{
    prepare(call, operation, layer, file, handle);
    call->start = mpiox_trace_now();
    note(call);
}

void mpiox_trace_start(mpiox_tracefile_record *call, int operation, int layer, int32_t file)
{
    mpiox_trace_start_on(call, operation, layer, file, MPIOX_TRACEFILE_NONE);
}

/* The thread does it no longer. */
static void done(int64_t thread, int64_t depth)
{
    mpiox_recording_done(thread, depth);
    mpiox_trace_file_done(thread, depth);
}

void mpiox_trace_drop(const mpiox_tracefile_record *call)
{
    done(call->thread, call->depth);
}

void mpiox_trace_stop(mpiox_tracefile_record *call)
{
    call->duration = mpiox_trace_now() - call->start;
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

static inline bool is_written(const mpiox_tracefile_record *call)
{
    if (!is_named(call) || (call->extras > 0 && !define_texts(call)))
        return false;
    if (__builtin_expect(!mpiox_trace_file_has_room(), 0))
        return mpiox_trace_file_record(call);
    mpiox_trace_file_append(call);
    return true;
}

/* A call on a file of the system: what the program itself does with these is counted, and not recorded. */
__attribute__((cold, noinline)) static void leave_out(const mpiox_tracefile_record *call)
{
    static int64_t longest;

    done(call->thread, call->depth);
    mpiox_trace_lock();
    if (call->depth == 0 && (!mpiox_recording_wanted || mpiox_recording_counts(call->start))) {
        longest = left_out.calls++ > 0 ? longest : -1;
        left_out.ns += call->duration;
        left_out.files += mpiox_trace_names_is_new((int32_t)call->file, counting);
        if (call->duration > longest) {
            longest = call->duration;
            left_out.name = (int32_t)call->file & ~MPIOX_TRACE_LEFT_OUT;
        }
        report_left_out();
    }
    mpiox_trace_unlock();
}

static void record(const mpiox_tracefile_record *call)
{
    mpiox_recording_done(call->thread, call->depth);
    mpiox_trace_lock();
    mpiox_recording_add(call);
    if (call->operation == OP_MPI_Init || call->operation == OP_MPI_Init_thread)
        forget_left_out(); /* it counts from now on */
    if (unreported)
        report_left_out();
    mpiox_trace_unlock();
}

void mpiox_trace_commit(mpiox_tracefile_record *call, int64_t result)
{
    const int error = errno; /* the first record makes a file, which sets it */

    if (call->duration < 0)
        mpiox_trace_stop(call);
    call->result = result;
    if (result < 0 && (call->layer == MPIOX_TRACEFILE_POSIX || call->layer == MPIOX_TRACEFILE_STDIO))
        mpiox_trace_extra(call, MPIOX_KEY_ERRNO, error);
    if (__builtin_expect(is_left_out(call), 0) || mpiox_recording_wanted) {
        is_left_out(call) ? leave_out(call) : record(call);
        errno = error;
        return;
    }
    mpiox_trace_lock();
    if (!is_written(call))
        stop_for_good();
    mpiox_trace_file_done(call->thread, call->depth);
    mpiox_trace_unlock();
    errno = error;
}

__attribute__((noinline)) static void commit_access(int operation, int32_t file, int64_t offset, int64_t result,
                                                    int64_t start, int64_t end)
{
    mpiox_tracefile_record call;

    prepare(&call, operation, MPIOX_TRACEFILE_POSIX, file, MPIOX_TRACEFILE_NONE);
    call.start = start;
    call.duration = end - start;
    call.offset = offset;
    mpiox_trace_commit(&call, result);
    mpiox_recording_attach();
}

void mpiox_trace_accessed(int operation, int32_t file, bool write, int64_t offset, int64_t result, int64_t start,
                          int64_t end)
{
    mpiox_trace_lock();
    const bool done = write ? mpiox_recording_write_again(file, offset, result, start, end)
                            : mpiox_recording_read_again(file, offset, result, start, end);
    mpiox_trace_unlock();
    if (!done)
        commit_access(operation, file, offset, result, start, end);
}

/* Under the lock, so that beginnings are in the order of their times. */
static void begin(mpiox_tracefile_record *call)
{
    mpiox_trace_lock();
    call->start = mpiox_trace_now();
    if (is_named(call) && mpiox_trace_file_begin(call))
        mpiox_trace_file_note(call);
    else
        stop_for_good();
    mpiox_trace_unlock();
}

void mpiox_trace_enter_on(mpiox_tracefile_record *call, int operation, int layer, int32_t file, int64_t handle)
{
    mpiox_trace_thread *self = &mpiox_trace_self;

    prepare(call, operation, layer, file, handle);
    call->closes = true;
    if (self->depth == 0)
        self->in_files = self->unrecorded = self->reported = self->waited = self->own = 0;
    if (mpiox_recording_wanted) {
        call->start = mpiox_trace_now();
        mpiox_recording_begin(call, mpiox_trace_operation_names[operation]);
    } else {
        begin(call);
    }
    self->depth++;
    if (self->frames < MPIOX_TRACE_FRAMES)
        self->frame[self->frames++] = (uintptr_t)call;
}

void mpiox_trace_enter(mpiox_tracefile_record *call, int operation, int layer, int32_t file)
{
    mpiox_trace_enter_on(call, operation, layer, file, MPIOX_TRACEFILE_NONE);
}

/* The call is over, and with it those that were made inside of it. */
static void step_out(const mpiox_tracefile_record *call)
{
    mpiox_trace_thread *self = &mpiox_trace_self;

    self->depth = (int)call->depth;
    while (self->frames > 0 && self->frame[self->frames - 1] <= (uintptr_t)call)
        self->frames--;
}

/* The call has no record. */
static void cancel(int64_t thread, int64_t depth)
{
    done(thread, depth);
    if (mpiox_recording_wanted)
        return;
    mpiox_trace_lock();
    if (!mpiox_trace_file_cancel(thread))
        stop_for_good();
    mpiox_trace_unlock();
}

/* A signal handler may have a stack of its own, whose addresses are not comparable. */
static bool is_on_other_stack(void)
{
    stack_t stack;

    return sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

__attribute__((cold, noinline)) void mpiox_trace_left(uintptr_t stack)
{
    mpiox_trace_thread *self = &mpiox_trace_self;

    if (is_on_other_stack())
        return;
    while (self->frames > 0 && self->frame[self->frames - 1] < stack) {
        done(self->number - 1, self->depth); /* of what was left inside of it */
        self->frames--;
        self->depth--;
        cancel(self->number - 1, self->depth);
    }
}

void mpiox_trace_leave(mpiox_tracefile_record *call, int64_t result)
{
    step_out(call);
    mpiox_trace_commit(call, result);
}

void mpiox_trace_leave_without(mpiox_tracefile_record *call)
{
    step_out(call);
    cancel(call->thread, call->depth);
}

/* ---- the life of the file ---------------------------------------------------------------------------------------- */

void mpiox_trace_rank(int rank, int ranks)
{
    mpiox_trace_here.rank = rank;
    mpiox_trace_here.ranks = ranks;
    mpiox_trace_file_rank();
    mpiox_recording_rank();
}

/* A process whose calls were all on files of the system gets a file for their number alone, when it ends; those with a
 * rank have one. A process that outlives its run finds the folder removed, and must not make it again. */
static void report_left_out_alone(void)
{
    if (!unreported || mpiox_trace_here.rank >= 0 || mpiox_trace_access(mpiox_trace_here.folder, W_OK) != 0)
        return;
    if (mpiox_recording_wanted ? mpiox_recording_ready(mpiox_trace_now()) : mpiox_trace_file_ready())
        report_left_out();
}

void mpiox_trace_end(int state, bool again)
{
    mpiox_trace_lock();
    report_left_out_alone();
    mpiox_trace_file_end(state, again);
    mpiox_recording_end(state, again);
    mpiox_trace_unlock();
}

void mpiox_trace_mark(int state)
{
    mpiox_trace_lock();
    mpiox_trace_file_mark(state);
    mpiox_recording_mark(state);
    mpiox_trace_unlock();
}

void mpiox_trace_forget(void)
{
    forget_left_out();
    mpiox_trace_file_forget();
    mpiox_recording_forget();
}

void mpiox_trace_finalizing(void)
{
    if (!mpiox_recording_wanted)
        return;
    mpiox_trace_lock();
    mpiox_recording_stop(mpiox_trace_now());
    mpiox_trace_unlock();
}
