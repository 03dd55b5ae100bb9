/*
 * opens.h - open() and open64() of a library that is preloaded under a program.
 *
 * Who includes it defines fails(), which is called before each of them: true, with errno, is its result.
 */
#ifndef OPENS_H
#define OPENS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

typedef int open_function(const char *path, int flags, ...);

static bool fails(const char *path, int flags);

/* Of the MPI job; 0 outside. */
static inline int rank(void)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK");

    text = text != NULL ? text : getenv("PMI_RANK");
    return text != NULL ? atoi(text) : 0;
}

static int pass(const char *name, const char *path, int flags, mode_t mode)
{
    open_function *next = NULL;

    *(void **)&next = dlsym(RTLD_NEXT, name);
    return fails(path, flags) ? -1 : next(path, flags, mode);
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

#endif
