/*
 * mpiox_server_hidden.h - files with a hidden name until they are written (MPIOX_FILE_HIDDEN).
 *
 * Problem.   A file gets its own name long after it was closed, when all processes that have bytes of it have written
 *            them (mpiox_storage_staging.h). If the user has renamed its folder meanwhile, it gets the name there.
 * Algorithm. The delegate keeps a descriptor of the folder, and finds the file by it. The record's path follows the
 *            folder, ten times a second and whenever a client requests a file: other processes find the file by that
 *            path, also one that writes it after the delegate was killed.
 * Limits.    If a client of a network file system does not see that another host has renamed the folder, the record has
 *            the old path. One file gets its name nevertheless, a container when the client sees it.
 *
 * Private to csrc/iod/server; with the lock unless the comment names another condition.
 */
#ifndef MPIOX_SERVER_HIDDEN_H
#define MPIOX_SERVER_HIDDEN_H

#include <limits.h>

#include "mpiox_server_state.h"

/* A MPIOX_OP_OPEN has just opened the file: the delegate will have bytes or copies of it. False: its part could not
 * begin, or the file was opened in another folder. Unlocks meanwhile. */
bool mpiox_server_begin_hidden(mpiox_server *server, const mpiox_slot *slot);
/* It is closed: others may have the name. */
void mpiox_server_drop_hidden(mpiox_server_file *file);
/* Paths of all records as they are now. */
void mpiox_server_follow_folders(mpiox_server *server);
/* This delegate has no bytes of the file any more; the last delegate gives it its name. 0 or an errno: EAGAIN if
 * another one is doing so. Without the lock. */
int mpiox_server_end_hidden(const mpiox_server *server, int32_t file, bool *renamed);
/* Then the record is as others are to find it. */
void mpiox_server_settle_name(mpiox_server *server, int32_t file, bool renamed);
/* Is that a reason which only people can mend, since something else has the name? */
bool mpiox_server_is_clash(const mpiox_server *server, int32_t file, int code);
/* A path to the file's name of now, for this process; may lie in `room`. Also without the lock. */
const char *mpiox_server_place(const mpiox_server *server, int32_t file, char room[PATH_MAX]);
/* For copies: are originals missing in the file at this path? *unnamed: none is, but the file has no name yet. gone:
 * the delegate that has to name it is lost; then this one does. Without the lock. */
bool mpiox_server_needs_copies(const mpiox_file_record *record, const char *path, bool gone, bool *unnamed);

#endif
