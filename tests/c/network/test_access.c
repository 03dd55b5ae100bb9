/*
 * test_access.c - random accesses through links to one or several delegates, against an array of bytes.
 *
 *   test_access [cases [seed]]
 *
 * A case has random views (contiguous, strided, irregular, one of them too long to be remembered), memory that is
 * contiguous or not, interleaved owners, a cache that may be too small, write-behind or not.
 */
#include <inttypes.h>

#include "links.h"

enum { PAGE = 4096, MODEL_BYTES = 3 << 18, MAX_DELEGATES = 3, VIEWS = 12, STEPS = 60 };

typedef struct view {
    mpiox_typemap *typemap; /* NULL: contiguous */
    int64_t origin;
} view;

static uint64_t state;
static unsigned char model[MODEL_BYTES];

static int64_t pick(int64_t low, int64_t high)
{
    return mock_pick(&state, low, high);
}

static mpiox_typemap *vector(int64_t count, int64_t length, int64_t stride)
{
    mpiox_typemap *block = NULL, *rows = NULL, *whole = NULL;
    if (mpiox_typemap_block(length, &block) != MPIOX_OK ||
        mpiox_typemap_vector(count, stride, block, &rows) != MPIOX_OK ||
        mpiox_typemap_resized(0, count * stride, rows, &whole) != MPIOX_OK)
        abort();
    mpiox_typemap_free(block);
    mpiox_typemap_free(rows);
    return whole;
}

static mpiox_typemap *irregular(int64_t n, int64_t max_length, int64_t max_gap)
{
    mpiox_typemap *byte = NULL, *list = NULL, *whole = NULL;
    int64_t *lengths = malloc((size_t)n * sizeof *lengths), *at = malloc((size_t)n * sizeof *at), end = 0;
    if (lengths == NULL || at == NULL)
        abort();
    for (int64_t i = 0; i < n; i++) {
        at[i] = end + pick(0, max_gap);
        lengths[i] = pick(1, max_length);
        end = at[i] + lengths[i];
    }
    if (mpiox_typemap_block(1, &byte) != MPIOX_OK || mpiox_typemap_indexed(n, lengths, at, byte, &list) != MPIOX_OK ||
        mpiox_typemap_resized(0, end + pick(0, 3), list, &whole) != MPIOX_OK)
        abort();
    mpiox_typemap_free(byte);
    mpiox_typemap_free(list);
    free(lengths);
    free(at);
    return whole;
}

static view random_view(void)
{
    view v = {.origin = pick(0, 3) == 0 ? 0 : pick(0, 5000)};
    const int64_t length = pick(1, 3) == 1 ? pick(1, 9000) : pick(1, 64);
    switch (pick(0, 4)) {
    case 0:
        break;
    case 1:
    case 2:
        v.typemap = vector(pick(1, 50), length, length + pick(0, 3) * pick(0, length));
        break;
    case 3:
        v.typemap = irregular(pick(1, 40), 300, 400);
        break;
    default:
        v.typemap = irregular(9000, 20, 60); /* its description has some 140 KiB */
    }
    return v;
}

static int64_t offset_of(const view *v, int64_t position)
{
    return v->origin + (v->typemap != NULL ? mpiox_typemap_offset(v->typemap, position) : position);
}

/* How many stream bytes lie in the model. */
static int64_t stream_bytes(const view *v)
{
    const int64_t room = MODEL_BYTES - v->origin;
    return v->typemap != NULL ? mpiox_typemap_position(v->typemap, room) : room;
}

typedef struct world {
    station stations[MAX_DELEGATES];
    int delegates;
    int64_t unit_bytes;
    view views[VIEWS];
} world;

