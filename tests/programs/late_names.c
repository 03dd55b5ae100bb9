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
#include <errno.h>
#include <string.h>
#include <time.h>

#include "opens.h"

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool fails(const char *path, int flags)
{
    static double first_ms;
    const char *name = getenv("LATE_NAME"), *late_ms = getenv("LATE_MS");

    (void)flags;
    if (name == NULL || late_ms == NULL || rank() == 0 || strlen(path) < strlen(name) ||
        strcmp(path + strlen(path) - strlen(name), name) != 0)
        return false;
    if (first_ms == 0)
        first_ms = now_ms();
    errno = rank() % 2 != 0 ? ENOENT : ESTALE;
    return now_ms() - first_ms < atof(late_ms);
}
