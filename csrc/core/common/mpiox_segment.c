/* mpiox_segment.c - see mpiox_segment.h. */
#include "mpiox_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_wait.h"

/* MADV_POPULATE_WRITE of Linux 5.14 and MADV_COLLAPSE of 6.1, which headers may be older than. */
enum { POPULATE_WRITE = 23, COLLAPSE = 25, HUGE = MPIOX_SEGMENT_HUGE };

/* At a multiple of HUGE, where a huge page may begin. Room is found by a mapping that is given back: under
 * mlockall(MCL_FUTURE) both at once would count against RLIMIT_MEMLOCK. Without it the kernel chooses. */
static void *map_aligned(int fd, size_t bytes)
{
    const size_t room = bytes + HUGE;
    char *place = bytes < HUGE ? MAP_FAILED
                               : mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) {
        place = NULL;
    } else {
        munmap(place, room);
        place += (HUGE - (uintptr_t)place % HUGE) % HUGE;
    }
    return mmap(place, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
}

static int map(int fd, int64_t bytes, mpiox_segment *out, mpiox_error *error)
{
    void *base = map_aligned(fd, (size_t)bytes);
    if (base == MAP_FAILED)
        return mpiox_error_set(error, MPIOX_E_NOMEM, errno, -1, bytes, "mmap of shared memory");
    munlock(base, (size_t)bytes); /* under mlockall(MCL_FUTURE) all of it would take memory, used or not */
    if (mprotect(base, (size_t)bytes, PROT_READ | PROT_WRITE) != 0) {
        const int saved = errno;
        munmap(base, (size_t)bytes);
        return mpiox_error_set(error, MPIOX_E_NOMEM, saved, -1, bytes, "mmap of shared memory");
    }
    out->base = base;
    out->bytes = bytes;
    return MPIOX_OK;
}

bool mpiox_segment_strict_commitment(void)
{
    char text[4] = "";
    const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    return bytes > 0 && text[0] == '2';
}

bool mpiox_segment_allows(int64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           (uint64_t)bytes <= (uint64_t)limit.rlim_cur;
}

/* The size, the pages if they are to be reserved, and the mark behind the shared bytes. 0 or an errno. */
static int fill(int fd, bool reserve, int64_t bytes, mpiox_segment_address *address)
{
    const int64_t whole = bytes + (int64_t)sizeof address->mark;
    struct stat status;
    int code;
    address->mark[0] = mpiox_unique();
    address->mark[1] = mpiox_unique();
    if (!mpiox_segment_allows(whole))
        return EFBIG;
    if (ftruncate(fd, whole) != 0)
        return errno;
    if (reserve) {
        do
            code = posix_fallocate(fd, 0, whole);
        while (code == EINTR);
        if (code != 0)
            return code;
    }
    if (pwrite(fd, address->mark, sizeof address->mark, bytes) != (ssize_t)sizeof address->mark)
        return ENOSPC;
    if (fstat(fd, &status) != 0)
        return errno;
    address->device = (uint64_t)status.st_dev;
    address->inode = (uint64_t)status.st_ino;
    address->bytes = bytes;
    return 0;
}