static void build(world *w)
{
    w->delegates = (int)pick(1, MAX_DELEGATES);
    const int64_t unit_pages = pick(1, 3), frames = pick(0, 2) == 0 ? 3 : 300;
    w->unit_bytes = unit_pages * PAGE;
    for (int64_t i = 0; i < MODEL_BYTES; i++)
        model[i] = (unsigned char)mock_random(&state);
    for (int d = 0; d < w->delegates; d++) {
        station *s = &w->stations[d];
        station_start(s, PAGE, (int32_t)frames, d, w->delegates, unit_pages);
        if (pwrite(s->delegate.fd, model, MODEL_BYTES, 0) != MODEL_BYTES)
            abort();
        if (pick(0, 1) == 0)
            CHECK_EQUAL(mpiox_link_set_write_behind(s->link, pick(0, 1) == 0 ? 4096 : 100000), MPIOX_OK);
    }
    for (int i = 0; i < VIEWS; i++)
        w->views[i] = random_view();
}

static void destroy(world *w)
{
    for (int d = 0; d < w->delegates; d++) {
        CHECK_EQUAL(mpiox_link_drain(w->stations[d].link, NULL), MPIOX_OK);
        station_stop(&w->stations[d]);
    }
    for (int i = 0; i < VIEWS; i++)
        mpiox_typemap_free(w->views[i].typemap);
}

/* One access of all delegates; what is read is compared, what is written is in the model afterwards. */
static void step(world *w)
{
    const view *v = &w->views[pick(0, VIEWS - 1)];
    const int64_t all = stream_bytes(v), length = pick(1, pick(0, 3) == 0 ? all : (all < 3000 ? all : 3000)),
                  position = pick(0, all - length);
    const bool write = pick(0, 1) == 1, strided = pick(0, 1) == 1;
    mpiox_typemap *memory_type = strided ? vector(pick(1, 9), pick(1, 40), 41) : NULL;
    const int64_t memory_bytes = strided ? mpiox_typemap_offset(memory_type, length - 1) + 1 : length;
    unsigned char *memory = malloc((size_t)memory_bytes), *before = malloc((size_t)memory_bytes);
    if (memory == NULL || before == NULL)
        abort();
    for (int64_t i = 0; i < memory_bytes; i++)
        before[i] = memory[i] = (unsigned char)mock_random(&state);
    const mpiox_memory_layout side = {.base = memory, .typemap = memory_type};
    for (int d = 0; d < w->delegates; d++) {
        mpiox_link_access access = access_of(&w->stations[d], w->delegates, w->unit_bytes);
        mpiox_error error;
        access.write = write;
        access.at_once = pick(0, 7) == 0;
        access.view = v->typemap;
        access.origin = v->origin;
        access.position = position;
        access.length = length;
        access.memory = side;
        CHECK_EQUAL(mpiox_link_access_pages(w->stations[d].link, &access, &error), MPIOX_OK);
    }
    int64_t wrong = 0;
    for (int64_t k = 0; k < length; k++) {
        const int64_t at = strided ? mpiox_typemap_offset(memory_type, k) : k;
        unsigned char *cell = &model[offset_of(v, position + k)];
        if (write)
            *cell = memory[at];
        wrong += memory[at] != *cell;
        before[at] = memory[at]; /* what lies between was not touched: */
    }
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(memcmp(before, memory, (size_t)memory_bytes), 0);
    mpiox_typemap_free(memory_type);
    free(memory);
    free(before);
}

/* The whole file, contiguous. */
static void compare(world *w)
{
    unsigned char *found = calloc(1, MODEL_BYTES);
    for (int d = 0; d < w->delegates && found != NULL; d++) {
        mpiox_link_access access = access_of(&w->stations[d], w->delegates, w->unit_bytes);
        access.length = MODEL_BYTES;
        access.memory.base = found;
        CHECK_EQUAL(mpiox_link_access_pages(w->stations[d].link, &access, NULL), MPIOX_OK);
    }
    CHECK(found != NULL && memcmp(found, model, MODEL_BYTES) == 0);
    free(found);
}

int main(int argc, char **argv)
{
    const int64_t cases = argc > 1 ? atoll(argv[1]) : 20;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (int64_t i = 0; i < cases; i++) {
        static world w;
        const int before = check_failures;
        state = (seed + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        memset(&w, 0, sizeof w);
        build(&w);
        for (int k = 0; k < STEPS; k++)
            step(&w);
        compare(&w);
        destroy(&w);
        if (check_failures != before)
            fprintf(stderr, "case seed %" PRIu64 "\n", seed + (uint64_t)i);
    }
    return check_exit();
}
