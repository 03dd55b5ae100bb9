/*
 * mpiox_rawtrace_json.h - JSON texts put together in memory that grows, and numbers and strings taken from traces.
 *
 * Strings of a trace are bytes: what is not valid UTF-8 is written as U+00XX, byte by byte, as common/mpiox_text does.
 */
#ifndef MPIOX_RAWTRACE_JSON_H
#define MPIOX_RAWTRACE_JSON_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory is an empty buffer; `failed`: memory was exhausted, and the text is not whole. */
typedef struct mpiox_rawtrace_buffer {
    char *bytes;            /* owned */
    int64_t used, capacity; /* bytes in use; room */
    bool failed;            /* see above */
} mpiox_rawtrace_buffer;

void mpiox_rawtrace_buffer_put(mpiox_rawtrace_buffer *out, const char *bytes, int64_t count);

/* "KEY": behind { or , as needed; the caller puts the value. */
void mpiox_rawtrace_json_key(mpiox_rawtrace_buffer *out, const char *key, int64_t bytes);
void mpiox_rawtrace_json_string(mpiox_rawtrace_buffer *out, const char *bytes, int64_t count);
/* Close the object: a copy to be freed, NULL when nothing was put or memory is exhausted (`failed`). Empties `out`. */
char *mpiox_rawtrace_json_end(mpiox_rawtrace_buffer *out);

/* [-] decimal, 0x or 0 (octal) digits, all of [p, end). */
bool mpiox_rawtrace_number(const char *p, const char *end, int64_t *value);

/* Behind the string that begins with the quote at p, or NULL when it does not end before `end`. */
const char *mpiox_rawtrace_skip_string(const char *p, const char *end);

/* The same of a string of ltrace, that may have quotes inside: it ends where an argument can end. */
const char *mpiox_rawtrace_skip_text(const char *p, const char *end);

/* Decode the inside of a string with C escapes (json: \u too) into out->bytes, which is emptied before. */
void mpiox_rawtrace_decode(mpiox_rawtrace_buffer *out, const char *p, const char *end, bool json);

#endif
