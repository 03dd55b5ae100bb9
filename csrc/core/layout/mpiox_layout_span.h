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
    int64_t bytes;  /* length, >= 0 */
} mpiox_span;

/* All of a text; NULL or a negative length: nothing. */
static inline mpiox_span mpiox_span_of(const void *text, int64_t bytes)
{
    return (mpiox_span){text, text == NULL || bytes < 0 ? 0 : bytes};
}

/* Cut the part before the first `delimiter` off *rest and return it; without a delimiter, all of the text. */
mpiox_span mpiox_span_cut(mpiox_span *rest, char delimiter);
/* The next word between blanks (space, tab, end of line); of 0 bytes: no more. */
mpiox_span mpiox_span_word(mpiox_span *rest);
mpiox_span mpiox_span_trim(mpiox_span span);
bool mpiox_span_is(mpiox_span span, const char *text);
/* Remove a prefix; false: the text does not begin with it. */
bool mpiox_span_skip(mpiox_span *span, const char *prefix);
/* The place at which `text` begins in the span, -1: nowhere. */
int64_t mpiox_span_find(mpiox_span span, const char *text);
/* False: the span is not one decimal number from 0 to INT64_MAX - 1. */
bool mpiox_span_number(mpiox_span span, int64_t *out);
/* Copy into a C string of `capacity` bytes, cut if it does not fit and before a NUL byte; with `octal`, \ooo becomes
 * the byte for which the kernel has written it (blanks and backslashes in /proc). */
void mpiox_span_copy(mpiox_span span, bool octal, char *text, int64_t capacity);

#endif
