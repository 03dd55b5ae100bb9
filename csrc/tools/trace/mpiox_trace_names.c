/*
 * mpiox_trace_names.c - see mpiox_trace_names.h.
 *
 * Algorithm. A hash table of texts in memory of its own, taken from the kernel: malloc() may be what called the tracer.
 *            A text is defined in a trace file when it is first used there.
 */
#include "mpiox_trace_names.h"

#include <fnmatch.h>
#include <string.h>

#include "mpiox_trace_file.h"
#include "mpiox_trace_system.h"
#include "mpiox_trace_system_files.h"

enum { CHUNK_BYTES = 1 << 18, FIRST_SLOTS = 1024, PATTERN_BYTES = 8192, SYSTEM_BYTES = 1 << 16 };
enum { OF_NOBODY, OF_PROGRAM, OF_SYSTEM }; /* the owner of the file; not queried yet */

typedef struct name {
    uint64_t hash;
    int32_t generation; /* of the trace file that has it, of the recording that `records` are of */
    int32_t owner, counted;
    uint32_t records[MPIOX_TRACE_NAME_RECORDS];
    char text[];
} name;

static bool keep_system;
static const char *only_these, *skip_these; /* patterns, one a line */
static name **names;                        /* by number */
static int32_t *slots, n_slots, n_names;
static char *chunk, *chunk_end;
static const char *others; /* the name that all further ones get; NULL: there is no bound */
static int64_t bytes_left, system_bytes_left = SYSTEM_BYTES;

void mpiox_trace_names_keep_system(bool keep)
{
    keep_system = keep;
}

void mpiox_trace_names_select(const char *only, const char *skip)
{
    only_these = only != NULL && only[0] != '\0' ? only : NULL;
    skip_these = skip != NULL && skip[0] != '\0' ? skip : NULL;
}

