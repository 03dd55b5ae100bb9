/* mpiox_server_hidden.c - see mpiox_server_hidden.h. */
#include "mpiox_server_hidden.h"

#include <string.h>
#include <unistd.h>

#include "mpiox_storage_container.h"
#include "mpiox_storage_folder.h"
#include "mpiox_storage_staging.h"

const char *mpiox_server_place(const mpiox_server *server, int32_t file, char room[PATH_MAX])
{
    const char *path = mpiox_server_record(server, file)->path;
    return server->files[file].folder > 0 && mpiox_storage_folder_in(server->files[file].folder, path, room, PATH_MAX)
               ? room
               : path;
}

/* The container is incomplete from now on; the state that its close writes shows when it is complete. */
static bool begin(mpiox_server *server, int32_t number)
{
    mpiox_storage *storage = server->files[number].storage;
    mpiox_file_record *record = mpiox_server_record(server, number);
    char room[PATH_MAX];
    const char *path = mpiox_server_place(server, number, room);
    pthread_mutex_unlock(&server->lock);
    const bool is_in_folder = mpiox_storage_staging_has_name(path, record->device, record->inode),
               begun = is_in_folder && mpiox_storage_staging_begin(path, server->options.delegate) == 0;
    if (begun)
        mpiox_storage_container.mark_written(storage);
    pthread_mutex_lock(&server->lock);
    if (begun)
        atomic_fetch_or(&record->flags, MPIOX_FILE_HIDDEN);
    return begun;
}

bool mpiox_server_begin_hidden(mpiox_server *server, const mpiox_slot *slot)
{
    mpiox_server_file *file = &server->files[slot->file];
    char room[PATH_MAX];
    if (file->folder <= 0)
        file->folder = mpiox_storage_folder_open(slot->text);
    if (file->folder <= 0 || ((slot->question.open.flags & MPIOX_FILE_HIDDEN) != 0 && !begin(server, slot->file)))
        return false;
    if (file->guard <= 0)
        file->guard = mpiox_storage_staging_guard(mpiox_server_place(server, slot->file, room));
    return true;
}

void mpiox_server_drop_hidden(mpiox_server_file *file)
{
    if (file->guard > 0)
        close(file->guard);
    if (file->folder > 0)
        close(file->folder);
    file->guard = file->folder = 0;
}

void mpiox_server_follow_folders(mpiox_server *server)
{
    char path[MPIOX_CACHE_PATH_BYTES];
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        mpiox_file_record *record = mpiox_server_record(server, i);
        if (server->files[i].storage != NULL && server->files[i].folder > 0 &&
            mpiox_storage_folder_now(server->files[i].folder, record->path, path, sizeof path))
            memcpy(record->path, path, strlen(path) + 1);
    }
}

int mpiox_server_end_hidden(const mpiox_server *server, int32_t file, bool *renamed)
{
    const mpiox_file_record *record = mpiox_server_record(server, file);
    char room[PATH_MAX];
    return mpiox_storage_staging_end(mpiox_server_place(server, file, room), record->part, record->device,
                                     record->inode, renamed);
}

void mpiox_server_settle_name(mpiox_server *server, int32_t file, bool renamed)
{
    mpiox_file_record *record = mpiox_server_record(server, file);
    char path[MPIOX_CACHE_PATH_BYTES];
    mpiox_server_follow_folders(server);
    if (renamed && mpiox_storage_staging_final(record->path, path, sizeof path))
        memcpy(record->path, path, sizeof path);
    atomic_fetch_and(&record->flags, ~MPIOX_FILE_HIDDEN);
}

bool mpiox_server_is_clash(const mpiox_server *server, int32_t file, int code)
{
    return mpiox_storage_staging_is_clash(code) &&
           atomic_load(&mpiox_server_record(server, file)->flags) & MPIOX_FILE_HIDDEN;
}

bool mpiox_server_needs_copies(const mpiox_file_record *record, const char *path, bool gone, bool *unnamed)
{
    bool renamed;
    const bool needed = mpiox_storage_staging_pending(path, record->part, record->device, record->inode);
    *unnamed = !needed && mpiox_storage_staging_is_unnamed(path, record->device, record->inode);
    if (*unnamed && gone) /* it was killed before it gave the file its name */
        (void)mpiox_storage_staging_end(path, record->part, record->device, record->inode, &renamed);
    return needed;
}
