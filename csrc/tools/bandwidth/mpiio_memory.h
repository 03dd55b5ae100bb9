/*
 * mpiio_memory.h - of mpiio_bandwidth.c: how far the memory of this process grows.
 */
#ifndef MPIIO_MEMORY_H
#define MPIIO_MEMORY_H

#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel's high-water mark of this process's resident memory, in bytes; 0 where there is none. */
static int64_t memory_peak(void)
{
    static const char name[] = "VmHWM:";
    char text[8192];
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *line = strstr(text, name);
    return line ? strtoll(line + sizeof name - 1, NULL, 10) * 1024 : 0;
}

/* Resident memory from here on: the high-water mark counts anew ("5" in clear_refs). What free() kept goes back first,
 * so that it cannot be used again unseen. */
static int64_t memory_begin(int rank)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "5", 1) != 1)
        fprintf(stderr, "mpiio_bandwidth: rank %d: cannot reset the high-water mark of memory; growth may be hidden\n",
                rank);
    if (fd >= 0)
        close(fd);
    return memory_peak();
}

/* Growth in bytes of this rank's memory, from what memory_begin() returned to the peak. */
static int64_t memory_growth(int64_t before)
{
    const int64_t peak = memory_peak();
    return peak > before ? peak - before : 0;
}

#endif
