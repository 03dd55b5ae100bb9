/* mpiox_tracefile_texts.c - see mpiox_tracefile_texts.h. */
#include "mpiox_tracefile_texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 1 << 22, FIRST = 256 };

/* Bytes of the UTF-8 character at `at`; 0: there is none. */
static int character(const uint8_t *at, int64_t left)
{
    const int n = at[0] < 0x80                    ? 1
                  : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                  : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                  : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                  : 0;

    if (n == 0 || n > left || at[0] == 0)
        return 0;
    for (int i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if (n == 3 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0)))
        return 0;
    if (n == 4 && ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90)))
        return 0;
    return n;
}

static char *valid_text(const uint8_t *bytes, int64_t length)
{
    char *text = malloc((size_t)length * 4 + 1);
    char *to = text;

    for (int64_t i = 0; text != NULL && i < length;) {
        const int n = character(bytes + i, length - i);

        if (n > 0)
            memcpy(to, bytes + i, (size_t)n);
        to += n > 0 ? n : sprintf(to, "\\x%02x", bytes[i]);
        i += n > 0 ? n : 1;
    }
    if (text != NULL)
        *to = '\0';
    return text;
}

static bool grow(mpiox_tracefile_texts *texts, int64_t number)
{
    int64_t more = texts->n_texts > 0 ? texts->n_texts : FIRST;

    while (more <= number)
        more *= 2;
    char **text = realloc(texts->text, (size_t)more * sizeof *text);
    if (text != NULL)
        texts->text = text;
    int32_t *index = realloc(texts->index, (size_t)more * sizeof *index);
    if (index != NULL)
        texts->index = index;
    if (text == NULL || index == NULL)
        return false;
    for (int64_t i = texts->n_texts; i < more; i++) {
        text[i] = NULL;
        index[i] = -1;
    }
    texts->n_texts = more;
    return true;
}

bool mpiox_tracefile_texts_define(mpiox_tracefile_texts *texts, int64_t number, const uint8_t *bytes, int64_t length)
{
    if (number <= 0 || number >= NUMBERS_MAX)
        return true;
    if (number >= texts->n_texts && !grow(texts, number))
        return false;
    if (texts->text[number] != NULL) /* rows may use it */
        return true;
    texts->text[number] = valid_text(bytes, length);
    return texts->text[number] != NULL;
}

const char *mpiox_tracefile_texts_get(const mpiox_tracefile_texts *texts, int64_t number)
{
    return number > 0 && number < texts->n_texts ? texts->text[number] : NULL;
}

int64_t mpiox_tracefile_texts_use(mpiox_tracefile_texts *texts, int64_t number)
{
    const char *text = mpiox_tracefile_texts_get(texts, number);

    if (text == NULL)
        return -1;
    if (texts->index[number] < 0) {
        if (texts->n_used == texts->room) {
            const int64_t room = texts->room > 0 ? texts->room * 2 : FIRST;
            const char **used = realloc(texts->used, (size_t)room * sizeof *used);

            if (used == NULL)
                return -1;
            texts->used = used;
            texts->room = room;
        }
        texts->used[texts->n_used] = text;
        texts->index[number] = (int32_t)texts->n_used++;
    }
    return texts->index[number];
}

void mpiox_tracefile_texts_free(mpiox_tracefile_texts *texts)
{
    for (int64_t i = 0; i < texts->n_texts; i++)
        free(texts->text[i]);
    free(texts->text);
    free(texts->index);
    free(texts->used);
}

/* ---- text that grows --------------------------------------------------------------------------------------------- */

void mpiox_tracefile_buffer_add(mpiox_tracefile_buffer *buffer, const char *bytes, int64_t length)
{
    if (buffer->used + length > buffer->room) {
        const int64_t room = (buffer->used + length) * 2;
        char *grown = realloc(buffer->bytes, (size_t)room);

        if (grown == NULL) {
            buffer->failed = true;
            return;
        }
        buffer->bytes = grown;
        buffer->room = room;
    }
    if (length > 0)
        memcpy(buffer->bytes + buffer->used, bytes, (size_t)length);
    buffer->used += length;
}

void mpiox_tracefile_buffer_number(mpiox_tracefile_buffer *buffer, int64_t number)
{
    char digits[24];
    char *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        *--at = '-';
    mpiox_tracefile_buffer_add(buffer, at, digits + sizeof digits - at);
}

void mpiox_tracefile_buffer_string(mpiox_tracefile_buffer *buffer, const char *text)
{
    mpiox_tracefile_buffer_add(buffer, "\"", 1);
    for (; *text != '\0'; text++) {
        char escaped[8];

        if (*text == '"' || *text == '\\')
            mpiox_tracefile_buffer_add(buffer, escaped, sprintf(escaped, "\\%c", *text));
        else if ((unsigned char)*text < 0x20)
            mpiox_tracefile_buffer_add(buffer, escaped, sprintf(escaped, "\\u%04x", *text));
        else
            mpiox_tracefile_buffer_add(buffer, text, 1);
    }
    mpiox_tracefile_buffer_add(buffer, "\"", 1);
}
