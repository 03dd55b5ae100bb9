/*
 * fuzz_layout_lustre.c - libFuzzer harness of the Lustre layout parser.
 *
 *   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Icsrc/core/common -Icsrc/core/layout \
 *       tests/c/layout/fuzz_layout_lustre.c csrc/core/layout/mpiox_layout_lustre.c -o fuzz && ./fuzz CORPUS
 *
 * The input is copied to a block of exactly its size, so that the first byte read beyond it is found. What the parser
 * accepts must be usable as a geometry; what it refuses must leave the outputs alone.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_layout.h"
#include "mpiox_layout_lustre.h"

enum { MOST = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every component is described or refused, and none reaches out of the value. */
static void try_components(const void *copy, int64_t size)
{
    const int32_t count = mpiox_lustre_count(copy, size);
    if (count > UINT16_MAX || (count <= 0 && count != MPIOX_E_CORRUPT))
        abort();
    for (int32_t i = 0; i < count; i++) {
        mpiox_lustre_component c;
        if (mpiox_lustre_get(copy, size, i, &c) != MPIOX_OK)
            continue;
        if (c.start < 0 || c.end < c.start || c.stripe_size < 0 || c.stripe_count < -1 || c.object_count < 0 ||
            (c.object_count != 0 && c.object_count != c.stripe_count) || strlen(c.pool) > 16)
            abort();
        const int32_t distinct = mpiox_lustre_distinct(&c);
        if (distinct < 0 || distinct > c.object_count)
            abort();
        for (int32_t k = -1; k <= c.object_count; k++) {
            if (mpiox_lustre_target(&c, k) > UINT16_MAX)
                abort();
        }
    }
    if (mpiox_lustre_mirrors(copy, size) < 1)
        abort();
}

/* Whatever the file's size, the choice is one that counts; a value's own length lies in its block. */
static void try_choices(const void *copy, int64_t size)
{
    static const int64_t sizes[] = {0, 1, 1 << 20, INT64_MAX};
    mpiox_lustre_component c;
    const int first = mpiox_lustre_choose(copy, size, 0, &c);
    for (int i = 0; i < 4; i++) {
        if (mpiox_lustre_choose(copy, size, sizes[i], &c) != first ||
            (first == MPIOX_OK && (c.stripe_size < 1 || c.stripe_count < 1 || c.first < -1)))
            abort();
    }
    const int64_t length = mpiox_lustre_length(copy, size, "file", size % 2 == 0);
    if (length > size || (length < 4 && length != MPIOX_E_CORRUPT))
        abort();
    if (length > 0 && mpiox_lustre_count(copy, length) != mpiox_lustre_count(copy, size))
        abort();
}

static void try_targets(const void *copy, int64_t size)
{
    mpiox_lustre_component c;
    const int rc = mpiox_lustre_choose(copy, size, 0, &c);
    if (rc != MPIOX_OK) {
        if (rc != MPIOX_E_CORRUPT)
            abort();
        return;
    }
    int32_t targets[MOST] = {0};
    const int32_t count = mpiox_lustre_targets(&c, MOST, targets);
    if (c.stripe_size > UINT32_MAX || c.stripe_count >= UINT16_MAX || (count != 0 && count != c.stripe_count) ||
        count > MOST)
        abort();
    for (int32_t i = 0; i < count; i++) {
        if (targets[i] < 0 || targets[i] > UINT16_MAX)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    try_components(copy, (int64_t)size);
    try_choices(copy, (int64_t)size);
    try_targets(copy, (int64_t)size);
    free(copy);
    return 0;
}
