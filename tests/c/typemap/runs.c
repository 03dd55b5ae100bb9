/*
 * runs.c - runs as bytes (mpiox_typemap_runs.h): what is written is read back as the same pieces, and any bytes are
 * read without harm. Pieces that come again and again take few bytes. Also descriptions moved to begin at 0
 * (mpiox_typemap_at_zero()).
 */
#include "mpiox_typemap_runs.h"
#include "random_trees.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The next byte's offset of the runs read; -1: no more. */
typedef struct bytes_of_runs {
    mpiox_typemap_runs runs;
    mpiox_run run;
    int64_t item, byte;
    bool open;
} bytes_of_runs;

static int64_t next_byte(bytes_of_runs *b)
{
    if (!b->open || b->item == b->run.count) {
        b->open = mpiox_typemap_runs_next(&b->runs, &b->run);
        b->item = b->byte = 0;
    }
    if (!b->open)
        return -1;
    const int64_t offset = b->run.offset + b->item * b->run.stride + b->byte;
    if (++b->byte == b->run.length) {
        b->byte = 0;
        b->item++;
    }
    return offset;
}

static void check_part(const mpiox_typemap *typemap, int64_t from, int64_t to, int64_t most)
{
    const int64_t granule = mpiox_typemap_granule(typemap) % 2 == 0 && from % 2 == 0 && to % 2 == 0 &&
                                    mpiox_typemap_offset(typemap, from) % 2 == 0
                                ? 2
                                : 1;
    while (from < to) {
        int64_t end = to;
        const int64_t bytes = mpiox_typemap_runs_measure(typemap, from, &end, granule, most);
        REQUIRE(bytes > 0 && bytes <= most && end > from && end <= to);
        char *text = malloc((size_t)bytes); /* exactly: the sanitizer sees one too many */
        REQUIRE(text != NULL);
        mpiox_typemap_runs_write(typemap, from, end, granule, text);
        bytes_of_runs b = {.open = false};
        mpiox_typemap_runs_begin(&b.runs, text, bytes, granule, mpiox_typemap_offset(typemap, from));
        for (int64_t position = from; position < end; position++)
            REQUIRE(next_byte(&b) == mpiox_typemap_offset(typemap, position));
        REQUIRE(next_byte(&b) == -1);
        free(text);
        from = end;
    }
}

static void check_at_zero(const mpiox_typemap *typemap)
{
    int64_t shift = 0;
    mpiox_typemap *moved = NULL;
    REQUIRE(mpiox_typemap_at_zero(typemap, &shift, &moved) == MPIOX_OK);
    const int64_t size = mpiox_typemap_size(typemap);
    REQUIRE(mpiox_typemap_size(moved) == size && mpiox_typemap_extent(moved) == mpiox_typemap_extent(typemap));
    REQUIRE(mpiox_typemap_lb(moved) == 0 && mpiox_typemap_is_monotonic(moved) == mpiox_typemap_is_monotonic(typemap));
    for (int64_t position = 0; position < 2 * size; position += 1 + position / 8)
        REQUIRE(mpiox_typemap_offset(moved, position) + shift == mpiox_typemap_offset(typemap, position));
    REQUIRE(size == 0 || mpiox_typemap_offset(moved, 0) == 0);
    mpiox_typemap_free(moved);
}

/* Pieces of a few grids one after the other, each again and again with now and then one that is left out. */
static void check_grids(choices *c)
{
    enum { PIECES_MAX = 6000, GRID_MAX = 1500 };
    static int64_t counts[PIECES_MAX], displacements[PIECES_MAX];
    static piece grid[GRID_MAX];
    int64_t n = 0, base = 0, size = 0;
    for (int grids = (int)choose(c, 1, 3); grids > 0; grids--) {
        const int64_t pieces = choose(c, 1, 250) * (choose(c, 0, 3) ? 1 : 6), odd = choose(c, 0, 250);
        int64_t extent = choose(c, 0, 3);
        for (int64_t i = 0; i < pieces; i++) {
            grid[i] = (piece){extent, 1 + (choose(c, 0, 250) ^ i) % 5};
            extent += grid[i].length + 1 + i % (1 + odd % 7);
        }
        for (int64_t level = choose(c, 1, 40); level > 0; level--, base += extent)
            for (int64_t i = 0; i < pieces && n < PIECES_MAX; i++)
                if (odd < 150 || (n + odd) % 97) {
                    displacements[n] = base + grid[i].offset;
                    counts[n] = grid[i].length;
                    size += counts[n++];
                }
    }
    mpiox_typemap *byte = NULL, *list = NULL;
    REQUIRE(mpiox_typemap_block(1, &byte) == MPIOX_OK);
    REQUIRE(mpiox_typemap_indexed(n, counts, displacements, byte, &list) == MPIOX_OK);
    const int64_t from = choose(c, 0, 250) * size / 1000;
    check_part(list, from, size, choose(c, 0, 1) ? 64 : 1 << 20);
    mpiox_typemap_free(list);
    mpiox_typemap_free(byte);
}

/* 40 levels of 200 pieces of odd lengths: hardly more than one level. */
static void check_levels(void)
{
    enum { PIECES = 200, LEVELS = 40 };
    int64_t counts[PIECES * LEVELS], displacements[PIECES * LEVELS], at = 0, end;
    mpiox_typemap *byte = NULL, *list = NULL;
    for (int i = 0; i < PIECES * LEVELS; i++) {
        counts[i] = 1 + i % PIECES * 7 % 11;
        displacements[i] = at;
        at += counts[i] + 1 + i % PIECES * 5 % 13;
    }
    REQUIRE(mpiox_typemap_block(1, &byte) == MPIOX_OK);
    REQUIRE(mpiox_typemap_indexed(PIECES * LEVELS, counts, displacements, byte, &list) == MPIOX_OK);
    end = mpiox_typemap_size(list);
    REQUIRE(mpiox_typemap_runs_measure(list, 0, &end, 1, 1 << 20) < 3 * PIECES && end == mpiox_typemap_size(list));
    mpiox_typemap_free(list);
    mpiox_typemap_free(byte);
}

/* Whatever the bytes are: runs that ascend, of pieces that lie apart, or none. */
static void read_any(const uint8_t *data, size_t bytes, int64_t granule)
{
    mpiox_typemap_runs runs;
    mpiox_run run;
    int64_t end = 0;
    mpiox_typemap_runs_begin(&runs, (const char *)data, (int64_t)bytes, granule, 0);
    for (int n = 0; n < 10000 && mpiox_typemap_runs_next(&runs, &run); n++) {
        REQUIRE(run.offset >= end && run.length > 0 && run.count > 0);
        REQUIRE(run.count == 1 || run.stride >= run.length);
        end = run.offset + (run.count - 1) * run.stride + run.length;
        REQUIRE(end > run.offset && end == runs.offset);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    choices c = {data, bytes};
    pair *p = random_pair(&c, 4);
    const int64_t size = mpiox_typemap_size(p->typemap);
    check_at_zero(p->typemap);
    if (mpiox_typemap_is_monotonic(p->typemap) && size > 0) {
        const int64_t from = choose(&c, 0, 250) % size, most = choose(&c, 0, 1) ? 64 : 4096;
        check_part(p->typemap, from, from + 1 + choose(&c, 0, 250) * choose(&c, 1, 9) % (2 * size), most);
        check_part(p->typemap, 0, 2 * size, most);
    }
    pair_free(p);
    check_grids(&c);
    check_levels();
    read_any(data, bytes, 1);
    read_any(data, bytes, INT64_C(1) << 40);
    return 0;
}

#include "fuzz_main.h"
