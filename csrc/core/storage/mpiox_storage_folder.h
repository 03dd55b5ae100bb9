/*
 * mpiox_storage_folder.h - the folder of a file, which may be renamed while the file is open.
 *
 * A descriptor of the folder leads to the folder under any name.
 */
#ifndef MPIOX_STORAGE_FOLDER_H
#define MPIOX_STORAGE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of a path up to and including its last slash. */
size_t mpiox_storage_folder_length(const char *path);
/* Open the folder of that file, which may be renamed from now on: a descriptor, or -1 with errno. */
int mpiox_storage_folder_open(const char *file);
/* A path to that name in the folder, wherever the folder is now: for this process, while the descriptor is open. */
bool mpiox_storage_folder_in(int folder, const char *file, char *path, size_t bytes);
/* The file's present path, if the folder was renamed. False: the path is the same, or not known. */
bool mpiox_storage_folder_now(int folder, const char *file, char *path, size_t bytes);

#endif
