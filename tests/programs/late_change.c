/*
 * late_change.c - preloaded under a program: what a file is changes after this library has looked at it, and before the
 * MPI library opens it.
 *
 * This library looks with O_NONBLOCK or O_PATH. The first time that this process opens the file CHANGE_TO with neither,
 * the file CHANGE_FROM gets that name. With CHANGE_FROM="" rank 0 removes the file CHANGE_TO.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opens.h"

/* By system calls: this library must not see it. */
static void change(const char *path, int flags)
{
    static int done;
    const char *from = getenv("CHANGE_FROM"), *to = getenv("CHANGE_TO");

    if (done || from == NULL || to == NULL || strcmp(path, to) != 0 || flags & (O_NONBLOCK | O_PATH))
        return;
    done = 1;
    if (from[0] != '\0') /* on the rank that comes first: others have none to rename */
        syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    else if (rank() == 0)
        syscall(SYS_unlinkat, AT_FDCWD, to, 0);
}

static bool fails(const char *path, int flags)
{
    change(path, flags);
    return false;
}
