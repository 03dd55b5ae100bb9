/* mpiox_text.c - see mpiox_text.h. */
#include "mpiox_text.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void mpiox_text_put(mpiox_text *out, const char *format, ...)
{
    const int64_t room = out->capacity > out->used ? out->capacity - out->used : 0;
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(room > 0 ? out->text + out->used : NULL, (size_t)room, format, arguments);
    va_end(arguments);
    out->used += length > 0 ? length : 0;
}

static int utf8_length(const unsigned char *p)
{
    int length = p[0] >= 0xF0 && p[0] < 0xF5 ? 4 : p[0] >= 0xE0 ? 3 : p[0] >= 0xC2 ? 2 : 0;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xF5)
        return 0;
    for (int i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
        (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return length;
}

void mpiox_text_put_json(mpiox_text *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    mpiox_text_put(out, "\"");
    while (*p != '\0') {
        const int length = utf8_length(p);

        if (*p == '"' || *p == '\\')
            mpiox_text_put(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7F || length == 0)
            mpiox_text_put(out, "\\u%04x", *p);
        else
            mpiox_text_put(out, "%.*s", length, (const char *)p);
        p += length > 0 ? length : 1;
    }
    mpiox_text_put(out, "\"");
}

bool mpiox_text_is_off(const char *text)
{
#define OF_OFF(word, on) ((on) ? NULL : (word))
    static const char *const words[] = {MPIOX_SWITCH_WORDS(OF_OFF, true, false)};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i] != NULL && strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

const char *mpiox_text_variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *mpiox_text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}
