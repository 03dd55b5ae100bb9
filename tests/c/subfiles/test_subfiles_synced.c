/* test_subfiles_synced.c - a write that ends after a sync is the next sync's: test_subfiles_synced FOLDER */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_storage_container.h"
#include "mpiox_subfiles_files.h"

static atomic_bool waits; /* the next pwrite, before it moves a byte */
static atomic_int syncs;
static sem_t begun, may_end;

ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
    if (atomic_exchange(&waits, false)) {
        sem_post(&begun);
        sem_wait(&may_end);
    }
    return (ssize_t)syscall(SYS_pwrite64, fd, buffer, bytes, offset);
}

int fsync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fsync, fd);
}

static void *write_one(void *file)
{
    CHECK(mpiox_storage_write(file, "bytes", 5, 0, NULL) == MPIOX_OK);
    return NULL;
}

int main(int argc, char **argv)
{
    static const mpiox_storage_options options = {.kind = MPIOX_STORAGE_POSIX};
    char path[PATH_MAX];
    mpiox_subfiles index;
    mpiox_storage *file;
    pthread_t writer;
    int guard;
    snprintf(path, sizeof path, "%s/file", argc > 1 ? argv[1] : ".");
    CHECK(sem_init(&begun, 0, 0) == 0 && sem_init(&may_end, 0, 0) == 0);
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 3, 100, NULL, &index, &guard), 0);
    CHECK(mpiox_storage_container.open(path, O_RDWR, 0, &options, &file, NULL) == MPIOX_OK);
    waits = true;
    CHECK(pthread_create(&writer, NULL, write_one, file) == 0);
    sem_wait(&begun);
    CHECK(mpiox_storage_sync(file, NULL) == MPIOX_OK);
    sem_post(&may_end);
    CHECK(pthread_join(writer, NULL) == 0);
    syncs = 0;
    CHECK(mpiox_storage_sync(file, NULL) == MPIOX_OK);
    CHECK_EQUAL(syncs, 1);
    CHECK(mpiox_storage_sync(file, NULL) == MPIOX_OK);
    CHECK_EQUAL(syncs, 1); /* nothing was written since */
    CHECK(mpiox_storage_close(file) == MPIOX_OK);
    CHECK_EQUAL(mpiox_subfiles_end(&index, guard, false), 0);
    close(guard);
    CHECK_EQUAL(mpiox_subfiles_remove(&index), 0);
    mpiox_subfiles_free(&index);
    return check_exit();
}
