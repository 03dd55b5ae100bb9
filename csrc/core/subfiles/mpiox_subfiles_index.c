/*
 * mpiox_subfiles_index.c - the text of an index, read and written; the places of bytes. See mpiox_subfiles_index.h.
 *
 * The text is strict: each line in its place, numbers in decimal without leading zeros, a checksum over all of it. An
 * index that a person has edited is refused, with the reason.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_subfiles_index.h"

static const char head[] = "mpiio_ext subfiles 1";

/* ---- where bytes lie --------------------------------------------------------------------------------------------- */

mpiox_subfiles_spot mpiox_subfiles_place(int64_t unit, int32_t count, int64_t offset)
{
    const int64_t number = offset / unit, into = offset % unit;
    return (mpiox_subfiles_spot){(int32_t)(number % count), number / count * unit + into, unit - into};
}

int64_t mpiox_subfiles_share(int64_t unit, int32_t count, int32_t subfile, int64_t size)
{
    const int64_t full = size / unit, last = full % count;
    return (full / count + (subfile < last)) * unit + (subfile == last ? size % unit : 0);
}

int64_t mpiox_subfiles_reach(int64_t unit, int32_t count, int32_t subfile, int64_t bytes)
{
    int64_t number, end;
    if (bytes == 0)
        return 0;
    if (__builtin_mul_overflow((bytes - 1) / unit, count, &number) ||
        __builtin_add_overflow(number, subfile, &number) || __builtin_mul_overflow(number, unit, &end) ||
        __builtin_add_overflow(end, (bytes - 1) % unit + 1, &end))
        return INT64_MAX;
    return end;
}

/* ---- the checksum: CRC-32 as zlib's ------------------------------------------------------------------------------ */

