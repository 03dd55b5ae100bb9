/*
 * mpiox_file_table.c - handle to entry: a small chained hash table behind a reader-writer lock.
 *
 * The key is the bytes of the handle, so an MPI_File may be of any type whose equal values have equal bytes.
 */
#include "mpiox_file_table.h"

#include <pthread.h>
#include <string.h>

enum { BUCKETS = 256 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static mpiox_file *buckets[BUCKETS];

_Static_assert(sizeof(MPI_File) <= sizeof(uint64_t), "MPI_File does not fit the key");

static unsigned bucket_of(MPI_File handle) {
    uint64_t key = 0;
    memcpy(&key, &handle, sizeof handle);
    return (unsigned) ((key * UINT64_C(0x9E3779B97F4A7C15)) >> 56);
}

mpiox_file *mpiox_file_find(MPI_File handle) {
    mpiox_file *file;
    pthread_rwlock_rdlock(&lock);
    file = buckets[bucket_of(handle)];
    while (file && memcmp(&file->handle, &handle, sizeof handle) != 0)
        file = file->next;
    pthread_rwlock_unlock(&lock);
    return file;
}

void mpiox_file_insert(mpiox_file *file) {
    mpiox_file **head = &buckets[bucket_of(file->handle)];
    pthread_rwlock_wrlock(&lock);
    file->next = *head;
    *head = file;
    pthread_rwlock_unlock(&lock);
}

mpiox_file *mpiox_file_remove(MPI_File handle) {
    mpiox_file **link = &buckets[bucket_of(handle)], *file;
    pthread_rwlock_wrlock(&lock);
    while (*link && memcmp(&(*link)->handle, &handle, sizeof handle) != 0)
        link = &(*link)->next;
    file = *link;
    if (file)
        *link = file->next;
    pthread_rwlock_unlock(&lock);
    return file;
}

void mpiox_file_each(void (*visit)(mpiox_file *file, void *context), void *context) {
    pthread_rwlock_rdlock(&lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (mpiox_file *file = buckets[i]; file; file = file->next)
            visit(file, context);
    }
    pthread_rwlock_unlock(&lock);
}
