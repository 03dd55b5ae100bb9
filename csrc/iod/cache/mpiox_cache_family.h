/*
 * mpiox_cache_family.h - the caches that one job has left in the same folders, and the last writer of a file.
 *
 * Problem.   A cache that was left has bytes of an existing file. If a later job has written the file since, these
 *            bytes are older than the file's.
 * Algorithm. The record of a file has the file's state when its delegate last checked: the time of the file's last
 *            change (the greatest so far) and its size. It checks when it first uses the file, and at the end of each
 *            pass over its dirty pages (of each run, where a rate slows it). The delegate notes the time of day before
 *            each write, and a delegate that is killed before the next check leaves this note. Several delegates write
 *            one file, so the greatest of all caches of the job counts. A later change is foreign, with two exceptions.
 *            The first is a change at most MPIOX_CACHE_SLACK_NS after the begin of a write that a delegate has noted.
 *            The second is a change at most as long after the moment when a delegate was last known to live, if other
 *            processes of the job may have written (ranks past the delegates; delegates whose caches are not here). A
 *            recovering process notes its own writes in all these caches, as a delegate does. If delegates of other
 *            nodes have caches elsewhere, it sets the file's time to the moment when its own delegate was last known to
 *            live: a recovery of those caches then finds a change of the job. A file with a hidden name belongs to the
 *            job alone, and is not checked.
 * Guarantee. A later foreign write is never overwritten. The only possible error is to refuse a file without need, if
 *            the caches of surviving nodes are gone.
 * Limits.    A change within the slack, or within one tick of the file system's clock after a check, unless it changed
 *            the size, counts as the job's. Clocks of file system and nodes differ by less than the slack.
 */
#ifndef MPIOX_CACHE_FAMILY_H
#define MPIOX_CACHE_FAMILY_H

#include <sys/stat.h>

#include "mpiox_cache.h"

#define MPIOX_CACHE_SLACK_NS INT64_C(2000000000)

typedef struct mpiox_cache_member { /* a cache in a file that is mapped */
    mpiox_cache cache;              /* pointers into the mapping */
    void *base;                     /* start of the mapping; owned */
    size_t bytes;                   /* mapped */
    int fd;                         /* of the file; owned */
} mpiox_cache_member;

typedef struct mpiox_cache_family {
    mpiox_cache_member *members; /* the first is the cache to recover */
    int32_t count;               /* members */
    bool complete;               /* all caches of the job are here, or were at the first recovery of one */
} mpiox_cache_family;

/* Map a cache: a plain file of one name that belongs to the caller, and that no other user may open. 0, MPIOX_E_IO,
 * MPIOX_E_CORRUPT. If its pages cannot be read, the process does not end. */
int mpiox_cache_member_open(const char *path, mpiox_cache_member *out);
void mpiox_cache_member_close(mpiox_cache_member *member);

/* Of the cache at `path`: those in its folder, and in the folders of a list (as mpiox_delegate_cache_dir has them;
 * NULL: none). 0, or why the cache itself cannot be used: as above, or MPIOX_E_NOMEM. */
int mpiox_cache_family_open(const char *path, const char *folders, mpiox_cache_family *out);
void mpiox_cache_family_close(mpiox_cache_family *family);

/* Has a foreign process written the file of this record, which has this status? `status` was taken before this call, so
 * that a concurrent recovery is known. */
bool mpiox_cache_family_is_changed(const mpiox_cache_family *family, const mpiox_file_record *record,
                                   const struct stat *status);
/* This process writes it; and has written it: fd is open for writing, and found_ns is the time of its last change
 * before. */
void mpiox_cache_family_begin_write(const mpiox_cache_family *family, const mpiox_file_record *record);
void mpiox_cache_family_end_write(const mpiox_cache_family *family, const mpiox_file_record *record, int fd,
                                  int64_t found_ns);

#endif
