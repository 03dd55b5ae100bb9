/*
 * fuzz_blob.c - libFuzzer harness of mpiox_access_from_blob(): any bytes are refused, or give a description whose every
 * operation is safe.
 *
 * The input is the blob, in which the magic and the length are put right so that the fuzzer gets past them. Half of the
 * inputs instead describe a random tree (random_trees.h) whose blob is then corrupted in a few words.
 */
#include "mpiox_access_impl.h"
#include "mpiox_copy.h"
#include "random_trees.h"

#define MAX_STEPS 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Addresses are only computed here: a description may reach anywhere. */
static void use(const mpiox_access *access)
{
    mpiox_cursor cursor;
    mpiox_run run;
    const int64_t size = mpiox_access_size(access);
    const int64_t positions[] = {0, size / 2, size > 0 ? size - 1 : 0, size + 1, INT64_MAX / 2};
    REQUIRE(mpiox_access_depth(access) <= MPIOX_ACCESS_MAX_DEPTH && size >= 0);
    for (size_t i = 0; i < sizeof positions / sizeof positions[0] && size > 0; i++) {
        const int64_t offset = mpiox_access_offset(access, positions[i]);
        if (mpiox_access_is_monotonic(access) && positions[i] < 2 * (size / 2 + 1)) {
            REQUIRE(mpiox_access_position(access, offset) == positions[i]);
        }
        mpiox_cursor_init(&cursor, access, 0, positions[i]);
        for (int step = 0; step < MAX_STEPS; step++) {
            const int64_t got = mpiox_cursor_next(&cursor, step % 3 == 0 ? 7 : INT64_MAX / 4, &run);
            REQUIRE(got > 0 && got == run.length * run.count);
        }
    }
    if (mpiox_access_is_monotonic(access)) {
        mpiox_access_position(access, INT64_MAX);
        mpiox_access_position(access, INT64_MIN);
        mpiox_access_disjoint(access, 0, access, 8);
        const mpiox_range part = {access, 0, 0, size}, rest = {access, INT64_C(1) << 50, size / 2, size};
        mpiox_access_disjoint_ranges(&part, &rest);
    }
    mpiox_access *wider = NULL;
    if (mpiox_access_vector(3, mpiox_access_extent(access), access, &wider) == MPIOX_OK) {
        REQUIRE(mpiox_access_size(wider) == 3 * size);
    }
    mpiox_access_free(wider);
}

static void try_blob(void *blob, int64_t bytes)
{
    mpiox_access *access = NULL, *again = NULL;
    if (mpiox_access_from_blob(blob, bytes, &access) != MPIOX_OK) {
        REQUIRE(access == NULL);
        return;
    }
    use(access);
    REQUIRE(mpiox_access_to_blob(access, blob, bytes) == MPIOX_OK);
    REQUIRE(mpiox_access_from_blob(blob, bytes, &again) == MPIOX_OK && mpiox_access_equal(access, again));
    mpiox_access_free(access);
    mpiox_access_free(again);
}

static void corrupt_tree(choices *c)
{
    static const int64_t values[] = {0, -1, 1, 2, INT64_MAX, INT64_MIN, INT32_MAX, INT64_C(1) << 61, 24, 1000};
    pair *p = random_pair(c, 4);
    const int64_t bytes = mpiox_access_blob_bytes(p->access);
    int64_t *blob = malloc((size_t)bytes);
    REQUIRE(blob != NULL && mpiox_access_to_blob(p->access, blob, bytes) == MPIOX_OK);
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
    if (blob_bytes >= (int64_t)sizeof(mpiox_access)) {
        blob[0] = MPIOX_ACCESS_MAGIC;
        blob[1] = blob_bytes;
        blob[2] = 0;
    }
    try_blob(blob, blob_bytes);
    free(blob);
    return 0;
}

#include "fuzz_main.h"
