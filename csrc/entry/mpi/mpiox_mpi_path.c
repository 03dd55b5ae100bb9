/* mpiox_mpi_path.c - see mpiox_mpi_path.h. Only known prefixes count as such: a ':' is legal in file names. */
#include "mpiox_mpi_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct {
    const char *prefix;
    bool posix;
} prefixes[] = {
    {"ufs:", true},   {"nfs:", true},     {"xfs:", true},      {"lustre:", true},  {"gpfs:", true},
    {"panfs:", true}, {"quobyte:", true}, {"ime:", false},     {"pvfs:", false},   {"pvfs2:", false},
    {"daos:", false}, {"testfs:", false}, {"gridftp:", false}, {"gsiftp:", false}, {"ftp:", false},
};

static int find(const char *filename)
{
    for (int i = 0; i < (int)(sizeof prefixes / sizeof prefixes[0]); i++) {
        if (strncasecmp(filename, prefixes[i].prefix, strlen(prefixes[i].prefix)) == 0)
            return i;
    }
    return -1;
}

const char *mpiox_mpi_path(const char *filename)
{
    const int index = find(filename);
    return index < 0 ? filename : filename + strlen(prefixes[index].prefix);
}

const char *mpiox_mpi_path_opened(const char *filename)
{
    const char *path = mpiox_mpi_path(filename);
    if (path == filename)
        return filename;
    const bool with = access(filename, F_OK) == 0, without = access(path, F_OK) == 0;
    return with == without ? NULL : with ? filename : path;
}

bool mpiox_mpi_path_is_posix(const char *filename)
{
    const int index = find(filename);
    return index < 0 || prefixes[index].posix;
}

bool mpiox_mpi_path_folder(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    if (slash && slash - path >= PATH_MAX)
        return false;
    snprintf(folder, PATH_MAX, "%.*s", !slash || slash == path ? 1 : (int)(slash - path), slash ? path : ".");
    return true;
}

int mpiox_mpi_path_errno(const char *path, bool write, bool create)
{
    char folder[PATH_MAX];
    const int fd = open(path, (write ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno != ENOENT || !create)
        return errno;
    if (!mpiox_mpi_path_folder(path, folder))
        return ENAMETOOLONG;
    return access(folder, W_OK | X_OK) == 0 ? 0 : errno;
}
