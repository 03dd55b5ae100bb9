/* mpiox_storage_folder.c - see mpiox_storage_folder.h. */
#include "mpiox_storage_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_storage_internal.h"

size_t mpiox_storage_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

int mpiox_storage_folder_open(const char *file)
{
    char folder[PATH_MAX];
    const int length = (int)mpiox_storage_folder_length(file);
    if (length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    (void)snprintf(folder, sizeof folder, "%.*s", length > 0 ? length : 1, length > 0 ? file : ".");
    const int fd = mpiox_storage_descriptor(folder, O_PATH | O_DIRECTORY);
    if (fd < 0)
        errno = -fd;
    return fd < 0 ? -1 : fd;
}

bool mpiox_storage_folder_in(int folder, const char *file, char *path, size_t bytes)
{
    return (size_t)snprintf(path, bytes, "/proc/self/fd/%d/%s", folder, file + mpiox_storage_folder_length(file)) <
           bytes;
}

bool mpiox_storage_folder_now(int folder, const char *file, char *path, size_t bytes)
{
    char link[32], now[PATH_MAX];
    struct stat held, named;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    const ssize_t length = readlink(link, now, sizeof now - 2);
    if (length <= 0)
        return false;
    memcpy(now + length, "/", length > 1 ? 2 : 1); /* "/" has its own */
    now[length > 1 ? length + 1 : length] = '\0';
    if (strlen(now) == mpiox_storage_folder_length(file) && memcmp(now, file, strlen(now)) == 0)
        return false;
    return stat(now, &named) == 0 && fstat(folder, &held) == 0 && named.st_dev == held.st_dev &&
           named.st_ino == held.st_ino &&
           (size_t)snprintf(path, bytes, "%s%s", now, file + mpiox_storage_folder_length(file)) < bytes;
}
