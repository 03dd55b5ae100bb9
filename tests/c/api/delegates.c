/*
 * delegates.c - memory as a delegate has it, for what looks into it.
 *
 *   delegates fuzz CASES SEED FILE   whole, damaged, cut off, foreign memory: it is refused or read, and never a crash
 *   delegates pretend [file]         makes the memory of a delegate and changes it as lines of standard input say:
 *                                      group NAME MODE INDEX COUNT; count NAME VALUE; flush POWER VALUE; beat; state N;
 *                                      open INDEX OPENERS PATH; collectives INDEX VALUE; frame INDEX FILE DIRTY;
 *                                      cut BYTES; spoil
 *                                    "ok" after each, and "ready" with the path of the memory at first
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "mpiio_ext.h"
#include "mpiox_cache.h"
#include "mpiox_segment.h"

enum { ROOM = 1 << 20, LINE = 2048 };

static const mpiox_cache_geometry wanted = {.page_bytes = 65536, .cap_bytes = 8 << 20, .slots = 4};
static const int states[] = {MPIOX_CACHE_STARTING, MPIOX_CACHE_SERVING, MPIOX_CACHE_ENDED, MPIOX_CACHE_DEAD,
                             MPIOX_CACHE_RESCUED};

static mpiox_cache format(void *base)
{
    mpiox_cache_geometry geometry = wanted;
    mpiox_cache cache;
    if (mpiox_cache_plan(&geometry) != MPIOX_OK || mpiox_cache_format(base, &geometry, 1, 2, &cache) != MPIOX_OK) {
        fprintf(stderr, "cannot format\n");
        exit(1);
    }
    return cache;
}

/* ---- fuzz -------------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const void *bytes, int64_t length)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, (size_t)length, file) != (size_t)length || fclose(file) != 0)
        exit(1);
}

/* Open and read what lies in the file; returns the result of opening. */
static int look(const char *path)
{
    static char text[ROOM];
    mpiio_ext_delegates *delegates;
    const int code = mpiio_ext_delegates_open(path, &delegates);
    CHECK(code == MPIOX_OK || code == MPIOX_E_CORRUPT || code == MPIOX_E_IO || code == MPIOX_E_NOMEM);
    CHECK((code == MPIOX_OK) == (delegates != NULL));
    if (code != MPIOX_OK)
        return code;
    const int64_t needed = mpiio_ext_delegates_snapshot(delegates, NULL, 0);
    CHECK(needed > 0 && needed < ROOM);
    CHECK_EQUAL(mpiio_ext_delegates_snapshot(delegates, text, ROOM), needed);
    CHECK_EQUAL(strlen(text), needed);
    CHECK(text[0] == '{' && text[needed - 1] == '}');
    char small[16];
    memset(small, 1, sizeof small);
    CHECK_EQUAL(mpiio_ext_delegates_snapshot(delegates, small, sizeof small), needed);
    CHECK_EQUAL(strlen(small), sizeof small - 1);
    mpiio_ext_delegates_close(delegates);
    return code;
}

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

/* Numbers that bounds are likely to be wrong for. */
static int64_t draw_number(void)
{
    static const int64_t edges[] = {0, 1, -1, INT32_MAX, INT64_MAX, INT64_MIN, 4096, 1 << 20, INT64_C(1) << 40};
    return draw(2) ? edges[draw(sizeof edges / sizeof edges[0])] : (int64_t)draw(UINT64_MAX);
}

static void damage(char *copy, int64_t whole, int64_t *length)
{
    mpiox_cache_header *header = (mpiox_cache_header *)(void *)copy;
    switch (draw(5)) {
    case 0: /* some bytes anywhere in the header */
        for (int i = 0; i < 20; i++)
            copy[draw(sizeof *header)] = (char)draw(256);
        break;
    case 1: /* the numbers by which everything is found */
        ((int64_t *)(void *)copy)[2 + draw(16)] = draw_number();
        break;
    case 2: /* the end is missing, or there is more behind it */
        *length = draw(2) ? (int64_t)draw((uint64_t)whole) : (int64_t)draw(sizeof *header + 64);
        break;
    case 3: /* names and files without an end */
        memset(header->service, (int)draw(256), sizeof header->service + sizeof header->mode);
        memset(header->host, 0xC3, sizeof header->host);
        for (int i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
            atomic_store(&header->files[i].openers, (int32_t)draw(UINT32_MAX));
            memset(header->files[i].path, (int)draw(256), sizeof header->files[i].path);
        }
        break;
    default: /* all but the magic number, or all of it, is foreign */
        for (int64_t i = draw(2) ? 16 : 0; i < (int64_t)sizeof *header; i++)
            copy[i] = (char)draw(256);
    }
}

