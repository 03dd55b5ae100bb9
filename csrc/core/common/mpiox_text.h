/*
 * mpiox_text.h - texts put together in memory of the caller's; environment variables and paths.
 *
 * Like snprintf over many calls: bytes without room are counted and not stored, so that a first run without memory
 * returns the size needed. The text ends with a NUL as soon as there is room for one.
 */
#ifndef MPIOX_TEXT_H
#define MPIOX_TEXT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mpiox_text {
    char *text;       /* may be NULL when capacity is 0 */
    int64_t capacity; /* bytes, with the NUL */
    int64_t used;     /* bytes that the text has, or would have, without the NUL */
} mpiox_text;

__attribute__((format(printf, 2, 3))) void mpiox_text_put(mpiox_text *out, const char *format, ...);
/* A JSON string with its quotes. File names are bytes: what is not valid UTF-8 is written as U+00XX, byte by byte. */
void mpiox_text_put_json(mpiox_text *out, const char *text);

/* Every word for on and for off, of the shell, ROMIO and Open MPI, as rows of a table: `row` is a macro of two. */
#define MPIOX_SWITCH_WORDS(row, on, off)                                                                               \
    row("true", on), row("false", off), row("1", on), row("0", off), row("yes", on), row("no", off), row("on", on),    \
        row("off", off), row("enable", on), row("disable", off), row("enabled", on), row("disabled", off)

/* Whether a text is a word for off. */
bool mpiox_text_is_off(const char *text);

/* The value of an environment variable; NULL: it is not set, or empty. */
const char *mpiox_text_variable(const char *name);
/* The last component of a path. */
const char *mpiox_text_base_name(const char *path);

#endif
