/* mpiox_segment.c - see mpiox_segment.h. */
#include "mpiox_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int map(int fd, int64_t bytes, mpiox_segment *out, mpiox_error *error) {
    void *base = mmap(NULL, (size_t) bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return mpiox_error_set(error, MPIOX_E_NOMEM, errno, -1, bytes, "mmap of shared memory");
    munlock(base, (size_t) bytes); /* under mlockall(MCL_FUTURE) all of it would take memory, used or not */
    if (mprotect(base, (size_t) bytes, PROT_READ | PROT_WRITE) != 0) {
        const int saved = errno;
        munmap(base, (size_t) bytes);
        return mpiox_error_set(error, MPIOX_E_NOMEM, saved, -1, bytes, "mmap of shared memory");
    }
    out->base = base;
    out->bytes = bytes;
    return MPIOX_OK;
}

/* A named file for kernels or containers without memfd or /proc; unlinked by mpiox_segment_seal(). */
static int create_file(char name[MPIOX_SEGMENT_NAME]) {
    const char *tmp = getenv("TMPDIR");
    const char *folders[] = {"/dev/shm", tmp && *tmp ? tmp : "/tmp"};
    for (int i = 0; i < 2; i++) {
        snprintf(name, MPIOX_SEGMENT_NAME, "%s/mpiox.XXXXXX", folders[i]);
        int fd = mkostemp(name, O_CLOEXEC);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

static int create_memfd(char name[MPIOX_SEGMENT_NAME]) {
    int fd = memfd_create("mpiox", MFD_CLOEXEC);
    if (fd >= 0)
        snprintf(name, MPIOX_SEGMENT_NAME, "/proc/%ld/fd/%d", (long) getpid(), fd);
    return fd;
}

int mpiox_segment_create(mpiox_segment_kind kind, int64_t bytes, char name[MPIOX_SEGMENT_NAME], mpiox_segment *out,
                         mpiox_error *error) {
    *out = (mpiox_segment) {.fd = -1};
    int fd = kind == MPIOX_SEGMENT_MEMFD ? create_memfd(name) : create_file(name);
    if (fd < 0)
        return mpiox_error_set(error, MPIOX_E_NOMEM, errno, -1, bytes, "creating shared memory");
    if (ftruncate(fd, bytes) != 0) {
        int code = mpiox_error_set(error, MPIOX_E_NOMEM, errno, -1, bytes, "sizing shared memory");
        close(fd);
        if (strncmp(name, "/proc/", 6) != 0)
            unlink(name);
        return code;
    }
    int code = map(fd, bytes, out, error);
    if (code == MPIOX_OK) {
        out->fd = fd;
        return code;
    }
    close(fd);
    if (strncmp(name, "/proc/", 6) != 0)
        unlink(name);
    return code;
}

int mpiox_segment_attach(const char *name, int64_t bytes, mpiox_segment *out, mpiox_error *error) {
    *out = (mpiox_segment) {.fd = -1};
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return mpiox_error_set(error, MPIOX_E_NOMEM, errno, -1, bytes, "attaching shared memory");
    int code = map(fd, bytes, out, error);
    close(fd);
    return code;
}

void mpiox_segment_seal(mpiox_segment *segment, const char *name) {
    if (segment->fd < 0)
        return;
    close(segment->fd);
    segment->fd = -1;
    if (strncmp(name, "/proc/", 6) != 0)
        unlink(name);
}

void mpiox_segment_free(mpiox_segment *segment) {
    if (!segment || !segment->base)
        return;
    munmap(segment->base, (size_t) segment->bytes);
    segment->base = NULL;
}
