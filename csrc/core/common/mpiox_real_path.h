/*
 * mpiox_real_path.h - realpath(), into memory of its own.
 *
 * The library has a function of that name (mpiox_posix.c), so that its own calls are bound to no version. Where it is
 * not preloaded they reach the oldest one of the C library, which takes no NULL.
 */
#ifndef MPIOX_REAL_PATH_H
#define MPIOX_REAL_PATH_H

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* To be freed; NULL with errno. */
static inline char *mpiox_real_path(const char *path)
{
    char real[PATH_MAX];

    return realpath(path, real) != NULL ? strdup(real) : NULL;
}

#endif
