/*
 * mpiox_shared_pointer.c - the shared file pointer of a file.
 *
 * Problem.   All ranks of a file share a pointer that any of them may read and move at any time, without the others.
 * Algorithm. With one node it is a word in the node's shared memory, moved by one atomic addition. With several it is a
 *            number in a small hidden file beside the data, moved under a lock (as ROMIO's always is); the file is made
 *            by whoever first needs it and removed at close. A new view starts at zero while other ranks may still be
 *            using the old pointer: there are two of them, and each view uses the one that its predecessor did not.
 *            Its name holds random bits of rank 0, so that no other job, and nothing that a killed one left, is met.
 * Guarantee. Additions of different ranks never overlap. Needs mpiox_exchange_background() (mapped memory).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_exchange_impl.h"
#include "mpiox_storage_lock.h"

static bool in_memory(const mpiox_exchange *x) { return x->team->n_nodes == 1; }

/* The board is at the start of the segment, whatever the rest of it is laid out for. */
static _Atomic int64_t *word(mpiox_exchange *x, uint32_t turn) {
    return &((mpiox_board *) x->team->segment.base)->shared_pointer[turn & 1];
}

/* ---- hidden file ------------------------------------------------------------------------------------------------- */

static char *hidden_path(const mpiox_exchange *x) {
    const char *file = x->real_path ? x->real_path : x->path, *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    const size_t room = strlen(file) + 80;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%.*s.%s.pointer-%016llx", (int) (base - file), file, base,
                 (unsigned long long) x->nonce);
    return path;
}

static int open_hidden(mpiox_exchange *x, mpiox_error *error) {
    static const mpiox_storage_options plain = {.kind = MPIOX_STORAGE_POSIX};
    char *path = x->pointer_file ? NULL : hidden_path(x);
    if (x->pointer_file)
        return MPIOX_OK;
    const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    int code = MPIOX_OK;
    if (fd < 0)
        code = mpiox_error_set(error, MPIOX_E_IO, errno, -1, -1, "creating the file of the shared file pointer");
    else {
        close(fd);
        code = mpiox_storage_open(path, O_RDWR, x->team->rank, &plain, &x->pointer_file, error);
    }
    free(path);
    return code;
}

/* Add `change`, or with set == true store it; *old is what was there. Under the lock of the pointer's 8 bytes. */
static int update_locked(mpiox_exchange *x, bool set, int64_t change, int64_t *old, mpiox_error *error) {
    const int64_t at = 8 * (x->team->turn & 1);
    int64_t value = 0, done;
    if (open_hidden(x, error) != MPIOX_OK || mpiox_storage_lock(x->pointer_file, true, at, 8, error) != MPIOX_OK)
        return error->code;
    int code = mpiox_storage_read(x->pointer_file, &value, 8, at, &done, error);
    if (code == MPIOX_OK && done < 8)
        value = 0; /* nobody has moved it yet */
    *old = value;
    value = set ? change : value + change;
    if (code == MPIOX_OK && (set || change != 0))
        code = mpiox_storage_write(x->pointer_file, &value, 8, at, error);
    mpiox_storage_unlock(x->pointer_file, at, 8);
    return code;
}

/* The lock of a file excludes other processes; the mutex, this one's other threads. */
static int update_hidden(mpiox_exchange *x, bool set, int64_t change, int64_t *old, mpiox_error *error) {
    pthread_mutex_lock(&x->threads_lock);
    const int code = update_locked(x, set, change, old, error);
    pthread_mutex_unlock(&x->threads_lock);
    return code;
}

void mpiox_shared_pointer_free(mpiox_exchange *x) {
    if (!x->pointer_file)
        return;
    char *path = hidden_path(x);
    if (path)
        unlink(path); /* whoever comes first; the others find nothing */
    free(path);
    mpiox_storage_close(x->pointer_file);
    x->pointer_file = NULL;
}

/* ---- the pointer ------------------------------------------------------------------------------------------------- */

int mpiox_exchange_shared_add(mpiox_exchange *x, int64_t etypes, int64_t *old, mpiox_error *error) {
    if (!in_memory(x))
        return update_hidden(x, false, etypes, old, error);
    *old = atomic_fetch_add(word(x, x->team->turn), etypes);
    return MPIOX_OK;
}

int mpiox_exchange_shared_set(mpiox_exchange *x, int64_t etypes, mpiox_error *error) {
    int64_t old;
    if (!in_memory(x))
        return update_hidden(x, true, etypes, &old, error);
    atomic_store(word(x, x->team->turn), etypes);
    return MPIOX_OK;
}

/* Between the first and the last rank's turn to the new view the old pointer is still in use. The hidden file's other
 * number is cleared only if the file is there. */
void mpiox_shared_pointer_clear_next(mpiox_exchange *x) {
    mpiox_error error = {.code = MPIOX_OK};
    int64_t old;
    if (in_memory(x)) {
        if (x->team->rank == 0 && x->team->segment.base) /* a new segment is all zeros */
            atomic_store(word(x, x->team->turn + 1), 0);
        return;
    }
    if (!x->pointer_file)
        return;
    x->team->turn++;
    update_hidden(x, true, 0, &old, &error);
    x->team->turn--;
}
