/* mpiox_storage_descriptor.c - open(2) as every back end needs it; see mpiox_storage_internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"

int mpiox_storage_descriptor(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0 && fd <= STDERR_FILENO) { /* the program has closed one of its streams, and may still write to it */
        const int standard = fd;
        fd = fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        const int saved = errno;
        close(standard);
        errno = saved;
    }
    return fd >= 0 ? fd : -errno;
}
