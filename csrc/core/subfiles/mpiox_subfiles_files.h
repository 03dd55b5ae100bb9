/*
 * mpiox_subfiles_files.h - index and subfiles in the file system: finding, creating, completing, removing.
 *
 * A file that delegates write behind its close has its index under a staging name (mpiox_storage_staging.h), and its
 * subfiles where they stay. Local, blocking; functions return 0 or an errno, unless stated otherwise. Private to
 * csrc/core/storage and to the openers.
 */
#ifndef MPIOX_SUBFILES_FILES_H
#define MPIOX_SUBFILES_FILES_H

#include "mpiox_storage_container.h"
#include "mpiox_storage_lock.h"
#include "mpiox_subfiles_index.h"

/* As is() and is_open() of mpiox_storage_container. */
bool mpiox_subfiles_is_index(const char *path);
bool mpiox_subfiles_is_open_index(const char *path, int fd);
/* EBADMSG: it is a bad index, for the reason *why; EILSEQ: no index at all. Subfiles are in the folder that the index
 * names, or in the one called after it, if that has the first one: both may have been renamed. */
int mpiox_subfiles_read(const char *path, mpiox_subfiles *out, const char **why);
/* Where a file system places each file by its name: may a new subfile, open as `fd`, stay where it is? Else it gets
 * another name. `last`: there is none. */
typedef struct mpiox_subfiles_places {
    bool (*fits)(int fd, int32_t subfile, bool last, void *context);
    void *context;
} mpiox_subfiles_places;

/* Make a file of `count` empty subfiles, which this process writes from now on. EEXIST: something has that name.
 * EPERM: the folder of the subfiles is there, in a sticky folder, and is neither this user's nor root's.
 * ENAMETOOLONG: its base name has more than MPIOX_SUBFILES_NAME_MOST bytes, or there is no room behind its path.
 * `name`: of the file, or a path to it: after it the folder of the subfiles is called. `places`: NULL: anywhere.
 * *guard: as of mpiox_subfiles_guard(). */
int mpiox_subfiles_create(const char *path, const char *name, int32_t count, int64_t unit,
                          const mpiox_subfiles_places *places, mpiox_subfiles *out, int *guard);
/* Path of a subfile. False: too long. */
bool mpiox_subfiles_path(const mpiox_subfiles *subfiles, int32_t subfile, char *path, int64_t bytes);
/* Is the folder of the first subfile there? Its path. */
bool mpiox_subfiles_folder(const mpiox_subfiles *subfiles, char *path, int64_t bytes);
/* Are all subfiles there, and of a whole file with their sizes? *bad: the one that is not (ENOENT, or EBADMSG where its
 * size is wrong). */
int mpiox_subfiles_check(const mpiox_subfiles *subfiles, int32_t *bad);
/* Lock the file for this process as open (SHARED, READS, BEHIND), until the descriptor that is returned is closed; -1
 * with errno: there are no locks. Waits while a process sets the state `whole`, or removes the file. */
int mpiox_subfiles_guard(const mpiox_subfiles *subfiles, mpiox_storage_guarding how);
/* Has the file whose guard that is still its subfiles? Else it was removed, or made one file, before. */
bool mpiox_subfiles_is_current(const mpiox_subfiles *subfiles, int guard);
/* This process, which has a guard, writes the file from now on. *torn: an earlier program has not closed it, and no
 * process has it open: then the index stays as it is. */
int mpiox_subfiles_begin(mpiox_subfiles *subfiles, int guard, bool *torn);
/* This process has emptied it: what others have not closed counts no more, unless they have it open. *torn: as above,
 * and false then. */
void mpiox_subfiles_emptied(mpiox_subfiles *subfiles, int guard, bool *torn);
/* It writes no more, and its bytes are in the subfiles; not for a torn file. The last writer sets the state `whole`,
 * with the size of subfiles->size. `stable`: the bytes were synced, and so is this change. */
int mpiox_subfiles_end(mpiox_subfiles *subfiles, int guard, bool stable);
/* Is there a good index of the file with this number? */
bool mpiox_subfiles_is_of(const char *path, uint64_t id);
/* Is it a copy of the index of another file, which has these subfiles and is still there? */
bool mpiox_subfiles_is_copy(const mpiox_subfiles *subfiles);
/* Remove the subfiles up to `made` of them, and their folder if nothing else is in it. 0 or an errno. */
int mpiox_subfiles_remove_parts(const mpiox_subfiles *subfiles, int32_t made);
/* Remove the subfiles, their folder if nothing else is in it, and the index; of a copy, the index. */
int mpiox_subfiles_remove(const mpiox_subfiles *subfiles);

/* ---- by its name (mpiox_subfiles_past.c) ----------------------------------------------------------------- */

/* Has somebody emptied the index past MPI, as PnetCDF does when it makes a file again? Then it goes, and so do its
 * subfiles, unless a process writes them. Has it gone? */
bool mpiox_subfiles_drop_emptied(const char *path);
/* As delete() of mpiox_storage_container: 0, EILSEQ (the name alone), EBUSY (it is open), or an errno. */
int mpiox_subfiles_delete(const char *path);

/* ---- of an index with a hidden name ------------------------------------------------------------------------------ */

/* As the functions of these names of mpiox_storage_container. */
int mpiox_subfiles_first(const char *path, char first[PATH_MAX], struct stat *status);
int mpiox_subfiles_sync(const char *path);
/* Bring the subfiles to stable storage, give them their shares of the size, and give an index with the state `whole`
 * the file's own name. Then remove the index at `hidden`. */
int mpiox_subfiles_publish(const char *hidden, const char *name);
/* It gets its own name as it is, being written. */
int mpiox_subfiles_reveal(mpiox_subfiles *subfiles, const char *name);

#endif
