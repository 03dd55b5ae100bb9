/*
 * mpiox_storage_staging.h - the name that a file has until all of it is there.
 *
 * Problem.   While several processes write a file behind the program, no reader may take it for complete, whatever is
 *            killed, and none of these processes knows of the others.
 * Algorithm. Until it is complete the file DIR/NAME is called DIR/.NAME.staging. Beside it lies
 *            DIR/.NAME.staging.parts, a byte for each process: '-' while the process has bytes of the file, '+'
 *            afterwards. A process that has written its '+' reads all of them; if it finds no '-', it gives the file
 *            its name. Two processes may do this concurrently. Of a container it is the index that has the staging
 *            name; the file is known by its first part.
 *            It gets its name by an index of its own, whose state is `whole`; a process that opens it for writing locks
 *            it until the close, which prevents the renaming (mpiox_storage_container.h).
 *            Each process that may have bytes of the file has a lock on the file of parts. Without such a lock the file
 *            is a leftover of a killed job: a process that creates the file anew renames the leftover to NAME.left-1 (a
 *            staging name of that, too), under which `recover` still finds and completes it.
 * Guarantee. Both files are created anew, never opened through a link, and no file of the final name is replaced. A
 *            killed process leaves its '-'.
 * Needs.     A file system on which a byte that one host has written is read by the others (as delegates do anyway).
 */
#ifndef MPIOX_STORAGE_STAGING_H
#define MPIOX_STORAGE_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does anything have this name, a dangling link included? */
bool mpiox_storage_staging_is_there(const char *path);
/* The staging name of a path, or the path of a staging name. False: it is too long, or no staging name. */
bool mpiox_storage_staging_name(const char *path, char *staging, size_t bytes);
bool mpiox_storage_staging_final(const char *staging, char *path, size_t bytes);
/* Make the file (unless `made`: it was just made) for so many processes, all '+'. 0 or an errno; then nothing is there,
 * or what was there before. */
int mpiox_storage_staging_create(const char *staging, bool made, int parts);
/* This process will have bytes of the file. 0 or an errno. */
int mpiox_storage_staging_begin(const char *staging, int part);
/* It has none any more. *renamed: the file has its name now. device and inode: of the file, or of its first part. 0,
 * also where it has its name already, or an errno: EEXIST where something else has that name, ENODATA where what
 * lies beside it is gone, EAGAIN where who has the container open gives it its name. */
int mpiox_storage_staging_end(const char *staging, int part, uint64_t device, uint64_t inode, bool *renamed);
/* Of a container: who had it open for writing has closed it. If no process has bytes of the file, it gets its name. 0
 * or an errno. */
int mpiox_storage_staging_left(const char *staging);
/* Is the file, or the index of the one with this first part, still there by this name? */
bool mpiox_storage_staging_has_name(const char *staging, uint64_t device, uint64_t inode);
/* Is the file still there by this name, and has this process bytes of it, as far as can be told? */
bool mpiox_storage_staging_pending(const char *staging, int part, uint64_t device, uint64_t inode);
/* All parts have ended, and the file has not got its name yet: who ended the last one is giving it, or was killed. */
bool mpiox_storage_staging_is_unnamed(const char *staging, uint64_t device, uint64_t inode);
/* This process may have bytes of it, until the descriptor that is returned is closed. -1: that cannot be said. */
int mpiox_storage_staging_guard(const char *staging);
/* A leftover gets the staging name `aside`. 0 or an errno: EAGAIN where somebody has bytes of it, ENODATA
 * where nothing says so. */
int mpiox_storage_staging_set_aside(const char *staging, char *aside, size_t bytes);
/* The staging name that a file has by now, which had this one; its own where it is not found by another. */
void mpiox_storage_staging_find(const char *staging, uint64_t device, uint64_t inode, char *found, size_t bytes);
/* A file from which this process has nothing left does not get its name for one of these reasons, which only people can
 * mend (EEXIST, ENODATA); and what is to be said then, after its name. */
bool mpiox_storage_staging_is_clash(int code);
void mpiox_storage_staging_clash(const char *staging, int code, char *text, size_t bytes);
/* The name by which people know a file: its own, whatever it is called now. May lie in `room`. */
const char *mpiox_storage_staging_shown(const char *path, char *room, size_t bytes);
/* The file is not wanted any more, or has no need of the name: take away what lies beside it. */
void mpiox_storage_staging_forget(const char *staging);
/* Take away an empty file of that name beside which nothing lies: nobody has bytes of it. */
void mpiox_storage_staging_remove_empty(const char *staging);
/* Take away the file, and that, unless another file has its staging name by now. */
void mpiox_storage_staging_remove(const char *staging, uint64_t device, uint64_t inode);

#endif
