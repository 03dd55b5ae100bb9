/* mpiox_rawtrace_json.c - see mpiox_rawtrace_json.h. */
#include "mpiox_rawtrace_json.h"

#include <stdlib.h>
#include <string.h>

void mpiox_rawtrace_buffer_put(mpiox_rawtrace_buffer *out, const char *bytes, int64_t count)
{
    if (out->used + count >= out->capacity) {
        const int64_t capacity = 2 * (out->used + count) + 256;
        char *grown = realloc(out->bytes, (size_t)capacity);
        if (grown == NULL) {
            out->failed = true;
            return;
        }
        out->bytes = grown;
        out->capacity = capacity;
    }
    if (count > 0)
        memcpy(out->bytes + out->used, bytes, (size_t)count);
    out->used += count;
}

void mpiox_rawtrace_json_key(mpiox_rawtrace_buffer *out, const char *key, int64_t bytes)
{
    mpiox_rawtrace_buffer_put(out, out->used == 0 ? "{" : ",", 1);
    mpiox_rawtrace_json_string(out, key, bytes);
    mpiox_rawtrace_buffer_put(out, ":", 1);
}

/* Bytes of the UTF-8 character at p, 0 when there is none. */
static int utf8_length(const unsigned char *p, const unsigned char *end)
{
    const int length = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;

    if (length == 0 || end - p < length)
        return 0;
    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    if (length > 2 && ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
                       (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)))
        return 0;
    return length;
}

void mpiox_rawtrace_json_string(mpiox_rawtrace_buffer *out, const char *bytes, int64_t count)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *p = (const unsigned char *)bytes, *end = p + count;

    mpiox_rawtrace_buffer_put(out, "\"", 1);
    while (p < end) {
        const unsigned char *from = p;
        while (p < end && *p >= 0x20 && *p < 0x7F && *p != '"' && *p != '\\')
            p++;
        if (p > from)
            mpiox_rawtrace_buffer_put(out, (const char *)from, p - from);
        if (p == end)
            break;
        const int length = utf8_length(p, end);
        if (*p == '"' || *p == '\\') {
            mpiox_rawtrace_buffer_put(out, *p == '"' ? "\\\"" : "\\\\", 2);
        } else if (length < 2) {
            const char code[] = {'\\', 'u', '0', '0', digits[*p >> 4], digits[*p & 15]};
            mpiox_rawtrace_buffer_put(out, code, sizeof code);
        } else {
            mpiox_rawtrace_buffer_put(out, (const char *)p, length);
        }
        p += length > 0 ? length : 1;
    }
    mpiox_rawtrace_buffer_put(out, "\"", 1);
}

char *mpiox_rawtrace_json_end(mpiox_rawtrace_buffer *out)
{
    if (out->used == 0)
        return NULL;
    mpiox_rawtrace_buffer_put(out, "}", 2); /* with the NUL */
    char *text = out->failed ? NULL : malloc((size_t)out->used);
    if (text != NULL)
        memcpy(text, out->bytes, (size_t)out->used);
    else
        out->failed = true;
    out->used = 0;
    return text;
}

/* Digits of any base, with its prefix; they may be too many. */
static bool based_number(const char *p, const char *end, bool negative, int64_t *value)
{
    uint64_t number = 0, base = 10;

    if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        base = 16;
        p += 2;
    } else if (end - p > 1 && p[0] == '0') {
        base = 8;
        p++;
    }
    for (; p < end; p++) {
        const int c = *p;
        const unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                               : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                               : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                      : 99;
        if (digit >= base || __builtin_mul_overflow(number, base, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return false;
    }
    if (base != 16 && number > (uint64_t)INT64_MAX)
        return false;
    *value = negative ? (int64_t)(0 - number) : (int64_t)number;
    return *value != INT64_MIN;
}

bool mpiox_rawtrace_number(const char *p, const char *end, int64_t *value)
{
    const bool negative = p < end && *p == '-';
    int64_t number = 0;

    p += negative;
    if (p >= end)
        return false;
    if (end - p > 18 || (*p == '0' && end - p > 1))
        return based_number(p, end, negative, value);
    for (; p < end; p++) { /* nearly all: decimals that cannot overflow */
        const unsigned digit = (unsigned char)*p - (unsigned)'0';
        if (digit > 9)
            return false;
        number = 10 * number + digit;
    }
    *value = negative ? -number : number;
    return true;
}

const char *mpiox_rawtrace_skip_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '\\')
            p++;
        else if (*p == '"')
            return p + 1;
    }
    return NULL;
}

