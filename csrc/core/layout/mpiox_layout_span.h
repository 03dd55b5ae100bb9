/*
 * mpiox_layout_span.h - reading texts that come from outside: every function stays inside the bytes it is given.
 */
#ifndef MPIOX_LAYOUT_SPAN_H
#define MPIOX_LAYOUT_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mpiox_span {
    const char *at; /* not NUL-terminated */
    int64_t bytes;
} mpiox_span;

/* All of a text; NULL or a negative length: nothing. */
static inline mpiox_span mpiox_span_of(const void *text, int64_t bytes)
{
    return (mpiox_span){text, text == NULL || bytes < 0 ? 0 : bytes};
}

/* Cut the part before the first `delimiter` off *rest and return it; all of it, where there is none. */
mpiox_span mpiox_span_cut(mpiox_span *rest, char delimiter);
/* The next word between blanks (space, tab, end of line); of 0 bytes: no more. */
mpiox_span mpiox_span_word(mpiox_span *rest);
mpiox_span mpiox_span_trim(mpiox_span span);
bool mpiox_span_is(mpiox_span span, const char *text);
/* Take a prefix off. */
bool mpiox_span_skip(mpiox_span *span, const char *prefix);
/* Where `text` begins in it, -1: nowhere. */
int64_t mpiox_span_find(mpiox_span span, const char *text);
/* All of it is a decimal number from 0 to INT64_MAX - 1. */
bool mpiox_span_number(mpiox_span span, int64_t *out);
/* Into a C string of `capacity` bytes, cut where it does not fit and before a NUL byte; with `octal`, \ooo becomes the
 * byte that the kernel has written so (blanks and backslashes in /proc). */
void mpiox_span_copy(mpiox_span span, bool octal, char *text, int64_t capacity);

#endif
