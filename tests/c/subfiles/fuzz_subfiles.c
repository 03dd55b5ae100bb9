/*
 * fuzz_subfiles.c - libFuzzer harness of the index of a file of subfiles.
 *
 *   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Icsrc/core/common -Icsrc/core/subfiles \
 *       tests/c/subfiles/fuzz_subfiles.c csrc/core/subfiles/mpiox_subfiles_index.c -o fuzz
 *   ./fuzz CORPUS
 *
 * What is accepted is written again as a text that says the same; what is refused says why, and holds nothing. Each
 * input is also tried with a checksum that fits, which no fuzzer would find.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_subfiles_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static char *copy_of(const uint8_t *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    require(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

static void same(const mpiox_subfiles *a, const mpiox_subfiles *b)
{
    require(a->unit == b->unit && a->size == b->size && a->id == b->id && a->count == b->count);
    require(a->writers == b->writers);
    for (int32_t i = 0; i < a->count; i++)
        require(strcmp(a->names[i], b->names[i]) == 0);
}

static void try_text(char *text, size_t size)
{
    mpiox_subfiles first, second;
    const char *why = NULL;
    if (mpiox_subfiles_parse(text, (int64_t)size, &first, &why) != MPIOX_OK) {
        require(why != NULL && why[0] != '\0' && first.names == NULL && first.text == NULL);
        return;
    }
    require(first.unit > 0 && first.count > 0 && first.count <= MPIOX_SUBFILES_MOST && first.size >= -1);
    char *again = mpiox_subfiles_format(&first, "any\n%name");
    require(again != NULL);
    require(mpiox_subfiles_parse(again, (int64_t)strlen(again), &second, &why) == MPIOX_OK);
    same(&first, &second);
    mpiox_subfiles_free(&first);
    mpiox_subfiles_free(&second);
}

static uint32_t crc32_of(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char last[32];
    try_text(copy_of(data, size), size);
    const size_t more = (size_t)snprintf(last, sizeof last, "checksum %08x\n", (unsigned)crc32_of(data, size));
    char *sealed = malloc(size + more);
    require(sealed != NULL);
    if (size > 0)
        memcpy(sealed, data, size);
    memcpy(sealed + size, last, more);
    try_text(sealed, size + more);
    return 0;
}
