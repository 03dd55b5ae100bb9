/*
 * mpiox_hints_value.c - the value of a hint: from a text into its field, and back.
 *
 * The spec defines the field: a word of a list, a number in bounds, a size, or a text. A size above the limit becomes
 * the limit; the caller compares requested and actual value, and reports the difference.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mpiox_hints.h"

int mpiox_hints_parse_bytes(const char *text, int64_t *bytes)
{
    static const char suffixes[] = "kmgtpe";
    char *end = NULL;
    long long number;
    int64_t unit = 1;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || number < 0)
        return MPIOX_E_ARG;
    if (*end != '\0' && strchr(suffixes, tolower((unsigned char)*end)) != NULL) {
        const ptrdiff_t power = strchr(suffixes, tolower((unsigned char)*end)) - suffixes + 1;
        const bool decimal = tolower((unsigned char)end[1]) == 'b'; /* MB; M and MiB are powers of 1024 */
        for (ptrdiff_t i = 0; i < power; i++)
            unit *= decimal ? 1000 : 1024;
        end += tolower((unsigned char)end[1]) == 'i' ? 2 : 1;
    }
    if (*end == 'b' || *end == 'B')
        end++;
    if (*end != '\0' || number > INT64_MAX / unit)
        return MPIOX_E_ARG;
    *bytes = number * unit;
    return MPIOX_OK;
}

/* Fields are bool, int32_t or an enumeration, int64_t, and arrays of char. */
static void store(const mpiox_hint_spec *spec, int64_t value, mpiox_hints *hints)
{
    char *field = (char *)hints + spec->offset;
    if (spec->bytes == sizeof(bool))
        *(bool *)(void *)field = value != 0;
    else if (spec->bytes == sizeof(int32_t))
        *(int32_t *)(void *)field = (int32_t)value;
    else
        *(int64_t *)(void *)field = value;
}

static int64_t load(const mpiox_hint_spec *spec, const mpiox_hints *hints)
{
    const char *field = (const char *)hints + spec->offset;
    if (spec->bytes == sizeof(bool))
        return *(const bool *)(const void *)field;
    return spec->bytes == sizeof(int32_t) ? *(const int32_t *)(const void *)field
                                          : *(const int64_t *)(const void *)field;
}

static bool is_text(const mpiox_hint_spec *spec)
{
    return spec->words == NULL && spec->most == 0;
}

static int parse_number(const mpiox_hint_spec *spec, const char *text, int64_t *value)
{
    char *end = NULL;
    if (spec->bytes == sizeof(int64_t)) {
        if (mpiox_hints_parse_bytes(text, value) != MPIOX_OK || *value < spec->least)
            return MPIOX_E_ARG;
        *value = *value < spec->most ? *value : spec->most;
        return MPIOX_OK;
    }
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= spec->least && *value <= spec->most ? MPIOX_OK
                                                                                                      : MPIOX_E_ARG;
}

int mpiox_hint_parse(const mpiox_hint_spec *spec, const char *text, mpiox_hints *hints)
{
    int64_t value = 0;
    if (is_text(spec)) {
        if (strlen(text) >= spec->bytes || (spec->accepts != NULL && !spec->accepts(text)))
            return MPIOX_E_ARG;
        snprintf((char *)hints + spec->offset, spec->bytes, "%s", text);
        return MPIOX_OK;
    }
    if (spec->words != NULL) {
        const mpiox_hint_word *word = spec->words;
        while (word->word != NULL && strcasecmp(text, word->word) != 0)
            word++;
        if (word->word == NULL)
            return MPIOX_E_ARG;
        value = word->value;
    } else if (parse_number(spec, text, &value) != MPIOX_OK) {
        return MPIOX_E_ARG;
    }
    store(spec, value, hints);
    return MPIOX_OK;
}

void mpiox_hint_format(const mpiox_hint_spec *spec, const mpiox_hints *hints, char *text, int64_t text_bytes)
{
    if (is_text(spec)) {
        snprintf(text, (size_t)text_bytes, "%s", (const char *)hints + spec->offset);
    } else if (spec->words == NULL) {
        snprintf(text, (size_t)text_bytes, "%" PRId64, load(spec, hints));
    } else {
        const mpiox_hint_word *word = spec->words;
        while (word->word != NULL && word->value != load(spec, hints))
            word++;
        snprintf(text, (size_t)text_bytes, "%s", word->word != NULL ? word->word : "?");
    }
}