static uint32_t checksum(const char *text, size_t bytes)
{
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= (unsigned char)text[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct reader {
    char *at, *end; /* the rest */
    const char *why;
} reader;

/* The next line, its end replaced by a null character; NULL: there is none. */
static char *next_line(reader *r)
{
    char *line = r->at, *end = memchr(line, '\n', (size_t)(r->end - line));
    if (end == NULL || memchr(line, '\0', (size_t)(end - line)) != NULL)
        return NULL;
    *end = '\0';
    r->at = end + 1;
    return line;
}

/* The value of a line "KEY VALUE"; NULL, with the reason, when the next line is another. */
static char *next_value(reader *r, const char *key, const char *why)
{
    char *line = next_line(r);
    const size_t length = strlen(key);
    if (line != NULL && strncmp(line, key, length) == 0 && line[length] == ' ' && line[length + 1] != '\0')
        return line + length + 1;
    r->why = why;
    return NULL;
}

static bool next_number(reader *r, const char *key, int64_t least, int64_t most, int64_t *out, const char *why)
{
    const char *text = next_value(r, key, why);
    int64_t value = 0;
    if (text == NULL)
        return false;
    r->why = why;
    if (text[0] == '0' && text[1] != '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *text - '0', &value))
            return false;
    }
    *out = value;
    return value >= least && value <= most;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* So many hexadecimal digits, in small letters, and nothing else. */
static bool read_hex(const char *text, int digits, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++) {
        const int digit = digit_of(text[i]);
        if (digit < 0 || (text[i] >= 'A' && text[i] <= 'F'))
            return false;
        *out = *out << 4 | (uint64_t)digit;
    }
    return text[digits] == '\0';
}

/* In place: %XX is the byte XX, which no name has as 0. */
static bool decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++, to++) {
        *to = *from;
        if (*from != '%')
            continue;
        const int high = digit_of(from[1]), low = high >= 0 ? digit_of(from[2]) : -1;
        if (low < 0 || high + low == 0)
            return false;
        *to = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    return true;
}

/* ID.NUMBER, or ID.NUMBER.TAG. */
static bool is_name(const char *base, uint64_t id, int32_t number)
{
    char expected[48];
    const int length = snprintf(expected, sizeof expected, "%016" PRIx64 ".%" PRId32, id, number);
    if (strncmp(base, expected, (size_t)length) != 0)
        return false;
    const char *tag = base + length;
    const size_t digits = tag[0] == '.' ? strspn(tag + 1, "0123456789") : 0;
    return tag[0] == '\0' || (tag[1] != '0' && digits >= 1 && digits <= 2 && tag[1 + digits] == '\0');
}

/* There is such a line where more than one program writes. */
static bool read_writers(reader *r, mpiox_subfiles *out)
{
    static const char key[] = "writers ";
    int64_t writers = 1;
    if (r->end - r->at >= (ptrdiff_t)sizeof key && memcmp(r->at, key, sizeof key - 1) == 0 &&
        !next_number(r, "writers", 2, INT32_MAX, &writers, "the number of its writers is wrong"))
        return false;
    out->writers = (int32_t)writers;
    return true;
}

static bool read_names(reader *r, mpiox_subfiles *out)
{
    for (int32_t i = 0; i < out->count; i++) {
        char *name = next_value(r, "subfile", "a subfile is not named");
        if (name == NULL)
            return false;
        r->why = "a subfile has a name that is not its";
        if (!decode(name))
            return false;
        const char *slash = strrchr(name, '/');
        if (!is_name(slash != NULL ? slash + 1 : name, out->id, i))
            return false;
        out->names[i] = name;
    }
    return true;
}

static bool read_head(reader *r, mpiox_subfiles *out)
{
    int64_t count = 0;
    const char *line = next_line(r), *state, *id;
    r->why = "it is no index of subfiles, of this version at least";
    if (line == NULL || strcmp(line, head) != 0 || next_line(r) == NULL)
        return false;
    state = next_value(r, "state", "its state is missing");
    if (state == NULL)
        return false;
    const bool whole = strcmp(state, "whole") == 0;
    r->why = "its state is neither `whole` nor `writing`";
    if (!whole && strcmp(state, "writing") != 0)
        return false;
    out->size = -1;
    if (!next_number(r, "unit", 1, MPIOX_SUBFILES_UNIT_MOST, &out->unit, "its unit is wrong") ||
        !next_number(r, "count", 1, MPIOX_SUBFILES_MOST, &count, "its count is wrong") ||
        (whole ? !next_number(r, "size", 0, INT64_MAX, &out->size, "its size is wrong") : !read_writers(r, out)))
        return false;
    out->count = (int32_t)count;
    id = next_value(r, "id", "its id is wrong");
    r->why = "its id is wrong";
    return id != NULL && read_hex(id, 16, &out->id);
}

/* 0, MPIOX_E_NOMEM or MPIOX_E_ARG. */
static int parse(reader *r, mpiox_subfiles *out)
{
    uint64_t stated;
    char *last = out->text;
    for (char *line = out->text; line < r->end; line++) { /* the beginning of the last line */
        last = line;
        line = memchr(line, '\n', (size_t)(r->end - line));
        if (line == NULL)
            break;
    }
    const uint32_t sum = checksum(out->text, (size_t)(last - out->text));
    if (!read_head(r, out))
        return MPIOX_E_ARG;
    out->names = calloc((size_t)out->count, sizeof *out->names);
    if (out->names == NULL)
        return MPIOX_E_NOMEM;
    if (!read_names(r, out))
        return MPIOX_E_ARG;
    const char *value = next_value(r, "checksum", "its checksum is missing");
    if (value == NULL)
        return MPIOX_E_ARG;
    r->why = "its checksum is wrong: it was changed by hand, or damaged";
    return read_hex(value, 8, &stated) && stated == sum && r->at == r->end ? MPIOX_OK : MPIOX_E_ARG;
}

int mpiox_subfiles_parse(char *text, int64_t bytes, mpiox_subfiles *out, const char **why)
{
    reader r = {text, text + bytes, "no memory"};
    *out = (mpiox_subfiles){.text = text};
    const int code = parse(&r, out);
    *why = r.why;
    if (code != MPIOX_OK)
        mpiox_subfiles_free(out);
    return code;
}

void mpiox_subfiles_free(mpiox_subfiles *subfiles)
{
    if (subfiles == NULL)
        return;
    free(subfiles->names);
    free(subfiles->text);
    free(subfiles->index);
    *subfiles = (mpiox_subfiles){.size = -1};
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Write special characters in a line of the index as %XX. */
static void print_name(FILE *to, const char *name)
{
    for (; *name != '\0'; name++) {
        if (*name == '%' || (unsigned char)*name < 0x20)
            fprintf(to, "%%%02x", (unsigned char)*name);
        else
            fputc(*name, to);
    }
}

char *mpiox_subfiles_format(const mpiox_subfiles *subfiles, const char *name)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (to == NULL)
        return NULL;
    fprintf(to,
            "%s\nThis is the index of a file that is stored as several. One plain file is made by: mpiio-ext subfiles "
            "merge ",
            head);
    print_name(to, name);
    fprintf(to, "\nstate %s\nunit %" PRId64 "\ncount %" PRId32 "\n", subfiles->size >= 0 ? "whole" : "writing",
            subfiles->unit, subfiles->count);
    if (subfiles->size >= 0)
        fprintf(to, "size %" PRId64 "\n", subfiles->size);
    else if (subfiles->writers > 1)
        fprintf(to, "writers %" PRId32 "\n", subfiles->writers);
    fprintf(to, "id %016" PRIx64 "\n", subfiles->id);
    for (int32_t i = 0; i < subfiles->count; i++) {
        fputs("subfile ", to);
        print_name(to, subfiles->names[i]);
        fputc('\n', to);
    }
    bool fine = fflush(to) == 0;
    if (fine)
        fprintf(to, "checksum %08" PRIx32 "\n", checksum(text, bytes));
    fine = fclose(to) == 0 && fine;
    if (!fine) {
        free(text);
        text = NULL;
    }
    return text;
}