static int create_memfd(int64_t bytes, mpiox_segment_address *address)
{
    const int fd = memfd_create("mpiox", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    const int code = fill(fd, mpiox_segment_strict_commitment(), bytes, address);
    if (code != 0) {
        close(fd);
        errno = code;
        return -1;
    }
    snprintf(address->name, sizeof address->name, "/proc/%ld/fd/%d", (long)getpid(), fd);
    return fd;
}

/* A named file for kernels or containers where no memfd is to be had, or not found by the others. */
static int create_file(int64_t bytes, mpiox_segment_address *address)
{
    const char *tmp = getenv("TMPDIR");
    const char *folders[] = {"/dev/shm", tmp && *tmp ? tmp : "/tmp"};
    int code = ENOSPC;
    for (int i = 0; i < 2; i++) {
        const int length = snprintf(address->name, sizeof address->name, "%s/mpiox.XXXXXX", folders[i]);
        const bool fits = length < MPIOX_SEGMENT_NAME;
        const int fd = fits ? mkostemp(address->name, O_CLOEXEC) : -1;
        const int failed = fd >= 0 ? fill(fd, true, bytes, address) : fits ? errno : ENAMETOOLONG;
        if (failed == 0)
            return fd;
        if (fd >= 0) {
            close(fd);
            unlink(address->name);
        }
        code = i == 0 || code != ENOSPC ? failed : code; /* want of room is what the user can do something about */
    }
    errno = code;
    return -1;
}

/* Made anew, for its owner alone. Without `keep` its name is taken away before it has a size: whatever dies, nothing is
 * left in the folder. `mpiio-ext delegates status` knows it by the name that it has had. */
static int create_in(const char *folder, int64_t bytes, char *keep, mpiox_segment_address *address)
{
    const int length = snprintf(address->name, sizeof address->name, "%s/mpiox.XXXXXX", folder);
    errno = ENAMETOOLONG;
    const int fd = length < MPIOX_SEGMENT_NAME ? mkostemp(address->name, O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    if (keep == NULL)
        unlink(address->name);
    const int code = fill(fd, true, bytes, address);
    if (code != 0) {
        if (keep != NULL)
            unlink(address->name);
        close(fd);
        errno = code;
        return -1;
    }
    if (keep != NULL)
        memcpy(keep, address->name, MPIOX_SEGMENT_NAME);
    snprintf(address->name, sizeof address->name, "/proc/%ld/fd/%d", (long)getpid(), fd);
    return fd;
}

static void remove_name(const mpiox_segment_address *address)
{
    if (strncmp(address->name, "/proc/", 6) != 0)
        unlink(address->name);
}

static void drop(int fd, const mpiox_segment_address *address)
{
    close(fd);
    remove_name(address);
}

/* Fill in the new segment, or the reason why there is none: `otherwise` is the code of a failure that is not lack of
 * room. */
static int hand_over(int fd, int otherwise, const char *what, int64_t bytes, const mpiox_segment_address *address,
                     mpiox_segment *out, mpiox_error *error)
{
    *out = (mpiox_segment){.fd = -1};
    if (fd < 0) {
        const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
        return mpiox_error_set(error, full ? MPIOX_E_FULL : otherwise, errno, -1, bytes, what);
    }
    const int code = map(fd, bytes, out, error);
    if (code != MPIOX_OK)
        drop(fd, address);
    else
        out->fd = fd;
    return code;
}

int mpiox_segment_create(mpiox_segment_kind kind, int64_t bytes, mpiox_segment_address *address, mpiox_segment *out,
                         mpiox_error *error)
{
    const int fd = kind == MPIOX_SEGMENT_MEMFD ? create_memfd(bytes, address) : create_file(bytes, address);
    return hand_over(fd, MPIOX_E_NOMEM, "creating shared memory", bytes, address, out, error);
}

int mpiox_segment_create_in(const char *folder, int64_t bytes, char name[MPIOX_SEGMENT_NAME],
                            mpiox_segment_address *address, mpiox_segment *out, mpiox_error *error)
{
    const int fd = create_in(folder, bytes, name, address);
    const int code = hand_over(fd, MPIOX_E_IO, "making a cache on a disk", bytes, address, out, error);
    out->on_disk = code == MPIOX_OK;
    if (fd >= 0 && code != MPIOX_OK && name != NULL)
        unlink(name);
    return code;
}

static bool is_the_creators(const struct stat *status, const mpiox_segment_address *address)
{
    return S_ISREG(status->st_mode) && (uint64_t)status->st_dev == address->device &&
           (uint64_t)status->st_ino == address->inode &&
           (int64_t)status->st_size == address->bytes + (int64_t)sizeof address->mark;
}

/* Check the name before the open, since it may lead to anything and opening a device can have effects, and check the
 * file again after the open. The mark distinguishes files of different kernels that have the same numbers. */
static int open_the_creators(const mpiox_segment_address *address)
{
    struct stat status;
    uint64_t mark[2] = {0, 0};
    if (stat(address->name, &status) != 0 || !is_the_creators(&status, address))
        return -1;
    const int fd = open(address->name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && is_the_creators(&status, address) &&
        pread(fd, mark, sizeof mark, address->bytes) == (ssize_t)sizeof mark &&
        memcmp(mark, address->mark, sizeof mark) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool is_file(int fd)
{
    static const char memfd[] = "/memfd:";
    char name[32], target[sizeof memfd];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t bytes = readlink(name, target, sizeof target);
    return bytes > 0 && strncmp(target, memfd, sizeof memfd - 1) != 0;
}

int mpiox_segment_attach(const mpiox_segment_address *address, mpiox_segment *out, mpiox_error *error)
{
    *out = (mpiox_segment){.fd = -1};
    const int fd = open_the_creators(address);
    if (fd < 0)
        return mpiox_error_set(error, MPIOX_E_UNSUPPORTED, 0, -1, address->bytes, "attaching shared memory");
    const int code = map(fd, address->bytes, out, error);
    out->on_disk = is_file(fd);
    if (code == MPIOX_OK && out->on_disk)
        out->fd = fd;
    else
        close(fd);
    return code;
}

bool mpiox_segment_touch(void *start, int64_t bytes)
{
    const size_t before = (uintptr_t)start % (uintptr_t)sysconf(_SC_PAGESIZE); /* parts begin at multiples of 4096 */
    return madvise((char *)start - before, (size_t)bytes + before, POPULATE_WRITE) == 0;
}

/* The kernel makes one huge page of small ones only where there is one: reading a byte makes it. */
bool mpiox_segment_make_huge(void *start, int64_t bytes)
{
    const int saved = errno;
    volatile char *first = start, *end = first + bytes;
    first += (HUGE - (uintptr_t)first % HUGE) % HUGE;
    end -= (uintptr_t)end % HUGE;
    for (volatile char *at = first; at < end; at += HUGE)
        (void)*at;
    const bool made = first >= end || madvise((void *)first, (size_t)(end - first), COLLAPSE) == 0;
    errno = saved;
    return made;
}

void mpiox_segment_seal(mpiox_segment *segment, const mpiox_segment_address *address)
{
    if (segment->fd < 0)
        return;
    drop(segment->fd, address);
    segment->fd = -1;
}

void mpiox_segment_hide(const mpiox_segment *segment, mpiox_segment_address *address)
{
    if (segment->fd >= 0)
        remove_name(address);
    address->name[0] = '\0'; /* whatever has that name from now on is somebody else's */
}

void mpiox_segment_free(mpiox_segment *segment)
{
    if (!segment || !segment->base)
        return;
    munmap(segment->base, (size_t)segment->bytes);
    segment->base = NULL;
    if (segment->on_disk && segment->fd >= 0)
        close(segment->fd);
    segment->fd = -1;
}

/* Errors are noted for the whole file, and returned by any call that waits for its pages: there are none so far behind
 * its end. */
bool mpiox_segment_has_failed(int fd)
{
    static const off64_t beyond = INT64_C(1) << 61;
    return fd >= 0 && sync_file_range(fd, beyond, 1, SYNC_FILE_RANGE_WAIT_BEFORE) != 0 && errno != ENOSYS &&
           errno != EINVAL && errno != EBADF;
}
