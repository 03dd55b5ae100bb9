/* mpiox_delegate_speaker.c - see mpiox_delegate_speaker.h. */
#include "mpiox_delegate_speaker.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mpiox_delegate_speaker mpiox_delegate_speaker_self(void)
{
    mpiox_delegate_speaker self = {.pid = getpid()};
    struct stat status;

    if (fstat(STDERR_FILENO, &status) != 0)
        return (mpiox_delegate_speaker){.pid = 0};
    self.device = (uint64_t)status.st_dev;
    self.inode = (uint64_t)status.st_ino;
    gethostname(self.host, sizeof self.host - 1);
    return self;
}

static bool is_the_speakers(const mpiox_delegate_speaker *speaker, const struct stat *status)
{
    return (uint64_t)status->st_dev == speaker->device && (uint64_t)status->st_ino == speaker->inode;
}

void mpiox_delegate_speaker_use(const mpiox_delegate_speaker *speaker)
{
    char path[64], host[sizeof speaker->host] = "";
    struct stat status;

    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "/proc/%lld/fd/2", (long long)speaker->pid);
    if (speaker->pid <= 0 || strcmp(host, speaker->host) != 0 || stat(path, &status) != 0 ||
        !is_the_speakers(speaker, &status))
        return;
    const int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && is_the_speakers(speaker, &status))
        dup2(fd, STDERR_FILENO);
    close(fd);
}
