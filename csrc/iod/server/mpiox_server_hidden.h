/*
 * mpiox_server_hidden.h - files that have another name than their own until they are written (MPIOX_FILE_HIDDEN).
 *
 * Problem.   A file gets its own name long after it was closed, when all who have bytes of it have written them
 *            (mpiox_storage_staging.h). Whoever has renamed its folder by then finds it there.
 * Algorithm. The delegate keeps a descriptor of the folder, and goes by that. The record's path follows it, ten times a
 *            second and whenever somebody asks for a file: it is what others know the file by, also who writes it when
 *            the delegate was killed.
 * Limits.    A client of a network file system that does not notice what another host has renamed shows the old path;
 *            one file gets its name nevertheless, a container when it notices.
 *
 * Private to csrc/iod/server; with the lock unless said otherwise.
 */
#ifndef MPIOX_SERVER_HIDDEN_H
#define MPIOX_SERVER_HIDDEN_H

#include <limits.h>

#include "mpiox_server_state.h"

/* A MPIOX_OP_OPEN has just opened it: the delegate is going to have bytes of it, or copies of them. False: it could
 * not, or the folder is not the one in which the file was opened. The lock is let go meanwhile. */
bool mpiox_server_begin_hidden(mpiox_server *server, const mpiox_slot *slot);
/* It is closed: others may have the name. */
void mpiox_server_drop_hidden(mpiox_server_file *file);
/* Paths of all records as they are now. */
void mpiox_server_follow_folders(mpiox_server *server);
/* This delegate has no bytes of it any more; the last one gives it its name. 0 or an errno: EAGAIN where another one is
 * at it. Without the lock. */
int mpiox_server_end_hidden(const mpiox_server *server, int32_t file, bool *renamed);
/* Then the record is as others are to find it. */
void mpiox_server_settle_name(mpiox_server *server, int32_t file, bool renamed);
/* Is that a reason which only people can mend, since something else has the name? */
bool mpiox_server_is_clash(const mpiox_server *server, int32_t file, int code);
/* A path to the file's name of now, for this process; may lie in `room`. Also without the lock. */
const char *mpiox_server_place(const mpiox_server *server, int32_t file, char room[PATH_MAX]);
/* Of copies: are the originals not all in the file at this path? *unnamed: they are, but the file has no name yet.
 * gone: who has to give it is; then it gets it. Without the lock. */
bool mpiox_server_needs_copies(const mpiox_file_record *record, const char *path, bool gone, bool *unnamed);
/* It goes, unless another file has its name. */
void mpiox_server_remove_hidden(const mpiox_server *server, int32_t file);

#endif
