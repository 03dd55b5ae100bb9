/* mpiox_program.c - the name of the program: mpiox_program.h. */
#include "mpiox_program.h"
#include "mpiox_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_BYTES = 4096 };

/* The word behind `word`, or NULL. */
static const char *next_word(const char *word, const char *end)
{
    const char *nul = memchr(word, '\0', (size_t)(end - word));

    return nul != NULL && nul + 1 < end ? nul + 1 : NULL;
}

static bool is_python(const char *name)
{
    if (strncmp(name, "python", 6) != 0)
        return false;
    name += 6 + strspn(name + 6, "0123456789.");
    return strcmp(name, "") == 0 || strcmp(name, "t") == 0; /* t: without the global lock */
}

/* A module that runs a script. */
static bool is_runner(const char *name)
{
    return name != NULL && (strcmp(name, "mpi4py") == 0 || strcmp(name, "mpi4py.run") == 0);
}

/* The script or module that Python runs; NULL: neither. */
static const char *of_python(const char *word, const char *end)
{
    while ((word = next_word(word, end)) != NULL) {
        if (strcmp(word, "-m") == 0 && !is_runner(next_word(word, end)))
            return next_word(word, end);
        if (strcmp(word, "-c") == 0 || strcmp(word, "-") == 0)
            return NULL;
        if (word[0] != '-')
            return mpiox_text_base_name(word);
        if (strcmp(word, "-m") == 0 || strcmp(word, "-W") == 0 || strcmp(word, "-X") == 0 ||
            strcmp(word, "--check-hash-based-pycs") == 0) {
            word = next_word(word, end);
            if (word == NULL)
                return NULL;
        }
    }
    return NULL;
}

void mpiox_program_name(const char *words, size_t bytes, char *name, size_t name_bytes)
{
    char copy[WORDS_BYTES + 1];

    bytes = bytes < WORDS_BYTES ? bytes : WORDS_BYTES;
    memcpy(copy, words, bytes);
    copy[bytes] = '\0';
    const char *executable = mpiox_text_base_name(copy);
    const char *inner = is_python(executable) ? of_python(copy, copy + bytes) : NULL;
    const char *found = inner != NULL && inner[0] != '\0' ? inner : executable;
    size_t length = strlen(found);

    if (inner == found && length > 3 && strcmp(found + length - 3, ".py") == 0)
        length -= 3;
    if (length > 0)
        snprintf(name, name_bytes, "%.*s", (int)length, found);
    else
        snprintf(name, name_bytes, "unknown");
    for (char *at = name; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("._+-", *at) == NULL)
            *at = '_';
}

void mpiox_program_own(char *name, size_t name_bytes)
{
    char words[WORDS_BYTES];
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;

    if (fd >= 0) {
        got = read(fd, words, sizeof words);
        close(fd);
    }
    if (got <= 0)
        got = snprintf(words, sizeof words, "%s", program_invocation_short_name);
    mpiox_program_name(words, (size_t)got, name, name_bytes);
}
