/* mpiox_peer.c - see mpiox_peer.h. */
#include "mpiox_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* The 22nd word of the process's line; the second one, its name, may contain anything, a parenthesis, too. */
int64_t mpiox_peer_began(int64_t pid)
{
    char line[1024];

    snprintf(line, sizeof line, "/proc/%lld/stat", (long long)pid);
    const int fd = open(line, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;

    if (fd >= 0)
        close(fd);
    line[bytes > 0 ? bytes : 0] = '\0';
    const char *at = strrchr(line, ')');
    for (int word = 2; at != NULL && word < 22; word++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoll(at + 1, NULL, 10) : 0;
}

/* /proc may be of another namespace than this process (unshare --pid without --mount-proc): its numbers mean others. */
static bool has_own_proc(void)
{
    char number[32];
    const ssize_t bytes = readlink("/proc/self", number, sizeof number - 1);

    number[bytes > 0 ? bytes : 0] = '\0';
    return strtoll(number, NULL, 10) == getpid();
}

/* Two numbers of 32 bits. Without namespaces of clocks (Linux before 5.6) the second is 0. */
static uint64_t own_spaces(void)
{
    struct stat numbers, clocks = {0};

    if (!has_own_proc() || stat("/proc/self/ns/pid", &numbers) != 0)
        return 0;
    if (stat("/proc/self/ns/time", &clocks) != 0)
        clocks.st_ino = 0;
    return (uint64_t)numbers.st_ino | (uint64_t)clocks.st_ino << 32;
}

void mpiox_peer_introduce(mpiox_peer *self)
{
    self->began = mpiox_peer_began(getpid());
    self->spaces = own_spaces();
    atomic_store(&self->pid, getpid());
}

bool mpiox_peer_has_died(const mpiox_peer *peer)
{
    const int64_t pid = atomic_load(&peer->pid);

    if (pid == 0 || peer->spaces == 0 || peer->spaces != own_spaces())
        return false;
    struct pollfd polled = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .events = POLLIN};
    if (polled.fd < 0)
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    const int64_t began = mpiox_peer_began(
        pid); /* of the process that the descriptor stands for, unless it has ended */
    const bool ended = poll(&polled, 1, 0) > 0;

    close(polled.fd);
    return ended || (began != 0 && peer->began != 0 && began != peer->began);
}
