/*
 * copy_loops.c - how fast the copy loops move the data of described accesses.
 *
 * copy_loops [MiB [seconds]]: data per copy (default 1, which stays in the caches) and time per line. Each line is
 * one typemap pattern: gather (strided to contiguous), scatter (contiguous to strided) and both layouts strided, in
 * GB/s of data moved (10^9 bytes; each byte counts once), the best copy of each. No MPI.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpiox_typemap_array.h"
#include "mpiox_copy.h"

typedef struct pattern {
    const char *name;
    mpiox_typemap *typemap;
} pattern;

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(int code)
{
    if (code != MPIOX_OK) {
        fprintf(stderr, "copy_loops: cannot build a description (%d)\n", code);
        exit(1);
    }
}

/* Blocks of `length` bytes, `stride` apart, endlessly. */
static mpiox_typemap *strided(int64_t length, int64_t stride)
{
    mpiox_typemap *block = NULL, *tile = NULL;
    check(mpiox_typemap_block(length, &block));
    check(mpiox_typemap_resized(0, stride, block, &tile));
    mpiox_typemap_free(block);
    return tile;
}

/* A quarter (half by half) of a 3-D array of doubles, `layout`^3 items. */
static mpiox_typemap *box(int64_t layout)
{
    const int64_t sizes[3] = {layout, layout, layout}, parts[3] = {layout, layout / 2, layout / 2},
                  starts[3] = {0, layout / 2, 0};
    mpiox_typemap *item = NULL, *array = NULL;
    check(mpiox_typemap_block(8, &item));
    check(mpiox_typemap_subarray(3, sizes, parts, starts, false, item, &array));
    mpiox_typemap_free(item);
    return array;
}

/* `n` pieces of `length` bytes (or of length / 2 .. 3 length / 2) in a random quarter of as many slots. */
static mpiox_typemap *random_pieces(int64_t n, int64_t length, bool vary, bool ordered)
{
    int64_t *counts = malloc((size_t)n * 8), *at = malloc((size_t)n * 8);
    mpiox_typemap *byte = NULL, *list = NULL;
    uint64_t state = 12345;
    if (counts == NULL || at == NULL) {
        exit(1);
    }
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        counts[i] = vary ? length / 2 + (int64_t)(state >> 40) % (length + 1) : length;
        at[i] = (4 * i + (int64_t)(state >> 60) % 3) * 2 * length;
    }
    for (int64_t i = n - 1; i > 0 && !ordered; i--) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const int64_t k = (int64_t)(state >> 33) % (i + 1), swap = at[i];
        at[i] = at[k];
        at[k] = swap;
    }
    check(mpiox_typemap_block(1, &byte));
    check(mpiox_typemap_indexed(n, counts, at, byte, &list));
    mpiox_typemap_free(byte);
    free(counts);
    free(at);
    return list;
}

/* The best of several batches of copies, in processor time: what the code can do, whatever else the machine does. */
static double measure(const mpiox_memory_layout *target, const mpiox_memory_layout *source, int64_t bytes,
                      double seconds)
{
    double best = 1e30, spent = 0;
    int64_t copies = 1;
    while (spent < seconds) {
        const double start = seconds_now();
        for (int64_t i = 0; i < copies; i++) {
            mpiox_copy(target, source, bytes);
        }
        const double took = seconds_now() - start;
        spent += took;
        if (took < 2e-4) { /* too short to measure */
            copies *= 2;
        } else if (took / (double)copies < best) {
            best = took / (double)copies;
        }
    }
    return (double)bytes / best * 1e-9;
}

static void report(const pattern *p, int64_t bytes, double seconds)
{
    const int64_t size = mpiox_typemap_size(p->typemap);
    const int64_t reach = mpiox_typemap_true_ub(p->typemap) + (bytes / size + 1) * mpiox_typemap_extent(p->typemap);
    char *area = malloc((size_t)reach), *other = malloc((size_t)reach), *flat = malloc((size_t)bytes);
    if (area == NULL || other == NULL || flat == NULL) {
        fprintf(stderr, "copy_loops: out of memory\n");
        exit(1);
    }
    memset(area, 1, (size_t)reach);
    memset(other, 2, (size_t)reach);
    memset(flat, 3, (size_t)bytes);
    const mpiox_memory_layout a = {area, p->typemap, 0, 0}, b = {other, p->typemap, 0, 0}, f = {flat, NULL, 0, 0};
    const double gather = measure(&f, &a, bytes, seconds);
    const double scatter = measure(&a, &f, bytes, seconds);
    const double both = measure(&b, &a, bytes, seconds);
    printf("%-42s %8.2f %8.2f %8.2f   %6.1f\n", p->name, gather, scatter, both,
           (double)mpiox_typemap_blob_bytes(p->typemap) / (double)mpiox_typemap_pieces(p->typemap));
    fflush(stdout);
    free(area);
    free(other);
    free(flat);
}

int main(int argc, char **argv)
{
    const double mebibytes = argc > 1 ? atof(argv[1]) : 1.0, seconds = argc > 2 ? atof(argv[2]) : 0.2;
    const int64_t bytes = (int64_t)(mebibytes * 1048576.0) / 8 * 8;
    if (bytes <= 0 || seconds <= 0) {
        fprintf(stderr, "usage: copy_loops [MiB [seconds]]\n");
        return 2;
    }
    const pattern patterns[] = {
        {"contiguous", strided(8, 8)},
        {"1-byte blocks, stride 4", strided(1, 4)},
        {"2-byte blocks, stride 8", strided(2, 8)},
        {"4-byte blocks, stride 16", strided(4, 16)},
        {"8-byte blocks, stride 16", strided(8, 16)},
        {"8-byte blocks, stride 32", strided(8, 32)},
        {"8-byte blocks, stride 256", strided(8, 256)},
        {"12-byte blocks, stride 48", strided(12, 48)},
        {"16-byte blocks, stride 64", strided(16, 64)},
        {"24-byte blocks, stride 96", strided(24, 96)},
        {"32-byte blocks, stride 128", strided(32, 128)},
        {"64-byte blocks, stride 256", strided(64, 256)},
        {"100-byte blocks, stride 400", strided(100, 400)},
        {"4096-byte blocks, stride 16384", strided(4096, 16384)},
        {"3-D box of doubles, 64^3", box(64)},
        {"3-D box of doubles, 8^3", box(8)},
        {"ascending list, 64 bytes each", random_pieces(bytes / 64 + 1, 64, false, true)},
        {"ascending list, 32 to 96 bytes", random_pieces(bytes / 64 + 1, 64, true, true)},
        {"random list, 64 bytes each", random_pieces(bytes / 64 + 1, 64, false, false)},
        {"random list, 8 bytes each", random_pieces(bytes / 8 + 1, 8, false, false)},
    };
    printf("%.3g MiB of data per copy; GB/s            gather  scatter     both   description bytes per piece\n",
           (double)bytes / 1048576.0);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        report(&patterns[i], bytes, seconds);
        mpiox_typemap_free(patterns[i].typemap);
    }
    return 0;
}
