/* mpiox_process_launcher_id.c - see mpiox_process_launcher_id.h. */
#include "mpiox_process_launcher_id.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mpiox_process_launcher_id mpiox_process_launcher_id_self(void)
{
    mpiox_process_launcher_id self = {.pid = getpid()};
    struct stat status;

    if (fstat(STDERR_FILENO, &status) != 0)
        return (mpiox_process_launcher_id){.pid = 0};
    self.device = (uint64_t)status.st_dev;
    self.inode = (uint64_t)status.st_ino;
    gethostname(self.host, sizeof self.host - 1);
    return self;
}

static bool is_its_own(const mpiox_process_launcher_id *launcher_id, const struct stat *status)
{
    return (uint64_t)status->st_dev == launcher_id->device && (uint64_t)status->st_ino == launcher_id->inode;
}

void mpiox_process_launcher_id_use(const mpiox_process_launcher_id *launcher_id)
{
    char path[64], host[sizeof launcher_id->host] = "";
    struct stat status;

    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "/proc/%lld/fd/2", (long long)launcher_id->pid);
    if (launcher_id->pid <= 0 || strcmp(host, launcher_id->host) != 0 || stat(path, &status) != 0 ||
        !is_its_own(launcher_id, &status))
        return;
    const int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && is_its_own(launcher_id, &status))
        dup2(fd, STDERR_FILENO);
    close(fd);
}
