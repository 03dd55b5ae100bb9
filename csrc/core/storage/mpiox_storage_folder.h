/*
 * mpiox_storage_folder.h - the folder of a file, which may be renamed while the file is open.
 *
 * A descriptor of the folder leads to it by any name.
 */
#ifndef MPIOX_STORAGE_FOLDER_H
#define MPIOX_STORAGE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a path up to its last slash, and with it. */
size_t mpiox_storage_folder_length(const char *path);
/* The folder of that file, which may be renamed from now on: a descriptor, or -1 with errno. */
int mpiox_storage_folder_open(const char *file);
/* A path to that name in the folder, wherever that is: for this process, while the descriptor is open. */
bool mpiox_storage_folder_in(int folder, const char *file, char *path, size_t bytes);
/* The file's path there, if that is another one by now. False: it is the same, or not known. */
bool mpiox_storage_folder_now(int folder, const char *file, char *path, size_t bytes);

#endif
