/*
 * mpiox_subfiles_files.h - index and subfiles in the file system: finding, creating, completing, removing.
 *
 * If delegates write a file behind its close, its index has a staging name (mpiox_storage_staging.h), and its subfiles
 * have their final places. Local, blocking; functions return 0 or an errno, unless stated otherwise. Private to
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
/* EBADMSG: the index is bad, for the reason *why; EILSEQ: the file is no index. Subfiles are in the folder that the
 * index names. If the folder named after the index has the first subfile, they are there: both may have been
 * renamed. */
int mpiox_subfiles_read(const char *path, mpiox_subfiles *out, const char **why);
/* For a file system that places each file by its name: may a new subfile, open as `fd`, stay at its place? Otherwise it
 * gets another name. `last`: there is no further name. */
typedef struct mpiox_subfiles_places {
    bool (*fits)(int fd, int32_t subfile, bool last, void *context);
    void *context; /* of fits() */
} mpiox_subfiles_places;

/* Make a file of `count` empty subfiles, which this process writes from now on. EEXIST: that name exists. EPERM: the
 * folder of the subfiles exists, in a sticky folder, and belongs neither to this user nor to root. ENAMETOOLONG: the
 * base name has more than MPIOX_SUBFILES_NAME_MOST bytes, or the path is too long. `name`: of the file, or a path to
 * it: the folder of the subfiles is named after it. `places`: NULL: anywhere. *guard: as of mpiox_subfiles_guard(). */
int mpiox_subfiles_create(const char *path, const char *name, int32_t count, int64_t unit,
                          const mpiox_subfiles_places *places, mpiox_subfiles *out, int *guard);
/* Path of a subfile. False: the path is too long. */
bool mpiox_subfiles_path(const mpiox_subfiles *subfiles, int32_t subfile, char *path, int64_t bytes);
/* Does the folder of the first subfile exist? Also returns its path. */
bool mpiox_subfiles_folder(const mpiox_subfiles *subfiles, char *path, int64_t bytes);
/* Do all subfiles exist, with their sizes if the file is complete? *bad: the first wrong one (ENOENT, or EBADMSG if its
 * size is wrong). */
int mpiox_subfiles_check(const mpiox_subfiles *subfiles, int32_t *bad);
/* Lock the file for this process as open (SHARED, READS, BEHIND), until the process closes the descriptor that is
 * returned; -1 with errno: there are no locks. Waits while a process sets the state `whole`, or removes the file. */
int mpiox_subfiles_guard(const mpiox_subfiles *subfiles, mpiox_storage_guarding how);
/* Does the file with this guard still have its subfiles? Otherwise it was removed, or merged into one file. */
bool mpiox_subfiles_is_current(const mpiox_subfiles *subfiles, int guard);
/* This process, which has a guard, writes the file from now on. *torn: an earlier program has not closed the file, and
 * no process has it open: then the index stays as it is. */
int mpiox_subfiles_begin(mpiox_subfiles *subfiles, int guard, bool *torn);
/* This process has emptied the file. Writers that have not closed it count no more, unless they have it open. *torn: as
 * above, and false then. */
void mpiox_subfiles_emptied(mpiox_subfiles *subfiles, int guard, bool *torn);
/* This process writes no more, and its bytes are in the subfiles; not for a torn file. The last writer sets the state
 * `whole`, with the size of subfiles->size. `stable`: the bytes were synced, and this change is synced, too. */
int mpiox_subfiles_end(mpiox_subfiles *subfiles, int guard, bool stable);
/* Does this path lead to a good index of the file with this number? */
bool mpiox_subfiles_is_of(const char *path, uint64_t id);
/* Is the index a copy of another file's index, which has these subfiles and still exists? */
bool mpiox_subfiles_is_copy(const mpiox_subfiles *subfiles);
/* Remove the first `made` subfiles, and their folder if it is empty then. 0 or an errno. */
int mpiox_subfiles_remove_parts(const mpiox_subfiles *subfiles, int32_t made);
/* Remove the subfiles, their folder if it is empty then, and the index; of a copy, the index alone. */
int mpiox_subfiles_remove(const mpiox_subfiles *subfiles);

/* ---- by its name (mpiox_subfiles_past.c) ----------------------------------------------------------------- */

/* Has a program emptied the index past MPI, as PnetCDF does when it creates a file again? Then remove the index, and
 * the subfiles, unless a process writes them. Returns whether the index was removed. */
bool mpiox_subfiles_drop_emptied(const char *path);
/* As delete() of mpiox_storage_container: 0, EILSEQ (remove the name alone), EBUSY (it is open), or an errno. */
int mpiox_subfiles_delete(const char *path);

/* ---- of an index with a hidden name ------------------------------------------------------------------------------ */

/* As the functions of these names of mpiox_storage_container. */
int mpiox_subfiles_first(const char *path, char first[PATH_MAX], struct stat *status);
int mpiox_subfiles_sync(const char *path);
/* Flush the subfiles to stable storage, set their shares of the size, and give the file's own name to an index with the
 * state `whole`. Then remove the index at `hidden`. */
int mpiox_subfiles_publish(const char *hidden, const char *name);
/* Give the file its own name while processes still write it. */
int mpiox_subfiles_reveal(mpiox_subfiles *subfiles, const char *name);

#endif
