/*
 * fuzz_blob.c - libFuzzer harness of mpiox_typemap_from_blob(): any bytes are refused, or give a typemap whose every
 * operation is safe.
 *
 * The input is the blob, in which the magic and the length are put right so that the fuzzer gets past them. Half of the
 * inputs instead describe a random tree (random_trees.h) whose blob is then corrupted in a few words.
 */
#include "mpiox_typemap_impl.h"
#include "mpiox_copy.h"
#include "random_trees.h"

#define MAX_STEPS 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Addresses are only computed here: a description may reach anywhere. */
static void use(const mpiox_typemap *typemap)
{
    mpiox_cursor cursor;
    mpiox_run run;
    const int64_t size = mpiox_typemap_size(typemap);
    const int64_t positions[] = {0, size / 2, size > 0 ? size - 1 : 0, size + 1, INT64_MAX / 2};
    REQUIRE(mpiox_typemap_depth(typemap) <= MPIOX_TYPEMAP_MAX_DEPTH && size >= 0);
    for (size_t i = 0; i < sizeof positions / sizeof positions[0] && size > 0; i++) {
        const int64_t offset = mpiox_typemap_offset(typemap, positions[i]);
        if (mpiox_typemap_is_monotonic(typemap) && positions[i] < 2 * (size / 2 + 1)) {
            REQUIRE(mpiox_typemap_position(typemap, offset) == positions[i]);
        }
        mpiox_cursor_init(&cursor, typemap, 0, positions[i]);
        for (int step = 0; step < MAX_STEPS; step++) {
            const int64_t got = mpiox_cursor_next(&cursor, step % 3 == 0 ? 7 : INT64_MAX / 4, &run);
            REQUIRE(got > 0 && got == run.length * run.count);
        }
    }
    if (mpiox_typemap_is_monotonic(typemap)) {
        mpiox_typemap_position(typemap, INT64_MAX);
        mpiox_typemap_position(typemap, INT64_MIN);
        mpiox_typemap_disjoint(typemap, 0, typemap, 8);
        const mpiox_range part = {typemap, 0, 0, size}, rest = {typemap, INT64_C(1) << 50, size / 2, size};
        mpiox_typemap_disjoint_ranges(&part, &rest);
    }
    mpiox_typemap *wider = NULL;
    if (mpiox_typemap_vector(3, mpiox_typemap_extent(typemap), typemap, &wider) == MPIOX_OK) {
        REQUIRE(mpiox_typemap_size(wider) == 3 * size);
    }
    mpiox_typemap_free(wider);
}

static void try_blob(void *blob, int64_t bytes)
{
    mpiox_typemap *typemap = NULL, *again = NULL;
    if (mpiox_typemap_from_blob(blob, bytes, &typemap) != MPIOX_OK) {
        REQUIRE(typemap == NULL);
        return;
    }
    use(typemap);
    REQUIRE(mpiox_typemap_to_blob(typemap, blob, bytes) == MPIOX_OK);
    REQUIRE(mpiox_typemap_from_blob(blob, bytes, &again) == MPIOX_OK && mpiox_typemap_equal(typemap, again));
    mpiox_typemap_free(typemap);
    mpiox_typemap_free(again);
}

static void corrupt_tree(choices *c)
{
    static const int64_t values[] = {0, -1, 1, 2, INT64_MAX, INT64_MIN, INT32_MAX, INT64_C(1) << 61, 24, 1000};
    pair *p = random_pair(c, 4);
    const int64_t bytes = mpiox_typemap_blob_bytes(p->typemap);
    int64_t *blob = malloc((size_t)bytes);
    REQUIRE(blob != NULL && mpiox_typemap_to_blob(p->typemap, blob, bytes) == MPIOX_OK);
    for (int64_t n = choose(c, 0, 3); n > 0; n--) {
        int64_t *word = blob + (choose(c, 0, 250) * 3 + choose(c, 0, 2)) % (bytes / 8);
        const int64_t near = (int64_t)((uint64_t)*word + (uint64_t)choose(c, 0, 16) - 8);
        *word = choose(c, 0, 1) == 0 ? values[choose(c, 0, 9)] : near;
    }
    try_blob(blob, bytes);
    free(blob);
    pair_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    choices c = {data, bytes};
    if (choose(&c, 0, 1) == 0) {
        corrupt_tree(&c);
        return 0;
    }
    const int64_t blob_bytes = (int64_t)(c.left / 8 * 8);
    int64_t *blob = malloc((size_t)blob_bytes + 8);
    REQUIRE(blob != NULL);
    memcpy(blob, c.data, (size_t)blob_bytes);
    if (blob_bytes >= (int64_t)sizeof(mpiox_typemap)) {
        blob[0] = MPIOX_TYPEMAP_MAGIC;
        blob[1] = blob_bytes;
        blob[2] = 0;
    }
    try_blob(blob, blob_bytes);
    free(blob);
    return 0;
}

#include "fuzz_main.h"
