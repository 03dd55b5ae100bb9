/*
 * left_part.c - preloaded under a program: a delegate that was killed when it had just opened a file that has a staging
 * name. Its part, LEFT_PART, says that it has bytes whenever rank 0 is going to end a part.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opens.h"

/* By system calls: this library must not see it. */
static bool fails(const char *path, int flags)
{
    const char *part = getenv("LEFT_PART"), *end = strstr(path, ".staging.parts");

    if (part != NULL && rank() == 0 && end != NULL && (flags & O_ACCMODE) == O_RDWR) {
        const long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY);

        syscall(SYS_pwrite64, fd, "-", 1, atol(part));
        syscall(SYS_close, fd);
    }
    return false;
}
