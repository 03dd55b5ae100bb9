/*
 * mpiox_layout_find_mount.c - see mpiox_layout_find_mount.h.
 *
 * Problem.   statfs(2) returns "FUSE" for a dozen file systems, and several of them have no attribute of their own.
 * Algorithm. The kernel's number of the descriptor's mount (fdinfo, "mnt_id"), looked up in mountinfo: right also if
 *            mounts lie over each other, and without walking paths.
 * Guarantee. The file system itself gets no request. Texts that cannot be read stay empty.
 */
#include "mpiox_layout_find_mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTINFO_BYTES (1 << 22)
#define FDINFO_BYTES 1024

/* A file of /proc, whole or up to its first `capacity` bytes: *bytes of them. NULL: no memory. */
static char *read_text(const char *path, int64_t capacity, int64_t *bytes)
{
    char *text = malloc((size_t)capacity);
    int fd = text != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    *bytes = 0;
    while (fd >= 0 && *bytes < capacity) {
        ssize_t got = read(fd, text + *bytes, (size_t)(capacity - *bytes));
        if (got <= 0)
            break;
        *bytes += got;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

void mpiox_layout_find_mount(int fd, mpiox_layout_mount *out)
{
    char path[40];
    int64_t bytes, mount;
    memset(out, 0, sizeof *out);
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    char *text = read_text(path, FDINFO_BYTES, &bytes);
    mount = mpiox_layout_parse_fdinfo(text, text != NULL ? bytes : 0);
    free(text);
    text = mount >= 0 ? read_text("/proc/self/mountinfo", MOUNTINFO_BYTES, &bytes) : NULL;
    if (text != NULL && mpiox_layout_parse_mountinfo(text, bytes, mount, out) != MPIOX_OK)
        memset(out, 0, sizeof *out);
    free(text);
}

bool mpiox_layout_is_moose(const mpiox_layout_mount *mount)
{
    if (strcmp(mount->type, "fuse") == 0)
        return strncmp(mount->source, "mfs#", 4) == 0;
    return strcmp(mount->type, "fuse.mfs") == 0 || strcmp(mount->type, "fuse.moosefs") == 0;
}
