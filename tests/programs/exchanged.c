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
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opens.h"

enum { EXCHANGE = 2 }; /* RENAME_EXCHANGE */

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

static bool fails(const char *path, int flags)
{
    (void)flags;
    exchange(path);
    return false;
}
