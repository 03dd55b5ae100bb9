/*
 * mpiox_server_folder.h - the folders of files with a staging name, which may be renamed meanwhile.
 *
 * Problem.   A file gets its own name long after it was closed. Whoever has renamed its folder by then finds it there.
 * Algorithm. The delegate keeps a descriptor of the folder, and goes by that. The record's path follows it, ten times a
 *            second and whenever somebody asks for a file: it is what others know the file by, also who writes it when
 *            the delegate was killed.
 * Limits.    A client of a network file system that does not notice what another host has renamed shows the old path;
 *            one file gets its name nevertheless, a container when it notices.
 *
 * Private to csrc/iod/server; with the lock unless said otherwise.
 */
#ifndef MPIOX_SERVER_FOLDER_H
#define MPIOX_SERVER_FOLDER_H

#include <limits.h>

#include "mpiox_server_state.h"

/* Of a file that was just opened by its staging name. 0 or an errno. */
int mpiox_server_keep_folder(mpiox_server *server, int32_t file, const char *staging);
void mpiox_server_drop_folder(mpiox_server_file *file);
/* Paths of all records as they are now. */
void mpiox_server_follow_folders(mpiox_server *server);
/* A path to the staging name, for this process; may lie in `room`. Also without the lock. */
const char *mpiox_server_staging_path(const mpiox_server *server, int32_t file, char room[PATH_MAX]);

#endif