/* Whether an argument may end before p: ltrace writes quotes inside of strings as they are. */
static bool is_behind(const char *p, const char *end)
{
    if (p == end || *p == ',' || *p == ')' || *p == ']' || *p == '}' || *p == '\n')
        return true;
    if (*p == '.')
        return end - p >= 3 && p[1] == '.' && p[2] == '.';
    return *p == ' ' && (end - p == 1 || p[1] == '<' || p[1] == '=' || p[1] == '/' || p[1] == ')');
}

const char *mpiox_rawtrace_skip_text(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '\\')
            p++;
        else if (*p == '"' && is_behind(p + 1, end))
            return p + 1;
    }
    return NULL;
}

static bool hex4(const char *p, const char *end, unsigned *code)
{
    *code = 0;
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return false;
        *code = *code * 16 + (unsigned)digit;
    }
    return true;
}

static void put_code(mpiox_rawtrace_buffer *out, unsigned code)
{
    char bytes[4];
    int count = 0;

    if (code < 0x80) {
        bytes[count++] = (char)code;
    } else if (code < 0x800) {
        bytes[count++] = (char)(0xC0 | code >> 6);
    } else if (code < 0x10000) {
        bytes[count++] = (char)(0xE0 | code >> 12);
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3F));
    } else {
        bytes[count++] = (char)(0xF0 | code >> 18);
        bytes[count++] = (char)(0x80 | (code >> 12 & 0x3F));
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3F));
    }
    if (code >= 0x80)
        bytes[count++] = (char)(0x80 | (code & 0x3F));
    mpiox_rawtrace_buffer_put(out, bytes, count);
}

/* \uXXXX at p, of a pair both halves; returns what is behind it. */
static const char *decode_unicode(mpiox_rawtrace_buffer *out, const char *p, const char *end)
{
    unsigned code, low;

    if (!hex4(p + 2, end, &code)) {
        mpiox_rawtrace_buffer_put(out, p, 2);
        return p + 2;
    }
    p += 6;
    if (code >= 0xD800 && code < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' && hex4(p + 2, end, &low) &&
        low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        p += 6;
    }
    put_code(out, code);
    return p;
}

/* The escape at p (a backslash, and at least one byte behind it); returns what is behind it. */
static const char *decode_escape(mpiox_rawtrace_buffer *out, const char *p, const char *end, bool json)
{
    static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
    const char *found = strchr(from, p[1]);

    if (json && p[1] == 'u')
        return decode_unicode(out, p, end);
    if (found != NULL && *found != '\0') {
        mpiox_rawtrace_buffer_put(out, &to[found - from], 1);
        return p + 2;
    }
    if (!json && p[1] >= '0' && p[1] <= '7') {
        unsigned code = 0;
        const char *digit = p + 1;
        for (; digit < end && digit < p + 4 && *digit >= '0' && *digit <= '7'; digit++)
            code = code * 8 + (unsigned)(*digit - '0');
        const char byte = (char)code;
        mpiox_rawtrace_buffer_put(out, &byte, 1);
        return digit;
    }
    if (!json && p[1] == 'x') {
        unsigned code;
        char four[4] = {'0', '0', end - p > 2 ? p[2] : 'x', end - p > 3 ? p[3] : 'x'};
        if (hex4(four, four + 4, &code)) {
            const char byte = (char)code;
            mpiox_rawtrace_buffer_put(out, &byte, 1);
            return p + 4;
        }
    }
    if (p[1] != '"' && p[1] != '\\' && p[1] != '/' && p[1] != '\'')
        mpiox_rawtrace_buffer_put(out, p, 1);
    mpiox_rawtrace_buffer_put(out, p + 1, 1);
    return p + 2;
}

void mpiox_rawtrace_decode(mpiox_rawtrace_buffer *out, const char *p, const char *end, bool json)
{
    out->used = 0;
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        if (slash == NULL || slash + 1 == end) {
            mpiox_rawtrace_buffer_put(out, p, end - p);
            return;
        }
        mpiox_rawtrace_buffer_put(out, p, slash - p);
        p = decode_escape(out, slash, end, json);
    }
}
