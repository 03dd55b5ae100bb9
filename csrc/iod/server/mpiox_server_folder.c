/* mpiox_server_folder.c - see mpiox_server_folder.h. */
#include "mpiox_server_folder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_storage_staging.h"

int mpiox_server_keep_folder(mpiox_server *server, int32_t file, const char *staging)
{
    if (server->files[file].folder <= 0)
        server->files[file].folder = mpiox_storage_staging_folder(staging);
    return server->files[file].folder > 0 ? 0 : errno;
}

void mpiox_server_drop_folder(mpiox_server_file *file)
{
    if (file->folder > 0)
        close(file->folder);
    file->folder = 0;
}

void mpiox_server_follow_folders(mpiox_server *server)
{
    char path[MPIOX_CACHE_PATH_BYTES];
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        mpiox_file_record *record = &server->cache.header->files[i];
        if (server->files[i].storage != NULL && server->files[i].folder > 0 &&
            mpiox_storage_staging_now(server->files[i].folder, record->path, path, sizeof path))
            memcpy(record->path, path, strlen(path) + 1);
    }
}

const char *mpiox_server_staging_path(const mpiox_server *server, int32_t file, char room[PATH_MAX])
{
    const char *path = server->cache.header->files[file].path;
    return server->files[file].folder > 0 && mpiox_storage_staging_in(server->files[file].folder, path, room, PATH_MAX)
               ? room
               : path;
}
