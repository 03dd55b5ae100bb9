/* mpiox_map.c - reading the arbiter's map: mpiox_map.h. */
#include "mpiox_map.h"

#include <string.h>

#include "mpiox_error.h"

typedef struct reader { /* a line at a time; nothing is terminated by NUL */
    const char *at, *end;
    const char *line;
    size_t length; /* of the line, without its newline */
} reader;

static bool next_line(reader *in)
{
    const char *newline = in->at < in->end ? memchr(in->at, '\n', (size_t)(in->end - in->at)) : NULL;

    if (newline == NULL)
        return false;
    in->line = in->at;
    in->length = (size_t)(newline - in->at);
    in->at = newline + 1;
    return true;
}

/* The line begins with the word and a blank: skip them. */
static bool take_word(reader *in, const char *word)
{
    const size_t length = strlen(word);

    if (in->length <= length || memcmp(in->line, word, length) != 0 || in->line[length] != ' ')
        return false;
    in->line += length + 1;
    in->length -= length + 1;
    return true;
}

/* Take the digits at the beginning of the rest, at most `most`. */
static bool take_number(reader *in, int64_t most, int64_t *out)
{
    int64_t value = 0;
    size_t used = 0;

    for (; used < in->length && in->line[used] >= '0' && in->line[used] <= '9'; used++) {
        const int digit = in->line[used] - '0';

        if (value > (most - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    in->line += used;
    in->length -= used;
    *out = value;
    return used > 0;
}

uint64_t mpiox_map_checksum(const char *text, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool is_checksum(const reader *in, uint64_t expected)
{
    static const char digits[] = "0123456789abcdef";
    bool same = in->length == 16;

    for (int i = 0; same && i < 16; i++)
        same = in->line[i] == digits[expected >> (60 - 4 * i) & 15];
    return same;
}

/* "0,1,5" or "-"; each index once. */
static bool take_nodes(reader *in, mpiox_map *out)
{
    bool seen[MPIOX_MAP_NODES] = {false};
    int64_t node;

    out->count = 0;
    if (in->length == 1 && in->line[0] == '-')
        return true;
    for (;;) {
        if (!take_number(in, MPIOX_MAP_NODES - 1, &node) || seen[node])
            return false;
        seen[node] = true;
        out->nodes[out->count++] = (int16_t)node;
        if (in->length == 0)
            return true;
        if (in->line[0] != ',')
            return false;
        in->line++;
        in->length--;
    }
}

/* A line "job NAME nodes" whose first word has been taken. False: it is malformed. */
static bool take_job(reader *in, const char *job, mpiox_map *out)
{
    const char *blank = memchr(in->line, ' ', in->length);
    const size_t length = blank != NULL ? (size_t)(blank - in->line) : 0;
    const bool mine = length == strlen(job) && memcmp(in->line, job, length) == 0;
    mpiox_map other;

    if (length == 0 || length >= MPIOX_MAP_NAME || (mine && out->named))
        return false;
    in->line += length + 1;
    in->length -= length + 1;
    out->named |= mine;
    return take_nodes(in, mine ? out : &other);
}

/* NULL: well-formed. */
static const char *read_map(reader *in, const char *job, mpiox_map *out)
{
    const char *start = in->at;
    int64_t jobs = 0, stated;

    if (!next_line(in) || in->length != 11 || memcmp(in->line, "mpiox-map 1", 11) != 0)
        return "it does not begin with 'mpiox-map 1'";
    if (!next_line(in) || !take_word(in, "generation") || !take_number(in, INT64_MAX, &out->generation) ||
        in->length != 0 || out->generation < 1)
        return "its second line is no 'generation N'";
    for (;; jobs++) {
        const size_t before = (size_t)(in->at - start);

        if (!next_line(in))
            return "it is cut short: the line 'end' is missing";
        if (take_word(in, "end")) {
            if (!take_number(in, INT64_MAX, &stated) || stated != jobs || in->length == 0 || in->line[0] != ' ')
                return "the number of jobs in its last line is wrong";
            in->line++;
            in->length--;
            if (!is_checksum(in, mpiox_map_checksum(start, before)))
                return "its checksum is wrong";
            return in->at == in->end ? NULL : "something follows its last line";
        }
        if (!take_word(in, "job") || !take_job(in, job, out))
            return "a line is no 'job NAME nodes'";
    }
}

int mpiox_map_parse(const char *text, size_t bytes, const char *job, mpiox_map *out, const char **reason)
{
    reader in = {.at = text, .end = text + bytes};
    mpiox_map found;

    memset(&found, 0, sizeof found);
    *reason = bytes > MPIOX_MAP_BYTES ? "it is larger than 4 MiB" : read_map(&in, job, &found);
    if (*reason != NULL)
        return MPIOX_E_CORRUPT;
    *out = found;
    return MPIOX_OK;
}
