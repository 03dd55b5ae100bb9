/*
 * mpiox_shared_pointer.c - the shared file pointer of a file.
 *
 * Problem.   All ranks of a file share a pointer that any of them may read and move at any time, without the others.
 * Algorithm. On one node the pointer is a word in the node's shared memory, and one atomic addition moves it. With
 *            several nodes the pointer is a number in a small hidden file beside the data, and a rank moves it under a
 *            lock (as ROMIO always does). The first rank that needs the hidden file creates it; the close removes it.
 *            The name of the hidden file contains random bits of rank 0, and so differs from the names of other jobs'
 *            files and of files that killed jobs left. A new view starts at zero while other ranks may still use the
 *            old pointer: there are two pointers, and each view uses the one that the view before did not use.
 * Guarantee. Additions of different ranks never overlap. Needs mpiox_topology_takes_all().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_file.h"
#include "mpiox_storage_lock.h"
#include "mpiox_storage_refresh.h"

static bool in_memory(const mpiox_file *file)
{
    return mpiox_topology_one_node(file->topology);
}

static _Atomic int64_t *word(mpiox_file *file, uint32_t view)
{
    return mpiox_topology_pointer(file->topology, view);
}

/* ---- hidden file ------------------------------------------------------------------------------------------------- */

static char *hidden_path(const mpiox_file *file)
{
    const char *data = mpiox_file_place(file), *slash = strrchr(data, '/'), *base = slash ? slash + 1 : data;
    const size_t room = strlen(data) + 80;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%.*s.%s.pointer-%016llx", (int)(base - data), data, base,
                 (unsigned long long)file->nonce);
    return path;
}

static int open_hidden(mpiox_file *file, mpiox_error *error)
{
    static const mpiox_storage_options plain = {.kind = MPIOX_STORAGE_POSIX};
    char *path = file->pointer_file ? NULL : hidden_path(file);
    if (file->pointer_file)
        return MPIOX_OK;
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (path && fd < 0 && errno == EEXIST) /* MooseFS' client: another node has just made it */
        fd = open(path, O_RDWR | O_CLOEXEC);
    int code = MPIOX_OK;
    if (fd < 0)
        code = mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "creating the file of the shared file pointer");
    else {
        close(fd);
        code = mpiox_storage_open(path, O_RDWR, file->topology->rank, &plain, &file->pointer_file, error);
    }
    free(path);
    return code;
}

/* Add `change`, or with set == true store it; *old is the previous value. Under the lock of the pointer's 8 bytes. */
static int update_locked(mpiox_file *file, bool set, int64_t change, int64_t *old, mpiox_error *error)
{
    const int64_t at = 8 * (file->topology->views & 1);
    int64_t value = 0, done;
    if (open_hidden(file, error) != MPIOX_OK || mpiox_storage_lock(file->pointer_file, true, at, 8, error) != MPIOX_OK)
        return error->code;
    int code = file->refreshes ? mpiox_storage_refresh(file->pointer_file, error) : MPIOX_OK;
    if (code == MPIOX_OK)
        code = mpiox_storage_read(file->pointer_file, &value, 8, at, &done, error);
    if (code != MPIOX_OK || done < 8)
        value = 0; /* no rank has moved it yet */
    *old = value;
    value = set ? change : value + change;
    if (code == MPIOX_OK && (set || change != 0))
        code = mpiox_storage_write(file->pointer_file, &value, 8, at, error);
    if (code == MPIOX_OK && file->refreshes)
        code = mpiox_storage_sync(file->pointer_file, error);
    mpiox_storage_unlock(file->pointer_file, at, 8);
    return code;
}

/* The lock of a file excludes other processes; the mutex, this one's other threads. */
static int update_hidden(mpiox_file *file, bool set, int64_t change, int64_t *old, mpiox_error *error)
{
    pthread_mutex_lock(&file->threads_lock);
    const int code = update_locked(file, set, change, old, error);
    pthread_mutex_unlock(&file->threads_lock);
    return code;
}

void mpiox_shared_pointer_free(mpiox_file *file)
{
    if (!file->pointer_file)
        return;
    char *path = hidden_path(file);
    if (path)
        unlink(path); /* the first rank removes it; the others find nothing */
    free(path);
    mpiox_storage_close(file->pointer_file);
    file->pointer_file = NULL;
}

/* ---- the pointer ------------------------------------------------------------------------------------------------- */

int mpiox_shared_pointer_add(mpiox_file *file, int64_t etypes, int64_t *old, mpiox_error *error)
{
    if (!in_memory(file))
        return update_hidden(file, false, etypes, old, error);
    *old = atomic_fetch_add(word(file, file->topology->views), etypes);
    return MPIOX_OK;
}

int mpiox_shared_pointer_set(mpiox_file *file, int64_t etypes, mpiox_error *error)
{
    int64_t old;
    if (!in_memory(file))
        return update_hidden(file, true, etypes, &old, error);
    atomic_store(word(file, file->topology->views), etypes);
    return MPIOX_OK;
}

/* Between the first and the last rank's turn to the new view the old pointer is still in use. The hidden file's other
 * number is cleared only if the file is there. */
void mpiox_shared_pointer_clear_next(mpiox_file *file)
{
    mpiox_error error = {.code = MPIOX_OK};
    int64_t old;
    if (in_memory(file)) {
        if (file->topology->rank == 0)
            atomic_store(word(file, file->topology->views + 1), 0);
        return;
    }
    if (!file->pointer_file)
        return;
    file->topology->views++;
    update_hidden(file, true, 0, &old, &error);
    file->topology->views--;
}
