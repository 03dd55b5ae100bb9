/*
 * mpiox_segment.h - anonymous memory shared by the processes of one node.
 *
 * Problem.   Processes of a node must find the same memory, and no other. A descriptor's number means another file in
 *            another process-id namespace, a name means another file under other mounts. If the kernel has no memory
 *            for a page at its first touch, SIGBUS ends the process.
 * Algorithm. The creator makes a memfd; the other processes open it through /proc/<pid>/fd/<fd>. A memfd has no name in
 *            any file system: nothing remains when processes are killed, and the size of /dev/shm is no limit. If the
 *            other processes do not find the memfd by that path, the creator makes a file in /dev/shm or TMPDIR
 *            instead, which mpiox_segment_seal() unlinks. Before a process maps the file that it has opened, it checks
 *            that device, inode, size and a random mark behind the shared bytes are the creator's.
 *            The memory may also be a file on a disk of the node, in a folder that the user names. Such a file has a
 *            name only while it is created, or if its bytes have to outlive its processes. The other processes find it
 *            through the creator's descriptor, too.
 * Guarantee. The creator reserves the pages of a file. Pages of a memfd appear at the first touch, in the memory of
 *            the process that touches them; the creator reserves them, too, if the kernel refuses uncommitted pages.
 */
#ifndef MPIOX_SEGMENT_H
#define MPIOX_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

typedef struct mpiox_segment {
    void *base;    /* where this process maps it; NULL: it is not mapped */
    int64_t bytes; /* length of the mapping */
    int fd;        /* the creator's descriptor until mpiox_segment_seal(), or of a file that is attached; else -1 */
    bool on_disk;  /* a file of a folder, or an attached file, not a memfd: mpiox_segment_guard.h */
} mpiox_segment;

enum {
    MPIOX_SEGMENT_NAME = 256,
    MPIOX_SEGMENT_HUGE = 2 * 1024 * 1024 /* bytes of a huge page, if pages have 4 KiB; segments begin at multiples */
};

typedef enum mpiox_segment_kind { MPIOX_SEGMENT_MEMFD, MPIOX_SEGMENT_FILE, MPIOX_SEGMENT_KINDS } mpiox_segment_kind;

/* The facts with which the others attach, and check that it is the creator's memory. Plain data: it is sent over MPI.
 */
typedef struct mpiox_segment_address {
    char name[MPIOX_SEGMENT_NAME]; /* by which others open it */
    uint64_t device, inode;        /* of the memory's file */
    uint64_t mark[2];              /* random */
    int64_t bytes;                 /* length of the memory */
} mpiox_segment_address;

/* Creator: zero-filled memory of `bytes` bytes. 0, MPIOX_E_FULL (no room, or more than ulimit -f) or MPIOX_E_NOMEM. */
int mpiox_segment_create(mpiox_segment_kind kind, int64_t bytes, mpiox_segment_address *address, mpiox_segment *out,
                         mpiox_error *error);
/* Creator: the same in a file of `folder`, all of whose blocks are reserved. name NULL: the file has no name when this
 * function returns. Otherwise the file keeps its name, which the function writes into `name`; its bytes outlive all
 * processes, until somebody removes the file. 0, MPIOX_E_FULL, or MPIOX_E_IO. */
int mpiox_segment_create_in(const char *folder, int64_t bytes, char name[MPIOX_SEGMENT_NAME],
                            mpiox_segment_address *address, mpiox_segment *out, mpiox_error *error);
/* 0, MPIOX_E_UNSUPPORTED (the address does not lead to the creator's memory from here) or MPIOX_E_NOMEM. */
int mpiox_segment_attach(const mpiox_segment_address *address, mpiox_segment *out, mpiox_error *error);
/* Map the pages into the calling process now. Otherwise its first write to each page costs a fault, which takes longer
 * than filling the page. start: a multiple of 4096. False: not possible, or no memory. Blocking, any thread. */
bool mpiox_segment_touch(void *start, int64_t bytes);
/* Make the kernel back each multiple of MPIOX_SEGMENT_HUGE in this range with one page, for all processes. Otherwise
 * the first use of 4 KiB costs each process a microsecond, as much as filling them. The contents stay. False: not all
 * huge pages could be made, as before Linux 6.1. No setting of the kernel is needed. Local, any thread; 60 microseconds
 * a huge page. */
bool mpiox_segment_make_huge(void *start, int64_t bytes);
/* Creator, after everyone has attached: drops the descriptor and any file name. */
void mpiox_segment_seal(mpiox_segment *segment, const mpiox_segment_address *address);
/* The same, but the descriptor stays open: as long as the creator has it open, other processes can read the memory
 * (/proc/PID/fd). */
void mpiox_segment_hide(const mpiox_segment *segment, mpiox_segment_address *address);
/* Unmap, and close the descriptor of an attached segment. NULL-safe. */
void mpiox_segment_free(mpiox_segment *segment);
/* For a file: has the kernel failed to write pages of it to its disk since the file was opened? The kernel drops such
 * pages when it needs memory, and reads then return other bytes; it does not report which pages. True once for each
 * descriptor; fd -1: false. Does not wait. */
bool mpiox_segment_has_failed(int fd);

/* Is vm.overcommit_memory 2? Then a page that exceeds the limit when it is touched is a SIGBUS, also of a memfd.
 * Otherwise a memfd has no page only if the machine or the control group is out of memory. */
bool mpiox_segment_strict_commitment(void);
/* May a file have this size? The kernel ends a process that exceeds ulimit -f by a signal, even with a memfd. */
bool mpiox_segment_allows(int64_t bytes);

#endif
