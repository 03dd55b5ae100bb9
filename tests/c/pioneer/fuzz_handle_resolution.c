/*
 * fuzz_handle_resolution.c - handle resolution on rows of any kind: PROGRAM CASES SEED; with -DFUZZ for libFuzzer.
 *
 * Each row is made of 8 bytes and, where one of them says so, of a text from the input as `extra`. Whatever comes, each
 * row leaves once, with a mask that there is, a parent where the mask has one, and the same in pieces as at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_handle_resolution.h"

enum { ROWS_MAX = 256, ROW_BYTES = 8, FILES = 6, TEXT_MAX = 96 };

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct table {
    int64_t count;
    uint8_t step[ROWS_MAX], layer[ROWS_MAX], mask[ROWS_MAX];
    int16_t depth[ROWS_MAX];
    int32_t file[ROWS_MAX], thread[ROWS_MAX], named[ROWS_MAX], extra_at[ROWS_MAX + 1];
    int64_t line[ROWS_MAX], start[ROWS_MAX], duration[ROWS_MAX], handle[ROWS_MAX], result[ROWS_MAX], offset[ROWS_MAX];
    int64_t moved[ROWS_MAX], place[ROWS_MAX], parent[ROWS_MAX], session[ROWS_MAX];
    char extra[ROWS_MAX * TEXT_MAX];
} table;

static const uint8_t is_system[FILES] = {0, 0, 1, 0, 0, 0};

static int64_t small(uint8_t byte)
{
    static const int64_t special[] = {MPIOX_UNKNOWN, INT64_MAX, -1, INT64_MIN + 1};
    return byte >= 252 ? special[byte - 252] : byte % 24;
}

static void put_extra(table *t, int64_t i, uint8_t what, const uint8_t *data, size_t size)
{
    static const char *const texts[] = {"",
                                        "{\"handle_address\":\"0x10\"}",
                                        "{\"handle_address\":32}",
                                        "{\"request\":\"[ 0x5 ]\"}",
                                        "{\"requests\":\"[ 5, 6, 7 ]\",\"flag\":\"[ 0 ]\"}",
                                        "{\"flags\":\"O_APPEND\",\"whence\":\"SEEK_END\"}",
                                        "{\"etype_size\":8,\"object\":\"pipe:[7]\"}"};
    char *at = t->extra + t->extra_at[i];
    size_t bytes = size < TEXT_MAX ? size : TEXT_MAX;

    if (what % 8 < 7) {
        bytes = strlen(texts[what % 8]);
        memcpy(at, texts[what % 8], bytes);
    } else {
        memcpy(at, data, bytes);
    }
    t->extra_at[i + 1] = t->extra_at[i] + (int32_t)bytes;
}

static void make(table *t, const uint8_t *data, size_t size)
{
    for (t->count = 0; t->count < ROWS_MAX && size >= ROW_BYTES; data += ROW_BYTES, size -= ROW_BYTES, t->count++) {
        const int64_t i = t->count;
        t->step[i] = data[0] % (MPIOX_STEP_OTHER + 1);
        t->layer[i] = (data[0] >> 4) % (MPIOX_TRACE_OTHER + 1);
        t->depth[i] = (int16_t)(data[1] % 4 - 1);
        t->thread[i] = data[1] == 255 ? INT32_MAX : data[1] >> 6;
        t->file[i] = data[2] % (FILES + 1) - 1;
        t->line[i] = i + 1;
        t->start[i] = 10 * i;
        t->duration[i] = small(data[3]);
        t->handle[i] = small(data[4]);
        t->result[i] = small(data[5]);
        t->offset[i] = t->moved[i] = small(data[6]);
        put_extra(t, i, data[7], data, size);
    }
}

static mpiox_rows view(table *t, int64_t from, int64_t to, int final)
{
    return (mpiox_rows){.count = to - from,
                        .step = t->step + from,
                        .layer = t->layer + from,
                        .depth = t->depth + from,
                        .file = t->file + from,
                        .thread = t->thread + from,
                        .line = t->line + from,
                        .start = t->start + from,
                        .duration = t->duration + from,
                        .handle = t->handle + from,
                        .result = t->result + from,
                        .offset = t->offset + from,
                        .moved = t->moved + from,
                        .extra = t->extra,
                        .extra_at = t->extra_at + from,
                        .is_system = is_system,
                        .final = final,
                        .named = t->named + from,
                        .place = t->place + from,
                        .mask = t->mask + from,
                        .parent = t->parent + from,
                        .session = t->session + from};
}

static void feed(table *t, int64_t piece)
{
    mpiox_handle_resolver *s = mpiox_handle_resolver_new();
    int64_t from = 0;

    REQUIRE(s != NULL);
    for (int64_t to = piece; from < t->count; to += piece) {
        const int64_t end = to < t->count ? to : t->count;
        const mpiox_rows rows = view(t, from, end, end == t->count);
        const int64_t taken = mpiox_handle_resolver_feed(s, &rows);
        REQUIRE(taken >= 0 && taken <= rows.count && (taken == rows.count || !rows.final));
        from += taken;
    }
    mpiox_handle_resolver_free(s);
}

static void check(const table *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        const int has_parent = t->mask[i] == MPIOX_MASK_INSIDE || t->mask[i] == MPIOX_MASK_OWNED;
        REQUIRE(t->mask[i] <= MPIOX_MASK_NO_IO && t->named[i] >= -1 && t->named[i] < FILES);
        REQUIRE(has_parent || t->parent[i] == MPIOX_UNKNOWN);
        REQUIRE(t->session[i] == MPIOX_UNKNOWN || (t->session[i] >= 0 && t->session[i] < t->count));
        REQUIRE(t->parent[i] == MPIOX_UNKNOWN || (t->parent[i] >= 1 && t->parent[i] <= t->count));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static table whole, pieces;

    memset(&whole, 0, sizeof whole);
    make(&whole, data, size);
    pieces = whole;
    feed(&whole, ROWS_MAX);
    check(&whole);
    feed(&pieces, size > 0 ? 1 + data[0] % 9 : 1);
    REQUIRE(memcmp(whole.named, pieces.named, sizeof whole.named) == 0);
    REQUIRE(memcmp(whole.place, pieces.place, sizeof whole.place) == 0);
    REQUIRE(memcmp(whole.mask, pieces.mask, sizeof whole.mask) == 0);
    REQUIRE(memcmp(whole.parent, pieces.parent, sizeof whole.parent) == 0);
    REQUIRE(memcmp(whole.session, pieces.session, sizeof whole.session) == 0);
    return 0;
}

#ifndef FUZZ
int main(int argc, char **argv)
{
    const long cases = argc > 1 ? atol(argv[1]) : 1000;

    srand(argc > 2 ? (unsigned)atol(argv[2]) : 1);
    for (long k = 0; k < cases; k++) {
        uint8_t data[ROWS_MAX * ROW_BYTES];
        const size_t size = (size_t)rand() % sizeof data;
        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)rand();
        (void)LLVMFuzzerTestOneInput(data, size);
    }
    printf("%ld cases passed\n", cases);
    return 0;
}
#endif
