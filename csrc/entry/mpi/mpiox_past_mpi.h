/*
 * mpiox_past_mpi.h - calls past MPI for a file of the program that delegates still write.
 *
 * Problem.   Until delegates have written a file behind its close it has a hidden name, or only delegates have some of
 *            its bytes. rename(), stat() or fopen() of its own name would not find it, or find an older one.
 * Algorithm. libmpiio_ext_posix.so wraps such calls, and queries this file: this library hands it the table below when
 *            it is loaded. Memory shows whether delegates may have such files. A stat() of the name shows the rest. An
 *            older file is found by its inode, in the memory of the node's delegates or among those that this process
 *            has closed. If there is no file, one with the hidden name of the path, or of the target of its link, may
 *            exist: every rank of the job finds it, whichever rank opened the file. Then delegates get a request to
 *            write it at full speed, and the call waits for that. A process that is no client of delegates (a child of
 *            a rank, or a program beside the ranks) has no such memory: it finds hidden names alone, and a lock of a
 *            delegate shows that the file was closed (MPIOX_GUARD_CLOSED). It waits as long as the delegate owns the
 *            lock, and requests nothing. The same lock shows which entries of a folder are files to wait for.
 * Guarantee. Without delegates: one load. A call that cannot wait continues immediately.
 * Limits.    After MPI_Finalize delegates of other nodes get no requests: the call waits ten seconds for them. A
 *            process that is no client waits only if the hints of all files (`*`) have mpiox_close=staged.
 */
#ifndef MPIOX_PAST_MPI_H
#define MPIOX_PAST_MPI_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

typedef enum mpiox_past_mpi_kind {
    MPIOX_PAST_MPI_NAMED,  /* it has its own name, but not yet all bytes */
    MPIOX_PAST_MPI_HIDDEN, /* it has another name yet */
    MPIOX_PAST_MPI_BELOW   /* a folder, which may contain such files */
} mpiox_past_mpi_kind;

typedef struct mpiox_past_mpi_file { /* that is still written */
    mpiox_past_mpi_kind kind;
    int closed;          /* its place among those that this process has closed, or -1 */
    char path[PATH_MAX]; /* by its own name */
} mpiox_past_mpi_file;

/* This library's functions for such files. They may be called in any thread, and change errno. */
typedef struct mpiox_past_mpi {
    const char *begin, *end;      /* addresses of this library */
    const atomic_bool *delegates; /* there are delegates, or there were, or may be elsewhere: for a check at no cost */
    /* May the job have files that are still written? Local, cheap. */
    bool (*any)(void);
    /* Is it such a file, or, `below`, a folder? known: the result of a stat() of it, inode 0: it found nothing; NULL:
     * there was no stat(). Local, without a lock. */
    bool (*find)(int folder, const char *path, const struct stat *known, bool below, mpiox_past_mpi_file *out);
    /* Is this entry of a folder the hidden name of a file that was closed? Local, without a lock. */
    bool (*find_listed)(int folder, const char *entry, mpiox_past_mpi_file *out);
    /* It is whole when this returns, or each file in the folder is. Slow. */
    void (*await)(const mpiox_past_mpi_file *file);
    /* The same of a file's name as MPI takes it, on rank 0 of a communicator (MPI_Comm). */
    void (*await_at_0)(uintptr_t comm, const char *filename);
    /* The same on each rank; a descriptor of the first bytes of a file of subfiles, or -1: it is none. */
    int (*beginning)(const char *filename);
} mpiox_past_mpi;

/* A table for libmpiio_ext_posix.so, which stores it. True: calls of the program pass through that library. */
typedef bool mpiox_past_mpi_hook(const mpiox_past_mpi *library);
#define MPIOX_PAST_MPI_HOOK "mpiio_ext_posix_begin"

struct mpiox_handle;
/* After a file was opened: if it is still written after its close, and no call waits for it, rank 0 of the job prints
 * one line. Local. */
void mpiox_past_mpi_note_opened(const struct mpiox_handle *handle);
/* This process closes it, and may leave it to be written. Local. */
void mpiox_past_mpi_note_closed(const struct mpiox_handle *handle);

#endif
