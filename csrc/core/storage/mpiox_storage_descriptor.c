/* mpiox_storage_descriptor.c - open(2) and rename(2) as every back end needs them; see mpiox_storage_internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
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

/* Without replacing anything. A file system that cannot promise that is asked before. 0 or an errno. */
int mpiox_storage_give_name(const char *from, const char *to)
{
    struct stat status;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    if (lstat(to, &status) == 0)
        return EEXIST;
    return rename(from, to) == 0 ? 0 : errno;
}
