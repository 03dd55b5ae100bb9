/*
 * mpiox_storage_container.h - a file whose bytes lie in other files: its interface to the rest of the library.
 *
 * Problem.   Processes that do not know how a file is stored open it, write it behind its close, complete it and delete
 *            it like any other, even if it is stored as several files.
 * Algorithm. The name of such a file, a container, leads to its index. One table of functions recognises an index,
 *            opens the file behind it, and carries out operations on all of its parts. A build has one such table: the
 *            table of the folder beside this one, or a table that opens no container (csrc/core/without).
 * Guarantee. If a file is no container, the check costs its opener one system call, unless the file is small. Local,
 *            blocking.
 */
#ifndef MPIOX_STORAGE_CONTAINER_H
#define MPIOX_STORAGE_CONTAINER_H

#include <limits.h>
#include <sys/stat.h>

#include "mpiox_storage.h"

/* How the units of a container are distributed over its parts. */
typedef struct mpiox_storage_deal {
    uint64_t id;   /* of the file, random */
    int64_t unit;  /* bytes of a contiguous unit */
    int32_t count; /* of parts, which take the units in turn */
} mpiox_storage_deal;

typedef struct mpiox_storage_containers {
    /* Is a file of this name an index? is_open(): of a file that is open as `fd`; by `path` if `fd` cannot be read. */
    bool (*is)(const char *path);
    bool (*is_open)(const char *path, int fd);
    /* As mpiox_storage_open(), for the file whose index is at `path`. storage->fd is the first part's. */
    int (*open)(const char *path, int flags, int rank, const mpiox_storage_options *options, mpiox_storage **out,
                mpiox_error *error);
    /* False: the file is no container. */
    bool (*deal)(const mpiox_storage *storage, mpiox_storage_deal *out);
    /* Show other processes that a delegate has bytes of the file, until the delegate closes it. Any thread; does
     * nothing if the file is no container. */
    void (*mark_written)(mpiox_storage *storage);
    /* The container's first part, which identifies it: the path, unless NULL, and the status. 0, EILSEQ (no index), or
     * the errno of a failed query. */
    int (*first)(const char *path, char first[PATH_MAX], struct stat *status);
    /* Flush this host's writes to the parts to stable storage. 0 or an errno. */
    int (*sync)(const char *path);
    /* The parts have all bytes of the file: give it its own name, `name` or a path to it, in one step, and remove its
     * index at `hidden`. 0; EAGAIN: a process has the file open for writing, or is giving it the name now; EEXIST:
     * another file has that name; ENOENT: the index does not exist any more; or an errno. */
    int (*publish)(const char *hidden, const char *name);
    /* Delete the file, its index, then its parts, unless another index in the folder has them; or *error, for example
     * that another process has had the file open for a second (blocks meanwhile). False: the path is no index, a
     * symbolic link, or one of several names of an index, and the caller removes the name alone. */
    bool (*delete)(const char *path, mpiox_error *error);
    /* The same for a file that no process has open, without a search for another index. 0, EILSEQ or an errno. */
    int (*remove)(const char *path);
    /* Make a file in memory with the first bytes of the container, for callers past MPI that read its format. Returns
     * its descriptor, which the caller closes; -1: no container, or it cannot be read. */
    int (*beginning)(const char *path);
    const char *exists_already; /* why a close waits for delegates if the file existed before */
    const char *open_elsewhere; /* why an open is refused if publish() has found the file open for writing */
} mpiox_storage_containers;

extern const mpiox_storage_containers mpiox_storage_container;

#endif
