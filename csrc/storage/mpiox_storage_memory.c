/*
 * mpiox_storage_memory.c - a file in memory, for tests: grows up to a limit, then the "disk" is full.
 *
 * A write that crosses the limit moves what fits (a short write, as a real file system does); the next one is ENOSPC.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_storage_internal.h"

typedef struct memory_file {
    char *data;
    int64_t size, capacity, limit;
} memory_file;

/* Make room for `end` bytes, zeroing what lies between. 0 or -errno. */
static int grow(memory_file *file, int64_t end)
{
    if (end > file->capacity) {
        int64_t capacity = file->capacity < 4096 ? 4096 : file->capacity;
        while (capacity < end && capacity <= INT64_MAX / 2)
            capacity *= 2;
        capacity = capacity > file->limit || capacity < end ? file->limit : capacity;
        char *data = realloc(file->data, (size_t)capacity);
        if (data == NULL)
            return -ENOMEM;
        file->data = data;
        file->capacity = capacity;
    }
    if (end > file->size) {
        memset(file->data + file->size, 0, (size_t)(end - file->size));
        file->size = end;
    }
    return 0;
}

static int64_t memory_write_some(mpiox_storage *storage, const struct iovec *iov, int iov_count, int64_t offset)
{
    memory_file *file = storage->state;
    int64_t moved = 0;
    for (int i = 0; i < iov_count; i++) {
        int64_t room = file->limit - offset - moved;
        int64_t bytes = (int64_t)iov[i].iov_len < room ? (int64_t)iov[i].iov_len : room;
        if (bytes <= 0)
            break;
        int rc = grow(file, offset + moved + bytes);
        if (rc != 0)
            return moved > 0 ? moved : rc;
        memcpy(file->data + offset + moved, iov[i].iov_base, (size_t)bytes);
        moved += bytes;
    }
    return moved > 0 ? moved : -ENOSPC;
}

static int64_t memory_read_some(mpiox_storage *storage, const struct iovec *iov, int iov_count, int64_t offset)
{
    const memory_file *file = storage->state;
    int64_t moved = 0;
    for (int i = 0; i < iov_count && offset + moved < file->size; i++) {
        int64_t there = file->size - offset - moved;
        int64_t bytes = (int64_t)iov[i].iov_len < there ? (int64_t)iov[i].iov_len : there;
        if (bytes > 0)
            memcpy(iov[i].iov_base, file->data + offset + moved, (size_t)bytes);
        moved += bytes;
    }
    return moved;
}

static int memory_close(mpiox_storage *storage)
{
    memory_file *file = storage->state;
    free(file->data);
    free(file);
    return 0;
}

static const mpiox_storage_backend memory_backend = {
    .name = "memory",
    .write_some = memory_write_some,
    .read_some = memory_read_some,
    .close = memory_close,
};

int mpiox_storage_open_memory(int64_t limit_bytes, mpiox_storage **out)
{
    mpiox_storage *storage = calloc(1, sizeof *storage);
    memory_file *file = calloc(1, sizeof *file);
    *out = NULL;
    if (storage == NULL || file == NULL) {
        free(storage);
        free(file);
        return MPIOX_E_NOMEM;
    }
    file->limit = limit_bytes > 0 ? limit_bytes : 0;
    *storage = (mpiox_storage){.backend = &memory_backend, .fd = -1, .state = file};
    *out = storage;
    return MPIOX_OK;
}

const void *mpiox_storage_memory(const mpiox_storage *storage, int64_t *bytes)
{
    *bytes = 0;
    if (storage->backend != &memory_backend)
        return NULL;
    const memory_file *file = storage->state;
    *bytes = file->size;
    return file->data;
}
