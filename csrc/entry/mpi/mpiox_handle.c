/*
 * mpiox_handle.c - handle to entry: a small chained hash table behind a reader-writer lock.
 *
 * A thread caches the entry that it has found last. As long as no file has been opened or closed since, a look-up takes
 * this entry, and needs neither the table nor the lock.
 *
 * The key is the bytes of the handle, so an MPI_File may be of any type whose equal values have equal bytes.
 */
#include "mpiox_handle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static mpiox_handle *buckets[BUCKETS];
static atomic_uint_least64_t changes = 1; /* of the table */

static _Thread_local struct { /* one variable: its address is found once a function */
    uint64_t changes;         /* when this was found; 0: nothing yet */
    MPI_File fh;
    mpiox_handle *handle;
} last;

_Static_assert(sizeof(MPI_File) <= sizeof(uint64_t), "MPI_File does not fit the key");

static unsigned bucket_of(MPI_File fh)
{
    uint64_t key = 0;
    memcpy(&key, &fh, sizeof fh);
    return (unsigned)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 56);
}

mpiox_handle *mpiox_handle_find(MPI_File fh)
{
    mpiox_handle *handle;
    if (last.changes == changes && memcmp(&last.fh, &fh, sizeof fh) == 0)
        return last.handle;
    pthread_rwlock_rdlock(&lock);
    last.changes = changes;
    handle = buckets[bucket_of(fh)];
    while (handle && memcmp(&handle->fh, &fh, sizeof fh) != 0)
        handle = handle->next;
    last.fh = fh;
    last.handle = handle;
    pthread_rwlock_unlock(&lock);
    return handle;
}

void mpiox_handle_insert(mpiox_handle *handle)
{
    mpiox_handle **head = &buckets[bucket_of(handle->fh)];
    handle->live = mpiox_live_open(handle->path);
    pthread_rwlock_wrlock(&lock);
    handle->next = *head;
    *head = handle;
    changes++;
    pthread_rwlock_unlock(&lock);
}

mpiox_handle *mpiox_handle_remove(MPI_File fh)
{
    mpiox_handle **link = &buckets[bucket_of(fh)], *handle;
    pthread_rwlock_wrlock(&lock);
    while (*link && memcmp(&(*link)->fh, &fh, sizeof fh) != 0)
        link = &(*link)->next;
    handle = *link;
    if (handle)
        *link = handle->next;
    changes++;
    pthread_rwlock_unlock(&lock);
    return handle;
}

void mpiox_handle_free(mpiox_handle *handle)
{
    if (!handle)
        return;
    mpiox_live_close(handle->live);
    pthread_mutex_destroy(&handle->pointer_lock);
    free(handle->path);
    free(handle);
}

void mpiox_handle_each(void (*visit)(mpiox_handle *handle, void *context), void *context)
{
    pthread_rwlock_rdlock(&lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (mpiox_handle *handle = buckets[i]; handle; handle = handle->next)
            visit(handle, context);
    }
    pthread_rwlock_unlock(&lock);
}
