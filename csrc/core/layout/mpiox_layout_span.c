/*
 * mpiox_layout_span.c - reading texts that come from outside, see the header. No allocation, no locale.
 */
#include "mpiox_layout_span.h"

#include <string.h>

mpiox_span mpiox_span_cut(mpiox_span *rest, char delimiter)
{
    const char *end = rest->bytes > 0 ? memchr(rest->at, delimiter, (size_t)rest->bytes) : NULL;
    mpiox_span part = {rest->at, end != NULL ? end - rest->at : rest->bytes};
    int64_t used = part.bytes + (end != NULL ? 1 : 0);
    *rest = (mpiox_span){rest->at + used, rest->bytes - used};
    return part;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

mpiox_span mpiox_span_trim(mpiox_span span)
{
    while (span.bytes > 0 && is_blank(span.at[0])) {
        span.at++;
        span.bytes--;
    }
    while (span.bytes > 0 && (is_blank(span.at[span.bytes - 1]) || span.at[span.bytes - 1] == '\0'))
        span.bytes--;
    return span;
}

mpiox_span mpiox_span_word(mpiox_span *rest)
{
    while (rest->bytes > 0 && is_blank(rest->at[0])) {
        rest->at++;
        rest->bytes--;
    }
    mpiox_span word = {rest->at, 0};
    while (word.bytes < rest->bytes && !is_blank(word.at[word.bytes]))
        word.bytes++;
    rest->at += word.bytes;
    rest->bytes -= word.bytes;
    return word;
}

bool mpiox_span_is(mpiox_span span, const char *text)
{
    size_t bytes = strlen(text);
    return span.bytes == (int64_t)bytes && memcmp(span.at, text, bytes) == 0;
}

bool mpiox_span_skip(mpiox_span *span, const char *prefix)
{
    int64_t bytes = (int64_t)strlen(prefix);
    if (span->bytes < bytes || memcmp(span->at, prefix, (size_t)bytes) != 0)
        return false;
    span->at += bytes;
    span->bytes -= bytes;
    return true;
}

int64_t mpiox_span_find(mpiox_span span, const char *text)
{
    const char *found = span.bytes > 0 ? memmem(span.at, (size_t)span.bytes, text, strlen(text)) : NULL;
    return found != NULL ? found - span.at : -1;
}

bool mpiox_span_number(mpiox_span span, int64_t *out)
{
    int64_t value = 0;
    for (int64_t i = 0; i < span.bytes; i++) {
        int digit = span.at[i] - '0';
        if (digit < 0 || digit > 9 || value > (INT64_MAX - 1 - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    if (span.bytes > 0)
        *out = value;
    return span.bytes > 0;
}

/* A backslash and three octal digits at place i: the byte; -1: none there. */
static int octal_at(mpiox_span span, int64_t i)
{
    int value = 0;
    if (span.at[i] != '\\' || span.bytes - i < 4)
        return -1;
    for (int64_t k = i + 1; k < i + 4; k++) {
        if (span.at[k] < '0' || span.at[k] > '7')
            return -1;
        value = 8 * value + (span.at[k] - '0');
    }
    return value <= 255 ? value : -1;
}

void mpiox_span_copy(mpiox_span span, bool octal, char *text, int64_t capacity)
{
    int64_t used = 0;
    for (int64_t i = 0; i < span.bytes && used < capacity - 1 && span.at[i] != '\0'; i++) {
        int byte = octal ? octal_at(span, i) : -1;
        if (byte == 0)
            break;
        text[used++] = byte > 0 ? (char)byte : span.at[i];
        i += byte > 0 ? 3 : 0;
    }
    text[used] = '\0';
}
