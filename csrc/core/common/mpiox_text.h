/*
 * mpiox_text.h - texts put together in the caller's memory; environment variables and paths.
 *
 * As snprintf, but over many calls: the functions count bytes without room and do not store them, so that a first run
 * without memory returns the size needed. The text ends with a NUL as soon as there is room for a NUL.
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
/* Append a JSON string with its quotes. File names are bytes: each byte that is not valid UTF-8 becomes U+00XX. */
void mpiox_text_put_json(mpiox_text *out, const char *text);

/* Every word for on and for off, of the shell, ROMIO and Open MPI, as rows of a table: `row` is a macro of two
 * arguments. */
#define MPIOX_SWITCH_WORDS(row, on, off)                                                                               \
    row("true", on), row("false", off), row("1", on), row("0", off), row("yes", on), row("no", off), row("on", on),    \
        row("off", off), row("enable", on), row("disable", off), row("enabled", on), row("disabled", off)

/* Is the text a word for off? */
bool mpiox_text_is_off(const char *text);

/* The value of an environment variable; NULL: the variable is not set, or empty. */
const char *mpiox_text_variable(const char *name);
/* The last component of a path. */
const char *mpiox_text_base_name(const char *path);

#endif
