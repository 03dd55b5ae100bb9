/*
 * mpiox_trace_core.c - see mpiox_trace_core.h.
 *
 * Algorithm. Each call makes its record on its stack, and hands it to the sink. Calls on files of the system are
 *            counted here, for either sink.
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
#include "mpiox_trace_clock.h"
#include "mpiox_trace_descriptors.h"
#include "mpiox_trace_lock.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_place.h"
#include "mpiox_trace_sink.h"
#include "mpiox_trace_system.h"

enum { LIBRARIES = 2 };

atomic_bool mpiox_trace_running;
const mpiox_trace_sink *mpiox_trace_sink_chosen = &mpiox_trace_calls;

static atomic_int threads;
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

void mpiox_trace_extra_text(mpiox_tracefile_record *call, int key, const char *text)
{
    const int32_t number = text != NULL && !mpiox_trace_sink_chosen->counts ? mpiox_trace_text_number(text) : 0;

    if (number > 0)
        mpiox_trace_extra(call, key, number);
}

/* ---- calls on files of the system -------------------------------------------------------------------------------- */

static inline bool is_left_out(const mpiox_tracefile_record *call)
{
    return (call->file & MPIOX_TRACE_LEFT_OUT) != 0;
}

void mpiox_trace_forget_left_out(void)
{
    left_out = (mpiox_tracefile_left_out){0};
    counting++;
    unreported = false;
}

/* The file of this process has the numbers as soon as there is one. */
__attribute__((cold, noinline)) static void report_left_out(void)
{
    unreported = !mpiox_trace_sink_chosen->leave_out(&left_out);
}

void mpiox_trace_report_left_out(void)
{
    if (__builtin_expect(unreported, 0))
        report_left_out();
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

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

void mpiox_trace_start_on(mpiox_tracefile_record *call, int operation, int layer, int32_t file, int64_t handle)
{
    prepare(call, operation, layer, file, handle);
    call->start = mpiox_trace_now();
    mpiox_trace_sink_chosen->begin(call);
}

void mpiox_trace_start(mpiox_tracefile_record *call, int operation, int layer, int32_t file)
{
    mpiox_trace_start_on(call, operation, layer, file, MPIOX_TRACEFILE_NONE);
}

void mpiox_trace_drop(const mpiox_tracefile_record *call)
{
    mpiox_trace_sink_chosen->done(call->thread, call->depth);
}

void mpiox_trace_stop(mpiox_tracefile_record *call)
{
    call->duration = mpiox_trace_now() - call->start;
}

/* A call on a file of the system: what the program itself does with these is counted, and not recorded. */
__attribute__((cold, noinline)) static void leave_out(const mpiox_tracefile_record *call)
{
    static int64_t longest;

    mpiox_trace_sink_chosen->done(call->thread, call->depth);
    mpiox_trace_lock();
    if (call->depth == 0 && mpiox_trace_sink_chosen->covers(call->start)) {
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

void mpiox_trace_commit(mpiox_tracefile_record *call, int64_t result)
{
    const int error = errno; /* the first record makes a file, which sets it */

    if (call->duration < 0)
        mpiox_trace_stop(call);
    call->result = result;
    if (result < 0 && (call->layer == MPIOX_TRACEFILE_POSIX || call->layer == MPIOX_TRACEFILE_STDIO))
        mpiox_trace_extra(call, MPIOX_KEY_ERRNO, error);
    if (__builtin_expect(is_left_out(call), 0))
        leave_out(call);
    else
        mpiox_trace_sink_chosen->add(call);
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

void mpiox_trace_enter_on(mpiox_tracefile_record *call, int operation, int layer, int32_t file, int64_t handle)
{
    mpiox_trace_thread *self = &mpiox_trace_self;

    prepare(call, operation, layer, file, handle);
    call->closes = true;
    if (self->depth == 0)
        self->in_files = self->unrecorded = self->reported = self->waited = self->own = 0;
    mpiox_trace_sink_chosen->enter(call);
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
    mpiox_trace_sink_chosen->done(thread, depth);
    mpiox_trace_sink_chosen->cancel(thread);
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
        mpiox_trace_sink_chosen->done(self->number - 1, self->depth); /* of what was left inside of it */
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
    mpiox_trace_sink_chosen->rank();
}

/* A process whose calls were all on files of the system gets a file for their number alone, when it ends; those with a
 * rank have one. A process that outlives its run finds the folder removed, and must not make it again. */
static void report_left_out_alone(void)
{
    if (!unreported || mpiox_trace_here.rank >= 0 || mpiox_trace_access(mpiox_trace_here.folder, W_OK) != 0)
        return;
    if (mpiox_trace_sink_chosen->ready())
        report_left_out();
}

void mpiox_trace_end(int state, bool again)
{
    mpiox_trace_lock();
    report_left_out_alone();
    mpiox_trace_sink_chosen->end(state, again);
    mpiox_trace_unlock();
}

void mpiox_trace_mark(int state)
{
    mpiox_trace_lock();
    mpiox_trace_sink_chosen->mark(state);
    mpiox_trace_unlock();
}

void mpiox_trace_forget(void)
{
    mpiox_trace_forget_left_out();
    mpiox_trace_sink_chosen->forget();
}

void mpiox_trace_finalizing(void)
{
    mpiox_trace_sink_chosen->finalizing();
}
