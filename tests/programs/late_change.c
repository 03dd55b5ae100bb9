/*
 * late_change.c - preloaded under a program: what a file is changes after this library has looked at it, and before the
 * MPI library opens it.
 *
 * The first time that this process opens the file CHANGE_TO without O_NONBLOCK, which this library looks with, the file
 * CHANGE_FROM gets that name. With CHANGE_FROM="" rank 0 removes the file CHANGE_TO.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int open_function(const char *path, int flags, ...);

static int rank(void)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK");

    text = text != NULL ? text : getenv("PMI_RANK");
    return text != NULL ? atoi(text) : 0;
}

/* By system calls: this library must not see it. */
static void change(const char *path, int flags)
{
    static int done;
    const char *from = getenv("CHANGE_FROM"), *to = getenv("CHANGE_TO");

    if (done || from == NULL || to == NULL || strcmp(path, to) != 0 || flags & O_NONBLOCK)
        return;
    done = 1;
    if (from[0] != '\0') /* on the rank that comes first: others have none to rename */
        syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    else if (rank() == 0)
        syscall(SYS_unlinkat, AT_FDCWD, to, 0);
}

static int pass(const char *name, const char *path, int flags, mode_t mode)
{
    open_function *next = NULL;

    *(void **)&next = dlsym(RTLD_NEXT, name);
    change(path, flags);
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
