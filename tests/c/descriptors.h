/*
 * descriptors.h - how many file descriptors a C test program has, to see that what failed or was closed kept none.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <fcntl.h>

static inline int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#endif
