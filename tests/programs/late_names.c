/*
 * late_names.c - preloaded under a program: a client of a file system that sees a new file late, as GlusterFS, NFS and
 * FUSE do while they trust what they have cached of names.
 *
 * On every rank but 0 the names that end with LATE_NAME cannot be opened until LATE_MS milliseconds have passed since
 * the first trial: no such file on odd ranks, a stale file handle on even ones.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int open_function(const char *path, int flags, ...);

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool is_late(const char *path)
{
    static double first_ms;
    const char *name = getenv("LATE_NAME"), *late_ms = getenv("LATE_MS"), *text = getenv("OMPI_COMM_WORLD_RANK");
    const int rank = atoi(text != NULL ? text : getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : "0");

    if (name == NULL || late_ms == NULL || rank == 0 || strlen(path) < strlen(name) ||
        strcmp(path + strlen(path) - strlen(name), name) != 0)
        return false;
    if (first_ms == 0)
        first_ms = now_ms();
    errno = rank % 2 != 0 ? ENOENT : ESTALE;
    return now_ms() - first_ms < atof(late_ms);
}

static int pass(const char *name, const char *path, int flags, mode_t mode)
{
    open_function *next = NULL;

    *(void **)&next = dlsym(RTLD_NEXT, name);
    return is_late(path) ? -1 : next(path, flags, mode);
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list more;                                                                                                  \
        mode_t mode = 0;                                                                                               \
                                                                                                                       \
        va_start(more, flags);                                                                                         \
        if (flags & (O_CREAT | O_TMPFILE))                                                                             \
            mode = (mode_t)va_arg(more, int);                                                                          \
        va_end(more);                                                                                                  \
        return pass(#name, path, flags, mode);                                                                         \
    }

OPEN(open)
OPEN(open64)
