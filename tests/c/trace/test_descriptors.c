/*
 * test_descriptors.c - threads use, duplicate, close and share descriptors at once: positions are right, no data race.
 *
 * One descriptor is opened for each thread, which follows its position; another thread opens, duplicates and closes
 * others, has one asked for, and shares all with another process, while all look them up.
 */
#include "mpiox_trace_descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "mpiox_trace_lock.h"
#include "mpiox_tracefile.h"

enum { THREADS = 4, FIRST = 100, TRANSFERS = 20000, BYTES = 7, FILE_OF_ALL = 9, ADDRESS = 4096 };

static atomic_int wrong;
static pthread_barrier_t barrier;

static void *follow(void *argument)
{
    const int number = *(const int *)argument;
    const int fd = FIRST + number;

    mpiox_trace_descriptor_open(fd, number + 1, O_RDWR);
    pthread_barrier_wait(&barrier);
    for (int64_t i = 0; i < TRANSFERS; i++) {
        wrong += mpiox_trace_descriptor_file(fd) != number + 1;
        wrong += mpiox_trace_descriptor_advance(fd, BYTES) != i * BYTES;
        const int32_t file = mpiox_trace_descriptor_file(FIRST + THREADS);
        wrong += file != 0 && file != FILE_OF_ALL;
        const int64_t mapping = mpiox_trace_mapping_of(ADDRESS + number);
        wrong += mapping != 0 && mapping != ADDRESS;
    }
    pthread_barrier_wait(&barrier); /* the others share their positions behind this */
    for (int i = 0; i < TRANSFERS; i++)
        wrong += mpiox_trace_descriptor_advance(fd, BYTES) < MPIOX_TRACEFILE_NONE;
    return NULL;
}

static void *change(void *argument)
{
    const int fd = FIRST + THREADS;

    (void)argument;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < TRANSFERS / 10; i++) {
        mpiox_trace_descriptor_open(fd, FILE_OF_ALL, i % 2 != 0 ? O_APPEND : 0);
        mpiox_trace_descriptor_copy(fd, fd + 1);
        mpiox_trace_descriptor_ask(fd + 1);
        mpiox_trace_mapping_open(ADDRESS, ADDRESS, FILE_OF_ALL);
        mpiox_trace_descriptor_close(fd);
        mpiox_trace_descriptor_close(fd + 1);
        mpiox_trace_mapping_close(ADDRESS);
    }
    pthread_barrier_wait(&barrier);
    for (int number = 0; number < THREADS; number++)
        mpiox_trace_descriptor_ask(FIRST + number);
    mpiox_trace_descriptors_share();
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS + 1];
    int numbers[THREADS];

    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    pthread_create(&threads[THREADS], NULL, change, NULL);
    for (int number = 0; number < THREADS; number++) {
        numbers[number] = number;
        pthread_create(&threads[number], NULL, follow, &numbers[number]);
    }
    for (int number = 0; number <= THREADS; number++)
        pthread_join(threads[number], NULL);
    CHECK_EQUAL(wrong, 0);
    for (int number = 0; number < THREADS; number++) {
        CHECK_EQUAL(mpiox_trace_descriptor_file(FIRST + number), number + 1);
        CHECK_EQUAL(mpiox_trace_descriptor_advance(FIRST + number, BYTES), MPIOX_TRACEFILE_NONE); /* asked, not open */
    }
    pthread_barrier_destroy(&barrier);
    return check_exit();
}
