/*
 * mpiox_live.h - a page of each rank that other processes may read: its identity, and the bytes that it has read and
 * written so far.
 *
 * Problem.    A user wants to see the activity of a running job, without an option at the job's start, without requests
 *             to the ranks, which may be stuck, and without slowing the ranks down.
 * Algorithm.  Each process that calls MPI_Init makes a memfd and leaves it open. `mpiio-ext top` finds the memfd among
 *             the descriptors in /proc/PID/fd and maps it for reading, as it does with the memory of delegates. The
 *             page has a head, and an entry for each open file. An access adds to two numbers of its file's entry. The
 *             close of a file adds these numbers to the head's and frees the entry. During this update `change` is odd;
 *             a reader that finds `change` odd, or changed afterwards, reads again.
 * Guarantees. An access costs two atomic additions, and no access, open or close makes an additional system call. The
 *             page has no name, so that nothing remains however a process ends; its size is sealed, so that a reader's
 *             mapping stays valid. Only processes of the same user, and root, can open it. Without memfd or memory, or
 *             with MPIOX_LIVE=0, the process counts in private memory.
 * Layout.     mpiio_ext/top/pages.py reads the page: a change here needs the same change there, and a new
 *             MPIOX_LIVE_VERSION.
 */
#ifndef MPIOX_LIVE_H
#define MPIOX_LIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MPIOX_LIVE_NAME "mpiio_ext.live" /* name of the memfd */
#define MPIOX_LIVE_MAGIC "MPIOXLIV"

enum {
    MPIOX_LIVE_VERSION = 1,
    MPIOX_LIVE_HEAD_BYTES = 4096,
    MPIOX_LIVE_FILES = 8000,      /* entries; files beyond them are counted in the head alone */
    MPIOX_LIVE_FILES_STRICT = 60, /* if all memory must be there from the start: vm.overcommit_memory = 2 */
    MPIOX_LIVE_PATH = 208
};

enum { MPIOX_LIVE_RUNNING = 1, MPIOX_LIVE_FINALIZED = 2 };

/* The counters of accesses; any thread of the process raises them. */
typedef struct mpiox_live_counters {
    atomic_int_least64_t bytes[2], calls[2]; /* reads, writes */
} mpiox_live_counters;

typedef struct mpiox_live_file {
    mpiox_live_counters counters;   /* since the opening */
    atomic_int_least64_t opened_ns; /* since 1970; 0: the entry is free */
    int64_t spare;                  /* not used */
    char path[MPIOX_LIVE_PATH];     /* ends with NUL; of a longer path the end, behind "..." */
} mpiox_live_file;

typedef struct mpiox_live_page {
    char magic[8];                                  /* of the format */
    int32_t version, head_bytes, file_bytes, files; /* bytes of the head and of an entry; number of entries */
    int64_t pid;                                    /* in the namespace of the process */
    int64_t start_ticks;                            /* of the process: field 22 of /proc/PID/stat */
    int64_t started_ns;                             /* seconds since 1970 at which the library was loaded, in ns */
    int32_t rank, ranks;                            /* in MPI_COMM_WORLD */
    atomic_int state;                               /* set last at the start; 0: the page is not complete yet */
    atomic_int files_end;                           /* one past the last entry that was ever used */
    atomic_uint_least64_t change;                   /* odd: files are being opened or closed */
    atomic_int_least64_t opened, open, unlisted;    /* files so far; open ones; ones without an entry */
    mpiox_live_counters rest;                       /* counters of closed files and of files without an entry */
    char host[64], program[64];                     /* host name; name of the executable */
    char scheduler_job[64];                         /* "": none */
    char world[128];   /* the launcher's name for the job of MPI_COMM_WORLD; "": it has none */
    char command[512]; /* command line */
    char service[64];  /* of the delegates; "": none */
    char arbiter[256]; /* folder of the arbiter that the job follows; "": none */
} mpiox_live_page;

_Static_assert(sizeof(mpiox_live_page) <= MPIOX_LIVE_HEAD_BYTES, "the head does not fit");
_Static_assert(sizeof(mpiox_live_file) == 256, "an entry has another size");

/* MPI_Init is done: make the page. Local; a second call does nothing. */
void mpiox_live_begin(int rank, int ranks);
/* MPI_Finalize: the process does no more accesses. Local. */
void mpiox_live_end(void);
/* The job has delegates, and follows an arbiter ("": none). Local. */
void mpiox_live_delegates(const char *service, const char *arbiter);
/* A file is open; never NULL. */
mpiox_live_counters *mpiox_live_open(const char *path);
/* The file is closed: no access adds to its counters any more. NULL-safe. */
void mpiox_live_close(mpiox_live_counters *counters);

/* An access is done. */
static inline void mpiox_live_count(mpiox_live_counters *counters, bool write, int64_t bytes)
{
    atomic_fetch_add_explicit(&counters->bytes[write], bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->calls[write], 1, memory_order_relaxed);
}

#endif
