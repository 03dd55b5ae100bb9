/*
 * measure_storage.c - how fast each back end moves contiguous requests and lists of small pieces. Not a test: it prints
 * a table, from which the rule of mpiox_storage=auto was made.
 *
 *   measure_storage FOLDER [DEPTH] [REPETITIONS]
 *
 * One file of 64 MiB in FOLDER, made beforehand. Contiguous: 64 requests of 1 MiB. Lists: 1000 pieces, each in a cell
 * of its own (twice its size apart; 64 KiB apart for `cold`). Every number is the median of the repetitions, back ends
 * taking turns; the same was done once before, unmeasured, but for `cold`, where the file was dropped from the page
 * cache.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_storage.h"

enum { MIB = 1 << 20, FILE_BYTES = 64 * MIB, PIECES = 1000, REPETITIONS_MAX = 101 };

typedef struct back_end {
    const char *name;
    mpiox_storage_options options;
} back_end;

typedef struct job {
    const char *name;
    bool write, cold;
    int64_t piece, stride; /* piece 0: contiguous requests of 1 MiB */
} job;

static char *memory;
static mpiox_storage_piece pieces[PIECES];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t carry_out(mpiox_storage *storage, const job *j)
{
    int64_t done, bytes = 0;
    for (int64_t at = 0; j->piece == 0 && at < FILE_BYTES; at += MIB, bytes += MIB)
        CHECK_EQUAL(j->write ? mpiox_storage_write(storage, memory, MIB, at, NULL)
                             : mpiox_storage_read(storage, memory, MIB, at, &done, NULL),
                    0);
    if (j->piece == 0)
        return bytes;
    for (int64_t i = 0; i < PIECES; i++) /* scattered order of memory is not the question: it follows the file's */
        pieces[i] = (mpiox_storage_piece){.base = memory + i * j->piece, .length = j->piece, .offset = i * j->stride};
    CHECK_EQUAL(j->write ? mpiox_storage_write_list(storage, pieces, PIECES, NULL)
                         : mpiox_storage_read_list(storage, pieces, PIECES, &done, NULL),
                0);
    return PIECES * j->piece;
}

static void drop_cache(mpiox_storage *storage)
{
    fsync(storage->fd);
    posix_fadvise(storage->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *path, const job *j, const back_end *ends, int n_ends, int repetitions)
{
    double times[8][REPETITIONS_MAX];
    int64_t bytes = 0;
    for (int r = 0; r < repetitions; r++) {
        for (int e = 0; e < n_ends; e++) {
            mpiox_storage *storage;
            CHECK_EQUAL(mpiox_storage_open(path, O_RDWR, 0, &ends[e].options, &storage, NULL), 0);
            if (j->cold)
                drop_cache(storage);
            else /* warm, whatever the one before did to the cache */
                carry_out(storage, j);
            double begun = now();
            bytes = carry_out(storage, j);
            times[e][r] = now() - begun;
            CHECK_EQUAL(mpiox_storage_close(storage), 0);
        }
    }
    printf("%-24s", j->name);
    for (int e = 0; e < n_ends; e++) {
        qsort(times[e], (size_t)repetitions, sizeof times[e][0], ascending);
        printf(" %12.0f", (double)bytes / times[e][repetitions / 2] / 1e6);
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const int depth = argc > 2 ? atoi(argv[2]) : 0, repetitions = argc > 3 ? atoi(argv[3]) : 9;
    const back_end ends[] = {
        {"posix", {.kind = MPIOX_STORAGE_POSIX}},
        {"io_uring", {.kind = MPIOX_STORAGE_IO_URING, .io_uring_depth = depth}},
        {"auto", {.kind = MPIOX_STORAGE_AUTO, .io_uring_depth = depth}},
        {"direct", {.kind = MPIOX_STORAGE_POSIX, .direct_read = true, .direct_write = true}},
        {"direct+ring",
         {.kind = MPIOX_STORAGE_IO_URING, .io_uring_depth = depth, .direct_read = true, .direct_write = true}},
    };
    static const job jobs[] = {
        {"write 1 MiB", true, false, 0, 0},
        {"read 1 MiB", false, false, 0, 0},
        {"read 1 MiB cold", false, true, 0, 0},
        {"write 1000 x 512 B", true, false, 512, 1024},
        {"write 1000 x 4 KiB", true, false, 4096, 8192},
        {"read 1000 x 512 B", false, false, 512, 1024},
        {"read 1000 x 4 KiB", false, false, 4096, 8192},
        {"read 1000 x 512 B cold", false, true, 512, 65536},
        {"read 1000 x 4 KiB cold", false, true, 4096, 65536},
    };
    char path[512];
    if (argc < 2 || repetitions < 1 || repetitions > REPETITIONS_MAX)
        return 2;
    snprintf(path, sizeof path, "%s/measure_storage.dat", argv[1]);
    memory = aligned_alloc(4096, FILE_BYTES);
    memset(memory, 1, FILE_BYTES);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, memory, FILE_BYTES) == FILE_BYTES && fsync(fd) == 0 && close(fd) == 0);
    printf("%-24s", "MB/s");
    for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++)
        printf(" %12s", ends[e].name);
    printf("\n");
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        measure(path, &jobs[i], ends, (int)(sizeof ends / sizeof ends[0]), repetitions);
    unlink(path);
    free(memory);
    return check_exit();
}
