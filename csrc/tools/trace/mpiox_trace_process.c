/*
 * mpiox_trace_process.c - the life of a traced process: its start, its end, its children, and the programs that it
 * executes.
 *
 * Problem.   A process ends by exit(), by _exit() or by another program in its place, and has children.
 * Algorithm. The trace file is closed when the process ends by exit(). A child has a file of its own, from its first
 *            record on. vfork(), whose child works in its parent's memory, is fork() here. A thread that is created
 *            inside of an MPI-IO call works for it: its calls are as deep as their creator's.
 * Guarantee. A process that ends by a signal or abort leaves a trace that is complete up to its last call.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpiox_recording.h"
#include "mpiox_recording_file.h"
#include "mpiox_scheduler.h"
#include "mpiox_trace_clock.h"
#include "mpiox_trace_descriptors.h"
#include "mpiox_trace_file.h"
#include "mpiox_trace_names.h"
#include "mpiox_trace_paths.h"
#include "mpiox_trace_place.h"
#include "mpiox_trace_sink.h"
#include "mpiox_trace_wrap.h"

static void before_fork(void)
{
    mpiox_trace_lock();
}

static void parent_after_fork(void)
{
    mpiox_trace_descriptors_share();
    mpiox_trace_unlock();
}

static void child_after_fork(void)
{
    mpiox_trace_clock_reset();
    mpiox_trace_forget();
    parent_after_fork();
}

/* The command that has made the folder reports if no process of the program has loaded this library. Outside of the
 * job it learns the batch system's ID of the job here. The process's own trace reports a folder that it cannot write
 * to. */
static void note_loaded(const char *folder)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/.loaded", folder);

    if (length < 0 || (size_t)length >= sizeof path || access(path, F_OK) == 0)
        return;
    const long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    const char *job = mpiox_scheduler_job();
    if (fd >= 0 && job != NULL)
        syscall(SYS_write, fd, job, strlen(job));
    if (fd >= 0)
        syscall(SYS_close, fd);
    errno = 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv("MPIOX_TRACE_DIR"), *system = getenv("MPIOX_TRACE_SYSTEM_FILES");
    const char *program = program_invocation_short_name, *folders = getenv("MPIOX_TRACE_FOLDERS");
    const char *mode = getenv("MPIOX_TRACE_MODE"), *only = getenv("MPIOX_TRACE_ONLY");

    if (folder == NULL || folder[0] == '\0' || strcmp(program, "mpiio-ext-delegate") == 0)
        return;
    mpiox_trace_clock_begin();
    mpiox_trace_place_folder(folder);
    note_loaded(folder);
    mpiox_trace_names_keep_system(system != NULL && strcmp(system, "1") == 0);
    mpiox_trace_names_select(only, getenv("MPIOX_TRACE_SKIP"));
    mpiox_trace_file_select(only != NULL && only[0] != '\0');
    mpiox_trace_paths_keep_folders(folders != NULL && strcmp(folders, "1") == 0);
    mpiox_trace_sink_chosen = mode != NULL && strcmp(mode, "recording") == 0 ? &mpiox_recording_counters
                                                                             : &mpiox_trace_calls;
    if (mpiox_trace_sink_chosen->counts)
        mpiox_trace_names_bound(mpiox_recording_bound(), MPIOX_RECORDING_OTHERS);
    pthread_atfork(before_fork, parent_after_fork, child_after_fork);
    atomic_store(&mpiox_trace_running, true);
}

static void end(int state, bool again)
{
    if (!again)
        atomic_store(&mpiox_trace_running, false);
    mpiox_trace_end(state, again);
}

__attribute__((destructor)) static void finish(void)
{
    end(MPIOX_TRACEFILE_CLOSED, false);
}

#define ENDING(name)                                                                                                   \
    BEHIND(void, name, (int))                                                                                          \
    MPIOX_TRACE_EXPORT __attribute__((noreturn)) void name(int status)                                                 \
    {                                                                                                                  \
        mpiox_recording_note_exit(status);                                                                             \
        finish();                                                                                                      \
        NEXT(name)(status);                                                                                            \
        __builtin_unreachable();                                                                                       \
    }

ENDING(_exit)
ENDING(_Exit)
ENDING(quick_exit)

/* Where the other program cannot be executed this one goes on. */
WRAP(int, execve, (const char *path, char *const arguments[], char *const environment[]))
{
    mpiox_trace_mark(MPIOX_TRACEFILE_EXECUTED);
    const int result = NEXT(execve)(path, arguments, environment);
    mpiox_trace_mark(MPIOX_TRACEFILE_RUNNING);
    return result;
}

FRONT(int, execv, (const char *path, char *const arguments[]))
{
    return execve(path, arguments, environ);
}

WRAP(int, execvpe, (const char *file, char *const arguments[], char *const environment[]))
{
    mpiox_trace_mark(MPIOX_TRACEFILE_EXECUTED);
    const int result = NEXT(execvpe)(file, arguments, environment);
    mpiox_trace_mark(MPIOX_TRACEFILE_RUNNING);
    return result;
}

FRONT(int, execvp, (const char *file, char *const arguments[]))
{
    return execvpe(file, arguments, environ);
}

WRAP(int, fexecve, (int fd, char *const arguments[], char *const environment[]))
{
    mpiox_trace_mark(MPIOX_TRACEFILE_EXECUTED);
    const int result = NEXT(fexecve)(fd, arguments, environment);
    mpiox_trace_mark(MPIOX_TRACEFILE_RUNNING);
    return result;
}

/* Those with a list of arguments; `then`: the same with an array. */
#define LISTED(name, then)                                                                                             \
    FRONT(int, name, (const char *path, const char *first, ...))                                                       \
    {                                                                                                                  \
        int n = 0;                                                                                                     \
        va_list list;                                                                                                  \
        va_start(list, first);                                                                                         \
        for (const char *argument = first; argument != NULL; argument = va_arg(list, char *))                          \
            n++;                                                                                                       \
        va_end(list);                                                                                                  \
        char *arguments[n + 1];                                                                                        \
        arguments[0] = (char *)(uintptr_t)first;                                                                       \
        va_start(list, first);                                                                                         \
        for (int i = 1; i <= n; i++)                                                                                   \
            arguments[i] = va_arg(list, char *);                                                                       \
        char *const *environment = WITH_ENVIRONMENT_##name ? va_arg(list, char *const *) : environ;                    \
        va_end(list);                                                                                                  \
        return then(path, arguments, environment);                                                                     \
    }
enum { WITH_ENVIRONMENT_execl, WITH_ENVIRONMENT_execlp = 0, WITH_ENVIRONMENT_execle = 1 };

LISTED(execl, execve)
LISTED(execlp, execvpe)
LISTED(execle, execve)

FRONT(pid_t, vfork, (void))
{
    return fork();
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef struct work {
    void *(*run)(void *);
    void *context;
    int depth;
} work;

static void *run_deeper(void *context)
{
    const work mine = *(work *)context;

    free(context);
    mpiox_trace_self.depth = mine.depth;
    return mine.run(mine.context);
}

WRAP(int, pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context))
{
    work *deeper = mpiox_trace_enabled() && mpiox_trace_self.depth > 0 ? malloc(sizeof *deeper) : NULL;

    if (deeper == NULL)
        return NEXT(pthread_create)(thread, attributes, run, context);
    *deeper = (work){.run = run, .context = context, .depth = mpiox_trace_self.depth};
    const int result = NEXT(pthread_create)(thread, attributes, run_deeper, deeper);
    if (result != 0)
        free(deeper);
    return result;
}
