/* mpiox_trace_system.c - see mpiox_trace_system.h. */
#include "mpiox_trace_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ZEROS = 65536, HIGH_DESCRIPTOR = 240 };

/* syscall() with errno as it was; it returns -errno for an error. */
static long quiet(long number, long a, long b, long c, long d, long e, long f)
{
    const int before = errno;
    const long result = syscall(number, a, b, c, d, e, f), code = result < 0 ? -errno : result;

    errno = before;
    return code;
}

int mpiox_trace_create(const char *path)
{
    return (int)quiet(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666, 0, 0);
}

int mpiox_trace_open(const char *path)
{
    return (int)quiet(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
}

int mpiox_trace_share(const char *path)
{
    return (int)quiet(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600, 0, 0);
}

int mpiox_trace_access(const char *path, int mode)
{
    return (int)quiet(SYS_faccessat, AT_FDCWD, (long)path, mode, 0, 0, 0);
}

void mpiox_trace_remove(const char *path)
{
    quiet(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0);
}

int mpiox_trace_rename(const char *from, const char *to)
{
    return (int)quiet(SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0, 0);
}

void mpiox_trace_touch(const char *path)
{
    quiet(SYS_utimensat, AT_FDCWD, (long)path, 0, 0, 0, 0);
}

/* Anybody may take a name that can be guessed: only a process of the same user is trusted. */
static bool is_ours(long fd)
{
    struct ucred who = {0};
    socklen_t bytes = sizeof who;

    return quiet(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, (long)&who, (long)&bytes, 0) == 0 && who.uid == geteuid();
}

int mpiox_trace_connect(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(name);

    if (length >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path + 1, name, length);
    const long fd = quiet(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0, 0, 0);
    if (fd < 0)
        return -1;
    const long bytes = (long)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    const bool connected = quiet(SYS_connect, fd, (long)&address, bytes, 0, 0, 0) == 0 && is_ours(fd);
    const long high = connected ? quiet(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR, 0, 0, 0) : -1;
    if (connected && high < 0)
        return (int)fd;
    mpiox_trace_close((int)fd);
    return (int)high;
}

void mpiox_trace_close(int fd)
{
    quiet(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* May a file have this size? The kernel would end a process that exceeds the limit (SIGXFSZ). */
static bool allowed(int64_t bytes)
{
    struct rlimit limit;

    return quiet(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           (uint64_t)bytes <= limit.rlim_cur;
}

/* Where the file system has no fallocate(2), zeros take the space: a store into a mapping without it would kill. */
int mpiox_trace_allocate(int fd, int64_t start, int64_t end)
{
    static const char zeros[ZEROS];

    if (!allowed(end))
        return -1;
    const long code = quiet(SYS_fallocate, fd, 0, start, end - start, 0, 0);
    if (code == 0)
        return 0;
    if (code != -EOPNOTSUPP && code != -ENOSYS && code != -EINTR)
        return -1;
    for (int64_t at = start; at < end;) {
        const int64_t bytes = end - at < ZEROS ? end - at : ZEROS;
        const long written = quiet(SYS_pwrite64, fd, (long)zeros, bytes, at, 0, 0);

        if (written <= 0 && written != -EINTR)
            return -1;
        at += written > 0 ? written : 0;
    }
    return 0;
}

int mpiox_trace_cut(int fd, int64_t bytes)
{
    return (int)quiet(SYS_ftruncate, fd, bytes, 0, 0, 0, 0);
}

void *mpiox_trace_map(int fd, int64_t offset, int64_t bytes)
{
    const long flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
    const long address = quiet(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);

    return address < 0 ? NULL : (void *)address;
}

void mpiox_trace_unmap(void *address, int64_t bytes)
{
    if (address != NULL)
        quiet(SYS_munmap, (long)address, bytes, 0, 0, 0, 0);
}

int64_t mpiox_trace_position(int fd)
{
    return quiet(SYS_lseek, fd, 0, SEEK_CUR, 0, 0, 0);
}

int mpiox_trace_link_text(const char *path, char *text, int bytes)
{
    const long length = quiet(SYS_readlinkat, AT_FDCWD, (long)path, (long)text, bytes - 1, 0, 0);

    if (length < 0)
        return -1;
    text[length] = '\0';
    return (int)length;
}

int mpiox_trace_read_text(const char *path, char *text, int bytes)
{
    const long fd = quiet(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    const long length = fd >= 0 ? quiet(SYS_read, fd, (long)text, bytes - 1, 0, 0, 0) : -1;

    if (fd >= 0)
        mpiox_trace_close((int)fd);
    text[length > 0 ? length : 0] = '\0';
    return (int)length;
}

int mpiox_trace_folder(char *text, int bytes)
{
    const long length = quiet(SYS_getcwd, (long)text, bytes, 0, 0, 0, 0);

    return length <= 0 || text[0] != '/' ? -1 : (int)length - 1;
}

void mpiox_trace_make_folder(const char *path)
{
    quiet(SYS_mkdirat, AT_FDCWD, (long)path, 0777, 0, 0, 0);
}

void mpiox_trace_rest(void)
{
    const struct timespec time = {.tv_nsec = 1000000};

    quiet(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

void mpiox_trace_pause(void)
{
    quiet(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t mpiox_trace_monotonic(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t mpiox_trace_unix(void)
{
    return clock_ns(CLOCK_REALTIME);
}
