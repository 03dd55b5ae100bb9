/*
 * mpiox_handle.c - handle to entry: a small chained hash table behind a reader-writer lock.
 *
 * The key is the bytes of the handle, so an MPI_File may be of any type whose equal values have equal bytes.
 */
#include "mpiox_handle.h"

#include <pthread.h>
#include <string.h>

enum { BUCKETS = 256 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static mpiox_handle *buckets[BUCKETS];

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
    pthread_rwlock_rdlock(&lock);
    handle = buckets[bucket_of(fh)];
    while (handle && memcmp(&handle->fh, &fh, sizeof fh) != 0)
        handle = handle->next;
    pthread_rwlock_unlock(&lock);
    return handle;
}

void mpiox_handle_insert(mpiox_handle *handle)
{
    mpiox_handle **head = &buckets[bucket_of(handle->fh)];
    pthread_rwlock_wrlock(&lock);
    handle->next = *head;
    *head = handle;
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
    pthread_rwlock_unlock(&lock);
    return handle;
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
