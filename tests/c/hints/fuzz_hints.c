/*
 * fuzz_hints.c - libFuzzer harness of what reads hints: variables and files, ours and other libraries'.
 *
 *   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Icsrc/core/common -Icsrc/core/hints \
 *       tests/c/hints/fuzz_hints.c csrc/core/hints/mpiox_hints_{text,romio,mca}.c csrc/core/common/mpiox_text.c -o fuzz
 *   ./fuzz CORPUS
 *
 * Every scanner gets every input. What it calls a hint must be one: a name without separators, a value without line
 * breaks; ROMIO's names occur once. What it reports must be one line.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_hints_mca.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_NAMES = 2048 };

/* What one scanner has found. */
typedef struct found {
    char *names[MAX_NAMES];
    int n;
    bool once; /* a name may occur once */
} found;

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void take(const char *name, const char *value, const char *where, void *context)
{
    found *f = context;

    require(isalpha((unsigned char)name[0]) && strpbrk(name, "=:, \t\r\n") == NULL);
    require(strlen(value) < 8192 && where[0] != '\0' && strlen(where) < 512);
    for (int i = 0; f->once && i < f->n; i++)
        require(strcmp(f->names[i], name) != 0);
    if (f->once && f->n < MAX_NAMES)
        f->names[f->n++] = strdup(name);
}

static void ignore(const char *message, void *context)
{
    (void)context;
    require(message[0] != '\0' && strlen(message) < 1024);
}

static void drop(found *f)
{
    while (f->n > 0)
        free(f->names[--f->n]);
}

static void try_texts(const char *text)
{
    static const char *const paths[] = {NULL, "a.h5", "/scratch/run/a.h5"};
    found f = {.n = 0};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        mpiox_hints_scan_text(text, paths[i], take, ignore, &f);
        mpiox_hints_scan_cray(text, paths[i], take, ignore, &f);
    }
}

static void try_files(const uint8_t *data, size_t size)
{
    found f = {.once = true};
    mpiox_mca mca = {.values = {{.by_site = false}}};
    FILE *stream = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;

    if (stream == NULL)
        return;
    mpiox_hints_scan_romio(stream, "file", take, ignore, &f);
    drop(&f);
    rewind(stream);
    mpiox_mca_scan_file(&mca, stream, "file", true, ignore, NULL);
    rewind(stream);
    mpiox_mca_scan_tuned(&mca, stream, "file", ignore, NULL);
    fclose(stream);
    f.once = false;
    mpiox_mca_visit(&mca, true, take, &f);
    mpiox_mca_visit(&mca, false, take, &f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    try_texts(text);
    free(text);
    try_files(data, size);
    return 0;
}
