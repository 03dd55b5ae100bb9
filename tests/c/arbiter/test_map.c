/*
 * test_map.c - the arbiter's map is taken whole or not at all.
 *
 *   test_map FILE JOB: prints generation and I/O nodes of the job; then every prefix and every changed byte of the file
 *   must be refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_error.h"
#include "mpiox_map.h"

static char *load(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 20);
    *bytes = file != NULL && text != NULL ? fread(text, 1, 1 << 20, file) : 0;
    if (file != NULL)
        fclose(file);
    return text;
}

/* Exactly as large as it is, so that a read beyond it is seen. */
static int parse(const char *text, size_t bytes, const char *job)
{
    char *copy = malloc(bytes > 0 ? bytes : 1);
    const char *reason = NULL;
    mpiox_map map;
    memcpy(copy, text, bytes);
    const int code = mpiox_map_parse(copy, bytes, job, &map, &reason);
    CHECK((code == MPIOX_OK) == (reason == NULL));
    free(copy);
    return code;
}

int main(int argc, char **argv)
{
    size_t bytes = 0;
    char *text = argc == 3 ? load(argv[1], &bytes) : NULL;
    const char *reason;
    mpiox_map map;
    if (text == NULL)
        return 2;
    CHECK_EQUAL(mpiox_map_parse(text, bytes, argv[2], &map, &reason), MPIOX_OK);
    CHECK(map.named);
    printf("%lld ", (long long)map.generation);
    for (int32_t i = 0; i < map.count; i++)
        printf("%s%d", i > 0 ? "," : "", map.nodes[i]);
    puts("");
    CHECK_EQUAL(mpiox_map_parse(text, bytes, "no-such-job", &map, &reason), MPIOX_OK);
    CHECK(!map.named);
    for (size_t cut = 0; cut < bytes; cut++)
        CHECK_EQUAL(parse(text, cut, argv[2]), MPIOX_E_CORRUPT);
    for (size_t at = 0; at < bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            text[at] = (char)(text[at] ^ 1 << bit);
            CHECK_EQUAL(parse(text, bytes, argv[2]), MPIOX_E_CORRUPT);
            text[at] = (char)(text[at] ^ 1 << bit);
        }
    }
    free(text);
    return check_exit();
}