static int fuzz(int cases, uint64_t seed, const char *path)
{
    const int64_t whole = wanted.cap_bytes;
    char *base = calloc(1, (size_t)whole), *copy = malloc((size_t)whole);
    int refused = 0;
    if (!base || !copy)
        return 1;
    const mpiox_cache cache = format(base);
    state = seed;
    write_file(path, base, whole);
    CHECK_EQUAL(look(path), MPIOX_OK);
    CHECK_EQUAL(look("/nowhere/at/all"), MPIOX_E_IO);
    CHECK_EQUAL(look("/dev/zero"), MPIOX_E_IO);
    CHECK_EQUAL(look("/"), MPIOX_E_IO);
    mpiox_cache_shard *shards = cache.header->shards;
    for (int i = 0; i < 2; i++) { /* numbers whose sums have no room */
        atomic_store(&shards[i].misses, INT64_MIN);
        atomic_store(&shards[i].prefetch_used, INT64_MAX);
        write_file(path, base, whole);
        CHECK_EQUAL(look(path), MPIOX_OK);
    }
    memset(shards, 0, 2 * sizeof *shards);
    for (int i = 0; i < cases; i++) {
        int64_t length = cache.header->total_bytes;
        memcpy(copy, base, (size_t)whole);
        damage(copy, length, &length);
        write_file(path, copy, length);
        refused += look(path) != MPIOX_OK;
    }
    CHECK(refused > cases / 4 && refused < cases);
    mpiio_ext_delegates_close(NULL);
    free(base);
    free(copy);
    return check_exit();
}

/* ---- pretend ----------------------------------------------------------------------------------------------------- */

static bool count(mpiox_cache_header *header, const char *name, long long value)
{
#define X(counter, unit, meaning)                                                                                      \
    if (strcmp(name, #counter) == 0) {                                                                                 \
        atomic_store(&header->counters.counter, value);                                                                \
        return true;                                                                                                   \
    }
    MPIOX_CACHE_COUNTERS(X)
#undef X
    return false;
}

static bool carry_out(const mpiox_cache *cache, const mpiox_segment *segment, const char *line)
{
    mpiox_cache_header *header = cache->header;
    char first[LINE], second[LINE];
    long long a, b;
    if (sscanf(line, "group %63s %15s %lld %lld", first, second, &a, &b) == 4) {
        snprintf(header->service, sizeof header->service, "%.63s", first);
        snprintf(header->mode, sizeof header->mode, "%.15s", second);
        header->delegate = (int32_t)a;
        header->delegates = (int32_t)b;
        return true;
    }
    if (sscanf(line, "count %s %lld", first, &a) == 2)
        return count(header, first, a);
    if (sscanf(line, "flush %lld %lld", &a, &b) == 2 && a >= 0 && a < 48)
        return atomic_store(&header->counters.flush_size_log2[a], b), true;
    if (strcmp(line, "beat\n") == 0)
        return atomic_fetch_add(&header->beat, 1), true;
    if (sscanf(line, "state %lld", &a) == 1 && a >= 0 && a < 5)
        return mpiox_futex_set(&header->state, (uint32_t)states[a]), true;
    if (sscanf(line, "open %lld %lld %[^\n]", &a, &b, first) == 3 && a >= 0 && a < MPIOX_CACHE_MAX_FILES) {
        snprintf(header->files[a].path, sizeof header->files[a].path, "%.1000s", first);
        atomic_store(&header->files[a].end, 12345);
        atomic_store(&header->files[a].flags, MPIOX_FILE_WRITABLE);
        return atomic_store(&header->files[a].openers, (int32_t)b), true;
    }
    if (sscanf(line, "collectives %lld %lld", &a, &b) == 2 && a >= 0 && a < MPIOX_CACHE_MAX_FILES)
        return atomic_store(&header->files[a].collectives, b), true;
    if (sscanf(line, "frame %lld %s %lld", &a, first, &b) == 3 && a >= 0 && a < cache->frame_count) {
        atomic_store(&cache->frames[a].dirty, b);
        return atomic_store(&cache->frames[a].file, atoi(first)), true;
    }
    if (sscanf(line, "cut %lld", &a) == 1)
        return ftruncate(segment->fd, a) == 0;
    if (strcmp(line, "spoil\n") == 0)
        return header->magic++, true;
    return false;
}

static int pretend(mpiox_segment_kind kind)
{
    mpiox_segment_address address;
    mpiox_segment segment;
    char line[LINE];
    if (mpiox_segment_create(kind, wanted.cap_bytes, &address, &segment, NULL) != MPIOX_OK)
        return 1;
    mpiox_segment_hide(&segment, &address);
    const mpiox_cache cache = format(segment.base);
    mpiox_futex_set(&cache.header->state, MPIOX_CACHE_SERVING);
    printf("ready /proc/%ld/fd/%d\n", (long)getpid(), segment.fd);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        puts(carry_out(&cache, &segment, line) ? "ok" : "what?");
        fflush(stdout);
    }
    mpiox_segment_seal(&segment, &address);
    mpiox_segment_free(&segment);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "fuzz") == 0)
        return fuzz(atoi(argv[2]), strtoull(argv[3], NULL, 10), argv[4]);
    if (argc >= 2 && strcmp(argv[1], "pretend") == 0)
        return pretend(argc > 2 ? MPIOX_SEGMENT_FILE : MPIOX_SEGMENT_MEMFD);
    fprintf(stderr, "usage: delegates fuzz CASES SEED FILE | pretend [file]\n");
    return 2;
}
