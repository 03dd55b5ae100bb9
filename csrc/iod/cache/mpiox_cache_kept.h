/*
 * mpiox_cache_kept.h - caches on a disk whose processes are all gone.
 *
 * Problem.   All processes of a job may be killed at once, and files that they had closed be half written.
 * Algorithm. The cache is a file that contains at any moment which bytes of which file are dirty: a survivor can
 *            continue with a delegate's memory (mpiox_cache.h). The recovering process is such a survivor.
 * Guarantee. A cache is accepted only if it is a plain file of one name that belongs to the caller, and that no other
 *            user may open. The cache is removed when all its bytes are written. A cache whose delegate lives stays as
 *            it is. Later foreign writes to a file are not overwritten (mpiox_cache_family.h). Unreadable pages do not
 *            end the recovering process: it reports their bytes as lost.
 * Limits.    Bytes that the kernel had not written to the disk when the node failed are lost.
 */
#ifndef MPIOX_CACHE_KEPT_H
#define MPIOX_CACHE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mpiox_cache_left { /* of a file bytes are left */
    const char *file;             /* its own name */
    const char *why;              /* the rest of a message, after that name */
    int sys_errno;                /* of the failure */
    bool changed;                 /* a foreign process has written it since */
    bool whole;                   /* all its bytes are written, but it has not got its name */
    bool waits; /* the same, since other caches may have bytes of it, which are recovered after this one */
} mpiox_cache_left;

typedef void (*mpiox_cache_reporter)(void *context, const mpiox_cache_left *left);

typedef struct mpiox_cache_recovering {
    bool all_are_gone;   /* see mpiox_cache_recover(); then files that wait for others are reported, too */
    bool force;          /* later foreign writes are overwritten, too */
    const char *folders; /* where other caches of the job are, beside those in the same folder; NULL: nowhere */
} mpiox_cache_recovering;

/* Write the remaining bytes of the cache of this name to their files. Returns their number, or MPIOX_E_UNSUPPORTED: its
 * delegate lives; MPIOX_E_STOPPED: the node was restarted since, so that it is unknown which pages had reached the
 * disk; MPIOX_E_IO, MPIOX_E_CORRUPT, MPIOX_E_NOMEM: it is another user's, or no cache, or there is no memory. Blocking;
 * any process. */
int64_t mpiox_cache_recover_kept(const char *path, const mpiox_cache_recovering *how, mpiox_cache_reporter report,
                                 void *context);
/* The same for every cache except `own` in a list of folders, in the form of mpiox_delegate_cache_dir. Caches that
 * cannot be used stay, and so do copies of bytes that other nodes may still write. report: the context is the name of
 * the cache. */
void mpiox_cache_recover_all(const char *folders, const char *own, mpiox_cache_reporter report);

#endif
