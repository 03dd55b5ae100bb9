/*
 * mpiox_storage_staging.h - the name of a file until all of its bytes are written.
 *
 * Problem.   While several processes write a file behind the program, no reader may take it for complete, whichever
 *            process is killed, and no process knows of the others.
 * Algorithm. Until the file DIR/NAME is complete, its name is DIR/.NAME.staging. Beside it is DIR/.NAME.staging.parts,
 *            with a byte for each process: '-' while the process has bytes of the file, '+' afterwards; the name of the
 *            job follows. A process that has written its '+' reads all of them; if it finds no '-', it gives the file
 *            its name. Two processes may do this concurrently. If the file is a container, its index has the staging
 *            name; its first part identifies it. A container gets its name by an index of its own, whose state is
 *            `whole`. A process that opens it for writing locks it until the close, which prevents the renaming
 *            (mpiox_storage_container.h). Each process that may have bytes of the file has a lock on the file of parts.
 *            Without such a lock the file is a leftover of a killed job: a process that creates the file anew renames
 *            the leftover to NAME.left-1 (a staging name of that, too), under which `recover` still finds and completes
 *            it.
 * Guarantee. Both files are created anew, never opened through a link, and no file of the final name is replaced. A
 *            killed process leaves its '-'.
 * Needs.     A file system on which a byte that one host has written is read by the others (as delegates do anyway).
 */
#ifndef MPIOX_STORAGE_STAGING_H
#define MPIOX_STORAGE_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does a file or link of this name exist, also a dangling link? */
bool mpiox_storage_staging_is_there(const char *path);
/* The staging name of a path, or the path of a staging name. False: the path is too long, or no staging name. */
bool mpiox_storage_staging_name(const char *path, char *staging, size_t bytes);
bool mpiox_storage_staging_final(const char *staging, char *path, size_t bytes);
/* Create the file (unless `made`: it was just created) for so many processes, all '+'. 0 or an errno; then no file was
 * created, or the old one is unchanged. */
int mpiox_storage_staging_create(const char *staging, bool made, int parts);
/* Record the job that has created the file; is this job that one? 0 or an errno. */
int mpiox_storage_staging_sign(const char *staging, const char *job);
bool mpiox_storage_staging_is_of(const char *staging, const char *job);
/* This process will have bytes of the file. 0 or an errno. */
int mpiox_storage_staging_begin(const char *staging, int part);
/* The bytes of a dead process are in the file, which is still open: its openers give it its name. 0 or an errno. */
int mpiox_storage_staging_rescued(const char *staging, int part);
/* This process has no bytes of the file any more. *renamed: the file has its name now. device and inode: of the file,
 * or of its first part. 0, also if the file has its name already, or an errno: EEXIST if another file has that name,
 * ENODATA if the file of parts is gone, EAGAIN if an opener of the container gives the container its name. */
int mpiox_storage_staging_end(const char *staging, int part, uint64_t device, uint64_t inode, bool *renamed);
/* For a container: its writer has closed it. If no process has bytes of the file, the file gets its name. 0 or an
 * errno. */
int mpiox_storage_staging_left(const char *staging);
/* Does this name still lead to the file, or to the index of the container with this first part? */
bool mpiox_storage_staging_has_name(const char *staging, uint64_t device, uint64_t inode);
/* Does the file still have this name, and has this process, as far as is known, bytes of it? */
bool mpiox_storage_staging_pending(const char *staging, int part, uint64_t device, uint64_t inode);
/* Have all parts ended, but the file has not got its name? Then the process that ended the last part is about to rename
 * the file, or was killed. */
bool mpiox_storage_staging_is_unnamed(const char *staging, uint64_t device, uint64_t inode);
/* From now on this process may have bytes of the file, until it closes the descriptor that is returned. -1: the file of
 * parts cannot be locked. */
int mpiox_storage_staging_guard(const char *staging);
/* Does a delegate on any host still write this closed file? Local. */
bool mpiox_storage_staging_is_closed(const char *staging);
/* Rename a leftover to the staging name `aside`. 0 or an errno: EAGAIN if a process has bytes of it, ENODATA if this is
 * unknown. */
int mpiox_storage_staging_set_aside(const char *staging, char *aside, size_t bytes);
/* The present staging name of a file that had this one; the same name if no other is found. */
void mpiox_storage_staging_find(const char *staging, uint64_t device, uint64_t inode, char *found, size_t bytes);
/* A file may not get its name although this process has written its bytes. Is this errno a reason that only the user
 * can remove (EEXIST, ENODATA)? The second function returns the rest of a message that begins with the name. */
bool mpiox_storage_staging_is_clash(int code);
void mpiox_storage_staging_clash(const char *staging, int code, char *text, size_t bytes);
/* The own name of a file under any present name, for messages. It may be written into `room`. */
const char *mpiox_storage_staging_shown(const char *path, char *room, size_t bytes);
/* Remove the file of parts of a file that is not needed any more, or needs no staging name. */
void mpiox_storage_staging_forget(const char *staging);
/* Remove an empty file of that name without a file of parts: no process has bytes of it. */
void mpiox_storage_staging_remove_empty(const char *staging);
/* Remove the file and its file of parts, unless another file has its staging name by now. */
void mpiox_storage_staging_remove(const char *staging, uint64_t device, uint64_t inode);

#endif
