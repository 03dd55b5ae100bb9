/*
 * mpiox_storage_lock.h - advisory locks on byte ranges of an open file, for MPI's atomic mode and data sieving.
 *
 * Open file description locks where the kernel has them (Linux 3.15), else the process's POSIX locks; both conflict
 * with the POSIX locks that ROMIO takes. Two threads with one handle share its locks: callers that need them to exclude
 * each other add a mutex. Blocking.
 */
#ifndef MPIOX_STORAGE_LOCK_H
#define MPIOX_STORAGE_LOCK_H

#include "mpiox_storage.h"

/* Wait for a lock on the bytes [offset, offset + length), length 0 meaning all the rest: exclusive, or shared with
 * other shared ones. MPIOX_OK also for a handle without a descriptor; MPIOX_E_IO if the file system has no locks
 * (ENOLCK, EOPNOTSUPP...). An exclusive lock needs a handle open for writing, a shared one a handle open for reading;
 * if the mode allows only the other kind, the function takes that kind. */
int mpiox_storage_lock(mpiox_storage *storage, bool exclusive, int64_t offset, int64_t length, mpiox_error *error);
/* Release the lock on that range. Never fails. */
void mpiox_storage_unlock(mpiox_storage *storage, int64_t offset, int64_t length);

/* Locks of a container's openers, on bytes behind all data. A writer locks SHARED, a reader READS; both wait for a
 * process that removes the file. ALONE unlocks a shared lock, and locks it exclusively if no other process has it.
 * BEHIND, on a byte of its own, does not prevent that: a delegate has the file. REMOVE locks the bytes of SHARED and
 * READS, if no process has locked them. CHANGE waits until this process alone may replace the index, until CHANGED;
 * NAME does the same and does not wait. LOOK tests whether another descriptor has SHARED or BEHIND, OTHERS whether it
 * has SHARED. A delegate that has BEHIND also locks CLOSED, until REOPENED, while it writes the closed file; IS_CLOSED
 * tests whether a delegate has CLOSED. The close of the descriptor unlocks all. 0, EAGAIN (another process has the
 * lock), or the errno of a file system without locks.
 */
typedef enum mpiox_storage_guarding {
    MPIOX_GUARD_SHARED,
    MPIOX_GUARD_READS,
    MPIOX_GUARD_ALONE,
    MPIOX_GUARD_REMOVE,
    MPIOX_GUARD_BEHIND,
    MPIOX_GUARD_CLOSED,
    MPIOX_GUARD_REOPENED,
    MPIOX_GUARD_NAME,
    MPIOX_GUARD_CHANGE,
    MPIOX_GUARD_CHANGED,
    MPIOX_GUARD_LOOK,
    MPIOX_GUARD_OTHERS,
    MPIOX_GUARD_IS_CLOSED
} mpiox_storage_guarding;
int mpiox_storage_guard(int fd, mpiox_storage_guarding how);

#endif