void mpiox_trace_names_bound(int64_t bytes, const char *name)
{
    bytes_left = bytes;
    others = name;
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    while (*text != '\0')
        hash = (hash ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static void *take(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (chunk == NULL || (size_t)(chunk_end - chunk) < bytes) {
        const size_t all = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

        chunk = mpiox_trace_map(-1, 0, (int64_t)all);
        chunk_end = chunk != NULL ? chunk + all : NULL;
    }
    if (chunk == NULL)
        return NULL;
    void *taken = chunk;
    chunk += bytes;
    return taken;
}

static void put_slot(uint64_t hash, int32_t number)
{
    uint64_t at = hash & (uint64_t)(n_slots - 1);

    while (slots[at] != 0)
        at = (at + 1) & (uint64_t)(n_slots - 1);
    slots[at] = number;
}

/* Twice the room; what was there before stays in its chunk, which is as much again. */
static bool grow(void)
{
    const int32_t more = n_slots == 0 ? FIRST_SLOTS : n_slots * 2;
    int32_t *new_slots = mpiox_trace_map(-1, 0, (int64_t)more * (int64_t)sizeof *new_slots);
    name **new_names = mpiox_trace_map(-1, 0, (int64_t)more * (int64_t)sizeof *new_names);

    if (new_slots == NULL || new_names == NULL)
        return false;
    if (n_names > 0)
        memcpy(new_names, names, ((size_t)n_names + 1) * sizeof *names);
    mpiox_trace_unmap(slots, (int64_t)n_slots * (int64_t)sizeof *slots);
    mpiox_trace_unmap(names, (int64_t)n_slots * (int64_t)sizeof *names);
    slots = new_slots;
    names = new_names;
    n_slots = more;
    for (int32_t number = 1; number <= n_names; number++)
        put_slot(names[number]->hash, number);
    return true;
}

static int32_t find(const char *text, uint64_t hash)
{
    if (n_slots == 0)
        return 0;
    for (uint64_t at = hash & (uint64_t)(n_slots - 1); slots[at] != 0; at = (at + 1) & (uint64_t)(n_slots - 1)) {
        const int32_t number = slots[at];

        if (names[number]->hash == hash && strcmp(names[number]->text, text) == 0)
            return number;
    }
    return 0;
}

static int32_t made(const char *text, uint64_t hash)
{
    const size_t bytes = strlen(text) + 1;
    name *n = take(sizeof *n + bytes);

    if (n == NULL || (n_names + 2 > n_slots / 2 && !grow()))
        return 0;
    n->hash = hash;
    memcpy(n->text, text, bytes);
    names[++n_names] = n;
    put_slot(hash, n_names);
    return n_names;
}

int32_t mpiox_trace_names_number(const char *text)
{
    const uint64_t hash = hash_of(text);
    const int32_t number = find(text, hash);

    if (number > 0)
        return number;
    if (others != NULL && text != others && (bytes_left -= (int64_t)(sizeof(name) + strlen(text) + 1)) < 0)
        return mpiox_trace_names_others();
    return made(text, hash);
}

int32_t mpiox_trace_names_others(void)
{
    return others != NULL ? mpiox_trace_names_number(others) : 0;
}

uint32_t *mpiox_trace_names_records(int32_t number, int32_t generation)
{
    name *n = number > 0 && number <= n_names ? names[number] : NULL;

    if (n != NULL && n->generation != generation) {
        memset(n->records, 0, sizeof n->records);
        n->generation = generation;
    }
    return n != NULL ? n->records : NULL;
}

const char *mpiox_trace_names_text(int32_t number)
{
    number &= ~MPIOX_TRACE_LEFT_OUT;
    return number > 0 && number <= n_names ? names[number]->text : NULL;
}

bool mpiox_trace_names_define(int32_t number)
{
    if (number <= 0 || number > n_names || names[number]->generation == mpiox_trace_file_generation())
        return true;
    if (!mpiox_trace_file_text(number, names[number]->text))
        return false;
    names[number]->generation = mpiox_trace_file_generation();
    return true;
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* A file-system type in front of a name, as MPI-IO libraries take it: "ufs:name". */
static const char *without_type(const char *text)
{
    const char *at = text;

    while (*at >= 'a' && *at <= 'z')
        at++;
    return *at == ':' && at - text >= 2 ? at + 1 : text;
}

void mpiox_trace_names_absolute(const char *given, const char *folder, char *text)
{
    char here[MPIOX_TRACE_NAME_BYTES];
    size_t used = 0;

    given = without_type(given);
    if (given[0] != '/') {
        if (folder == NULL && mpiox_trace_folder(here, sizeof here) > 0)
            folder = here;
        if (folder != NULL && folder[0] == '/') {
            used = strnlen(folder, MPIOX_TRACE_NAME_BYTES / 2);
            memcpy(text, folder, used);
            while (used > 1 && text[used - 1] == '/')
                used--;
            text[used++] = '/';
        }
    }
    while (*given != '\0' && used + 1 < MPIOX_TRACE_NAME_BYTES) {
        const bool at_start = used == 0 ? given[0] == '/' : text[used - 1] == '/';

        if (at_start && used > 0 && given[0] == '/')
            given++;
        else if (at_start && given[0] == '.' && (given[1] == '/' || (given[1] == '\0' && used > 1)))
            given += given[1] == '/' ? 2 : 1;
        else
            text[used++] = *given++;
    }
    while (used > 1 && text[used - 1] == '/')
        used--;
    text[used] = '\0';
}

static bool matches(const char *patterns, const char *path)
{
    char pattern[PATTERN_BYTES];

    while (*patterns != '\0') {
        const size_t length = strcspn(patterns, "\n");
        if (length > 0 && length < sizeof pattern) {
            memcpy(pattern, patterns, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, path, FNM_NOESCAPE) == 0) /* as Python's fnmatch, for pioneer's --only */
                return true;
        }
        patterns += length + (patterns[length] == '\n');
    }
    return false;
}

/* Whether a name fits a rule of the table, pioneer/sanitize/system_files.py. */
static bool fits(const char *rule, const char *path)
{
    for (;; rule++, path++) {
        if (*rule == '*') {
            const bool crosses = rule[1] == '*';

            rule += crosses ? 2 : 1;
            do
                if (fits(rule, path))
                    return true;
            while ((crosses || *path != '/') && *path++ != '\0');
            return false;
        }
        const size_t digits = *rule == '#' ? strspn(path, "0123456789") : 1;
        if (digits == 0 || (*rule != '#' && *rule != *path))
            return false;
        if (*rule == '\0')
            return true;
        path += digits - 1;
    }
}

static bool is_system(const char *path)
{
    static const char *const rules[] = MPIOX_TRACE_SYSTEM_FILES;

    for (size_t i = 0; !keep_system && i < sizeof rules / sizeof *rules; i++) {
        const bool kept = rules[i][0] == '!';

        if (fits(rules[i] + kept, path))
            return !kept;
    }
    return false;
}

static int32_t number_of_system(const char *path, uint64_t hash)
{
    const int64_t bytes = (int64_t)(sizeof(name) + strlen(path) + 1);
    int32_t number = find(path, hash);

    if (number == 0 && system_bytes_left >= bytes) {
        system_bytes_left -= bytes;
        number = made(path, hash);
    }
    if (number > 0)
        names[number]->owner = OF_SYSTEM;
    return MPIOX_TRACE_LEFT_OUT | number;
}

int32_t mpiox_trace_names_file(const char *path)
{
    const uint64_t hash = hash_of(path);
    int32_t number = find(path, hash);

    if (number > 0 && names[number]->owner != OF_NOBODY)
        return names[number]->owner == OF_SYSTEM ? MPIOX_TRACE_LEFT_OUT | number : number;
    if (skip_these != NULL && matches(skip_these, path))
        return -1;
    if (only_these != NULL ? !matches(only_these, path) : !keep_system && path[0] != '/')
        return -1; /* a name without a slash is a socket or a pipe, in the form of /proc */
    if (only_these == NULL && is_system(path))
        return number_of_system(path, hash);
    number = mpiox_trace_names_number(path);
    if (number > 0 && number != mpiox_trace_names_others())
        names[number]->owner = OF_PROGRAM;
    return number;
}

int32_t mpiox_trace_names_claim(int32_t number)
{
    if (number <= MPIOX_TRACE_LEFT_OUT)
        return -1;
    number &= ~MPIOX_TRACE_LEFT_OUT;
    names[number]->owner = OF_PROGRAM;
    return number;
}

bool mpiox_trace_names_is_new(int32_t number, int32_t time)
{
    name *n = number > MPIOX_TRACE_LEFT_OUT ? names[number & ~MPIOX_TRACE_LEFT_OUT] : NULL;

    if (n == NULL || n->counted == time)
        return false;
    n->counted = time;
    return true;
}
