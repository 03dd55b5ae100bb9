/* mpiox_cache_hidden.c - see mpiox_cache_hidden.h. */
#include "mpiox_cache_hidden.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_storage_container.h"
#include "mpiox_storage_staging.h"

bool mpiox_cache_own_name(const char *path, char *own, size_t bytes)
{
    return mpiox_storage_staging_final(path, own, bytes);
}

const char *mpiox_cache_shown_name(const char *path, char *room, size_t bytes)
{
    return mpiox_storage_staging_shown(path, room, bytes);
}

bool mpiox_cache_is_clash(int code)
{
    return mpiox_storage_staging_is_clash(code);
}

void mpiox_cache_clash_text(const char *path, int code, char *text, size_t bytes)
{
    mpiox_storage_staging_clash(path, code, text, bytes);
}

bool mpiox_cache_is_hidden(const mpiox_file_record *record)
{
    return mpiox_storage_staging_has_name(record->path, record->device, record->inode);
}

void mpiox_cache_keep_hidden(const mpiox_cache *cache)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        if (mpiox_cache_error_count(cache, i) > 0)
            atomic_fetch_and(&cache->header->files[i].flags, ~MPIOX_FILE_HIDDEN);
    }
}

/* A file that is not there by its hidden name has got its own, or was deleted. */
static int sync_file(const mpiox_file_record *record)
{
    const char *path = record->path;
    int code = 0;
    if (atomic_load(&record->flags) & MPIOX_FILE_CONTAINER) {
        code = mpiox_storage_container.sync(path);
        return code == ENOENT ? 0 : code;
    }
    const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    code = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return code;
}

void mpiox_cache_end_hidden(const mpiox_cache *cache)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        mpiox_file_record *record = &cache->header->files[i];
        const int32_t flags = atomic_load(&record->flags);
        mpiox_error error;
        bool renamed;
        const bool is_open = !(flags & MPIOX_FILE_DRAINING);
        if (!(flags & MPIOX_FILE_HIDDEN) || flags & MPIOX_FILE_REPLICA || atomic_load(&record->openers) < 1 ||
            mpiox_cache_error_count(cache, i) > 0 || mpiox_cache_torn(cache) == MPIOX_TORN_TABLES)
            continue;
        int code = sync_file(record);
        if (is_open) { /* so that processes of other nodes know it */
            if (code == 0)
                (void)mpiox_storage_staging_rescued(record->path, record->part);
            continue;
        }
        if (code == 0)
            code = mpiox_storage_staging_end(record->path, record->part, record->device, record->inode, &renamed);
        const bool clashes = mpiox_storage_staging_is_clash(code);
        atomic_store(&record->drain_errno, clashes ? code : 0);
        if (code == 0 || code == EAGAIN || clashes) { /* EAGAIN: an opener of the file does the rest */
            atomic_fetch_and(&record->flags, ~(MPIOX_FILE_HIDDEN | MPIOX_FILE_DRAINING));
        } else {
            (void)mpiox_error_set(&error, MPIOX_E_IO, code, -1, -1, "rescue: giving a file its name");
            mpiox_cache_add_error(cache, i, &error);
        }
    }
}

void mpiox_cache_find_hidden(const mpiox_cache *cache)
{
    char own[MPIOX_CACHE_PATH_BYTES], found[MPIOX_CACHE_PATH_BYTES];
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        mpiox_file_record *record = &cache->header->files[i];
        if (atomic_load(&record->openers) < 1 || !mpiox_storage_staging_final(record->path, own, sizeof own))
            continue;
        mpiox_storage_staging_find(record->path, record->device, record->inode, found, sizeof found);
        memcpy(record->path, found, sizeof found);
    }
}

/* Copies whose originals are not in the file. */
static bool is_needed(const mpiox_file_record *record)
{
    const int32_t both = MPIOX_FILE_REPLICA | MPIOX_FILE_DRAINING;
    return (atomic_load(&record->flags) & both) == both && atomic_load(&record->openers) > 0 &&
           mpiox_storage_staging_pending(record->path, record->part, record->device, record->inode);
}

bool mpiox_cache_has_copies(const mpiox_cache *cache)
{
    bool has = false;
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++)
        has |= is_needed(&cache->header->files[i]);
    return has;
}

void mpiox_cache_take_copies(const mpiox_cache *cache)
{
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        _Atomic int32_t *flags = &cache->header->files[i].flags;
        if (!is_needed(&cache->header->files[i]))
            continue;
        atomic_fetch_or(flags, MPIOX_FILE_HIDDEN | MPIOX_FILE_COPIED);
        atomic_fetch_and(flags, ~MPIOX_FILE_REPLICA);
    }
}
