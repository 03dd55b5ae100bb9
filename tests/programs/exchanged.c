/*
 * exchanged.c - preloaded under a program: somebody exchanges two folders while a file is opened in one of them.
 *
 * Rank 0 exchanges the folders EXCHANGE_A and EXCHANGE_B right before its EXCHANGE_AT-th open of a name that contains
 * ".staging", and before the EXCHANGE_MORE ones that follow. That it has done so it says by an empty file
 * EXCHANGE_A.exchanged.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int open_function(const char *path, int flags, ...);

enum { EXCHANGE = 2 }; /* RENAME_EXCHANGE */

static int rank(void)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK");

    text = text != NULL ? text : getenv("PMI_RANK");
    return text != NULL ? atoi(text) : 0;
}

/* By system calls: this library must not see it. */
static void exchange(const char *path)
{
    static _Atomic int opens;
    const char *one = getenv("EXCHANGE_A"), *other = getenv("EXCHANGE_B"), *at = getenv("EXCHANGE_AT"),
               *more = getenv("EXCHANGE_MORE");
    char said[PATH_MAX];

    if (one == NULL || other == NULL || at == NULL || rank() != 0 || strstr(path, ".staging") == NULL)
        return;
    const int now = atomic_fetch_add(&opens, 1) + 1;

    if (now < atoi(at) || now > atoi(at) + (more != NULL ? atoi(more) : 0))
        return;
    const int saved = errno;

    syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, EXCHANGE);
    snprintf(said, sizeof said, "%s.exchanged", one);
    syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, said, O_CREAT | O_WRONLY, 0600));
    errno = saved;
}

static int pass(const char *name, const char *path, int flags, mode_t mode)
{
    open_function *next = NULL;

    *(void **)&next = dlsym(RTLD_NEXT, name);
    exchange(path);
    return next(path, flags, mode);
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
