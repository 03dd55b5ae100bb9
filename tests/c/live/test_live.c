/*
 * test_live.c - the page of a process, in whichever way it is made: what it counts, and what becomes of its entries.
 *
 * test_live FILES THREADS: prints "page BYTES" or "no page"; CHECKs the rest.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_live.h"

enum { ACCESSES = 20000, MOST_DESCRIPTORS = 64 };

static mpiox_live_page *found;

/* As a reader finds it: by its name among the descriptors. */
static void find_page(void)
{
    for (int fd = 3; fd < MOST_DESCRIPTORS; fd++) {
        char path[64], name[64] = "";
        struct stat status;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof name - 1) > 0 && strstr(name, MPIOX_LIVE_NAME) != NULL) {
            CHECK(fstat(fd, &status) == 0);
            CHECK(ftruncate(fd, 4096) != 0); /* its size is sealed */
            found = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
            CHECK(found != MAP_FAILED);
            CHECK(status.st_size == MPIOX_LIVE_HEAD_BYTES + (int64_t)found->files * found->file_bytes);
            printf("page %lld\n", (long long)status.st_size);
            return;
        }
    }
    printf("no page\n");
}

static void *access_file(void *counters)
{
    for (int i = 0; i < ACCESSES; i++)
        mpiox_live_count(counters, i % 2 == 0, 3);
    return NULL;
}

/* Threads access one file at once; then it is closed. */
static void access_together(int threads)
{
    pthread_t ids[16];
    mpiox_live_counters *counters = mpiox_live_open("/shared");
    const mpiox_live_file *file = (const mpiox_live_file *)((const char *)found + MPIOX_LIVE_HEAD_BYTES);

    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&ids[i], NULL, access_file, counters) == 0);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    if (found != NULL) {
        CHECK(strcmp(file->path, "/shared") == 0 && file->opened_ns > 0);
        for (int way = 0; way < 2; way++) {
            CHECK(file->counters.calls[way] == (int64_t)threads * ACCESSES / 2);
            CHECK(file->counters.bytes[way] == 3 * (int64_t)threads * ACCESSES / 2);
        }
    }
    mpiox_live_close(counters);
    if (found != NULL) {
        CHECK(file->opened_ns == 0 && file->counters.calls[0] == 0);
        CHECK(found->rest.calls[1] == (int64_t)threads * ACCESSES / 2 && found->open == 0 && found->opened == 1);
    }
}

/* More files than there are entries: all count, and entries are used again. */
static void open_many(int count)
{
    mpiox_live_counters **all = calloc((size_t)count + 1, sizeof *all);
    const int64_t before = found != NULL ? found->rest.bytes[1] : 0, opened = found != NULL ? found->opened : 0;
    char path[1024];

    CHECK(all != NULL);
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    for (int i = 0; i < count; i++) {
        all[i] = mpiox_live_open(path);
        mpiox_live_count(all[i], true, 7);
    }
    if (found != NULL && count > 0) {
        const mpiox_live_file *file = (const mpiox_live_file *)((const char *)found + MPIOX_LIVE_HEAD_BYTES);
        const int listed = count < found->files ? count : found->files;

        CHECK(strlen(file->path) == MPIOX_LIVE_PATH - 1 && strncmp(file->path, "...xx", 5) == 0);
        CHECK(found->open == count && found->unlisted == count - listed && found->files_end == listed);
        mpiox_live_close(all[count / 2]);
        all[count / 2] = mpiox_live_open("/again");
        CHECK(found->files_end == listed && found->opened == opened + count + 1);
        mpiox_live_count(all[count / 2], true, 7);
    }
    for (int i = 0; i < count; i++)
        mpiox_live_close(all[i]);
    if (found != NULL) {
        CHECK(found->rest.bytes[1] == before + 7 * (int64_t)(count > 0 ? count + 1 : 0));
        CHECK(found->open == 0 && found->unlisted == 0 && found->change % 2 == 0);
    }
    free(all);
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 1, threads = argc > 2 ? atoi(argv[2]) : 1;

    mpiox_live_close(NULL);
    mpiox_live_close(mpiox_live_open("/before")); /* MPI was initialised behind the library's back */
    mpiox_live_begin(2, 5);
    mpiox_live_begin(3, 6); /* nothing */
    find_page();
    if (found != NULL) {
        CHECK(memcmp(found->magic, MPIOX_LIVE_MAGIC, 8) == 0 && found->version == MPIOX_LIVE_VERSION);
        CHECK(found->rank == 2 && found->ranks == 5 && found->pid == getpid() && found->start_ticks > 0);
        CHECK(found->state == MPIOX_LIVE_RUNNING);
    }
    access_together(threads);
    open_many(count);
    mpiox_live_delegates("service", "/folder");
    mpiox_live_end();
    if (found != NULL)
        CHECK(found->state == MPIOX_LIVE_FINALIZED && strcmp(found->service, "service") == 0);
    return check_exit();
}
