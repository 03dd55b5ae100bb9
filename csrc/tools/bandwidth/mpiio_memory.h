/*
 * mpiio_memory.h - of mpiio_bandwidth.c: the memory that this process takes, by kind, and a limit to it.
 */
#ifndef MPIIO_MEMORY_H
#define MPIIO_MEMORY_H

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Resident memory of this process by kind. RESIDENT is the kernel's high-water mark, which is exact; the peaks of the
 * others are the largest values that a thread reads at short intervals, and only if there is such a thread. */
enum { RESIDENT, PRIVATE, SHARED, FILES, KINDS };

static const char *const status_lines[KINDS] = {"VmHWM:", "RssAnon:", "RssShmem:", "RssFile:"};

typedef struct memory {
    int64_t before[KINDS], peak[KINDS]; /* bytes */
    bool watched;
    atomic_bool stop;
    pthread_t watcher;
} memory;

/* Fills values[i] with the bytes of the line of /proc/self/status that begins with names[i]; 0 where there is none. */
static void read_status(int n, const char *const *names, int64_t *values)
{
    char text[8192];
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
    for (int i = 0; i < n; i++) {
        const char *line = strstr(text, names[i]);
        values[i] = line ? strtoll(line + strlen(names[i]), NULL, 10) * 1024 : 0;
    }
}

static void read_memory(int64_t now[KINDS])
{
    read_status(KINDS, status_lines, now);
}

static void *watch(void *context)
{
    memory *m = context;
    while (!atomic_load(&m->stop)) {
        int64_t now[KINDS];
        read_memory(now);
        for (int kind = 0; kind < KINDS; kind++)
            if (now[kind] > m->peak[kind])
                m->peak[kind] = now[kind];
        usleep(500);
    }
    return NULL;
}

/* From here on the high-water mark counts anew ("5" in clear_refs); what free() kept goes back first, so that it cannot
 * be used again unseen. */
static bool memory_begin(memory *m, bool watched, int rank)
{
    *m = (memory){.watched = watched};
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "5", 1) != 1)
        fprintf(stderr, "mpiio_bandwidth: rank %d: cannot reset the high-water mark of memory; growth may be hidden\n",
                rank);
    if (fd >= 0)
        close(fd);
    if (watched && pthread_create(&m->watcher, NULL, watch, m) != 0)
        return false;
    read_memory(m->before);
    return true;
}

/* Growth of each kind in bytes, on this rank. */
static void memory_end(memory *m, int64_t growth[KINDS])
{
    int64_t now[KINDS];
    if (m->watched) {
        atomic_store(&m->stop, true);
        pthread_join(m->watcher, NULL);
    }
    read_memory(now);
    for (int kind = 0; kind < KINDS; kind++) {
        const int64_t peak = now[kind] > m->peak[kind] ? now[kind] : m->peak[kind];
        growth[kind] = peak > m->before[kind] ? peak - m->before[kind] : 0;
    }
}

/* Limit later allocations; false: they cannot be limited. */
static bool limit_memory(int64_t bytes)
{
    int64_t now;
    read_status(1, (const char *const[]){"VmData:"}, &now);
    const rlim_t most = (rlim_t)(now + bytes);
    return now && setrlimit(RLIMIT_DATA, &(struct rlimit){most, most}) == 0;
}

#endif
