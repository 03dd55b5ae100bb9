/*
 * mpiox_storage_container.h - a file whose bytes lie in other files: its interface to the rest of the library.
 *
 * Problem.   Processes that do not know how a file is stored open it, write it behind its close, complete it and delete
 *            it like any other, even if it is stored as several files.
 * Algorithm. The name of such a file, a container, leads to its index. One table of functions recognises an index,
 *            opens the file behind it, and carries out operations on all of its parts. There is one such table in a
 *            build: that of a folder beside this one, or one that opens no container (csrc/core/without).
 * Guarantee. A file that is no container costs its opener one system call, unless it is small. Local, blocking.
 */
#ifndef MPIOX_STORAGE_CONTAINER_H
#define MPIOX_STORAGE_CONTAINER_H

#include <limits.h>
#include <sys/stat.h>

#include "mpiox_storage.h"

/* How the bytes of a container are dealt out. */
typedef struct mpiox_storage_deal {
    uint64_t id;   /* of the file, random */
    int64_t unit;  /* bytes that lie together */
    int32_t count; /* of parts, which take the units in turn */
} mpiox_storage_deal;

typedef struct mpiox_storage_containers {
    /* Is a file of this name an index? The same of one that is open as `fd`; by its path where that cannot be read. */
    bool (*is)(const char *path);
    bool (*is_open)(const char *path, int fd);
    /* As mpiox_storage_open(), of the file whose index is at `path`. storage->fd is the first part's. */
    int (*open)(const char *path, int flags, int rank, const mpiox_storage_options *options, mpiox_storage **out,
                mpiox_error *error);
    /* False: it is no container. */
    bool (*deal)(const mpiox_storage *storage, mpiox_storage_deal *out);
    /* Others see that a delegate has bytes of the file, until it closes it. Any thread; nothing is done for what
     * is no container. */
    void (*mark_written)(mpiox_storage *storage);
    /* Its first part, which identifies it: the path, unless NULL, and the status. 0, EILSEQ (no index), or the errno of
     * a failed query. */
    int (*first)(const char *path, char first[PATH_MAX], struct stat *status);
    /* Bring this host's writes to the parts to stable storage. 0 or an errno. */
    int (*sync)(const char *path);
    /* All of the file is in its parts: it gets its own name, `name` or a path to it, in one step, and its index at
     * `hidden` goes. 0; EAGAIN: somebody has it open for writing, or does this just now; EEXIST: something else has
     * that name; ENOENT: there is no such index any more; or an errno. */
    int (*publish)(const char *hidden, const char *name);
    /* Delete the file, its index, then the parts, unless another index in the folder has them; or *error, for example
     * that another process has had it open for a second (blocks meanwhile). False: the caller is to remove the name
     * alone, for it is no index, a symbolic link, or one of several names of an index. */
    bool (*delete)(const char *path, mpiox_error *error);
    /* The same for a file that no process has open, without a search for another index. 0, EILSEQ or an errno. */
    int (*remove)(const char *path);
    /* A file in memory with the first bytes of the container, for callers past MPI that read its format. Its
     * descriptor, to be closed; -1: it is none, or cannot be read. */
    int (*beginning)(const char *path);
    const char *exists_already; /* why its close waits for delegates where the file was there before */
    const char *open_elsewhere; /* why an open is refused where publish() has found it open for writing */
} mpiox_storage_containers;

extern const mpiox_storage_containers mpiox_storage_container;

#endif
