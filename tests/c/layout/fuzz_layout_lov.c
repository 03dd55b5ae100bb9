/*
 * fuzz_layout_lov.c - libFuzzer harness of the Lustre layout parser.
 *
 *   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Icsrc/common -Icsrc/layout \
 *       tests/c/layout/fuzz_layout_lov.c csrc/layout/mpiox_layout_lov.c -o fuzz && ./fuzz CORPUS
 *
 * The input is copied to a block of exactly its size, so that the first byte read beyond it is found. What the parser
 * accepts must be usable as a geometry; what it refuses must leave the outputs alone.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_layout.h"

enum { MOST = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t stripe_size = -123;
    int32_t servers = -45;
    void *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    int rc = mpiox_layout_parse_lov(copy, (int64_t)size, &stripe_size, &servers);
    int32_t targets[MOST] = {0};
    const int32_t count = mpiox_layout_lov_targets(copy, (int64_t)size, MOST, targets);
    free(copy);
    if (count != 0 && (rc != MPIOX_OK || count != servers || count > MOST))
        abort();
    for (int32_t i = 0; i < count; i++) {
        if (targets[i] < 0 || targets[i] > UINT16_MAX)
            abort();
    }
    if (rc == MPIOX_OK) {
        if (stripe_size < 1 || stripe_size > UINT32_MAX || servers < 1 || servers >= UINT16_MAX)
            abort();
    } else if (rc != MPIOX_E_CORRUPT || stripe_size != -123 || servers != -45) {
        abort();
    }
    return 0;
}
