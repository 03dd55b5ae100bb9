/*
 * mpiox_darshan_layout.c - the Lustre records of a log.
 *
 * Problem. Version 1 has one layout a file: stripe offset, size, count, and the OSTs. Version 2 has any number of
 * components (progressive layouts, mirrors), each with a size, a count and an extent, then the OSTs of all of them, and
 * no offset. The library turns 1 into 2 and so loses the offset, and in a record whose last components are unused it
 * leaves pointers to where the OSTs were.
 *
 * Algorithm. The module's bytes are read as they are, record by record, with every count checked before it is used. The
 * row gets the component of the largest extent among those that have OSTs (of all, when none has), the number of
 * components, and the OSTs of all, ascending, each once. Of several records of a file (one a rank), that with the most
 * OSTs counts.
 *
 * Source: darshan-util, darshan-lustre-logutils.c and darshan-lustre-log-format.h.
 */
#include "mpiox_darshan_files.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

enum {
    MAX_COMPONENTS = 1 << 12,
    MAX_OSTS = 1 << 20,
    V1_WORDS = 7,        /* id, rank, OSTs, MDTs, offset, size, count */
    V2_WORDS = 4,        /* id, rank, components, OSTs */
    COMPONENT_WORDS = 9, /* 7 counters, 16 characters of the pool's name */
};
/* Words of a component. */
enum { SIZE, COUNT, PATTERN, FLAGS, EXTENT_START, EXTENT_END };

typedef struct reader {
    const mpiox_darshan_library *library;
    void *log;
    int module;
    int swap;
} reader;

typedef struct layout {
    int64_t size, count, offset, components;
    const int64_t *osts; /* ost_count of them */
    int64_t ost_count;
} layout;

/* Read `words` 8-byte words: 1 read, 0 the end, MPIOX_E_CORRUPT. */
static int read_words(const reader *from, int64_t *words, int64_t count)
{
    const int bytes = (int)(count * (int64_t)sizeof(*words));
    const int got = count > 0 ? from->library->get_mod(from->log, from->module, words, bytes) : 0;

    if (got < 0 || (got > 0 && got < bytes))
        return MPIOX_E_CORRUPT;
    if (got == 0 && count > 0)
        return 0;
    for (int64_t k = 0; k < count && from->swap; k++)
        words[k] = (int64_t)__builtin_bswap64((uint64_t)words[k]);
    return 1;
}

static int ascending(const void *a, const void *b)
{
    const int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;

    return (left > right) - (left < right);
}

/* Store the OSTs, ascending and each once, at the end of the table's list; their number, or MPIOX_E_NOMEM. */
static int64_t store_osts(mpiox_darshan_files *files, const int64_t *osts, int64_t count)
{
    if (files->ost_count + count > files->ost_capacity) {
        const int64_t capacity = 2 * (files->ost_count + count) + 64;
        int32_t *grown = realloc(files->osts, (size_t)capacity * sizeof(*grown));

        if (grown == NULL)
            return MPIOX_E_NOMEM;
        files->osts = grown;
        files->ost_capacity = capacity;
    }
    int32_t *to = files->osts + files->ost_count;
    int64_t stored = 0, unique = 0;
    for (int64_t k = 0; k < count; k++)
        if (osts[k] >= 0 && osts[k] <= INT32_MAX) /* -1: a stripe without an object yet */
            to[stored++] = (int32_t)osts[k];
    if (stored > 1)
        qsort(to, (size_t)stored, sizeof(*to), ascending);
    for (int64_t k = 0; k < stored; k++)
        if (unique == 0 || to[k] != to[unique - 1])
            to[unique++] = to[k];
    return unique;
}

static int take(mpiox_darshan_files *files, uint64_t id, const layout *found)
{
    mpiox_darshan_file *file = mpiox_darshan_files_at(files, id);
    const int64_t count = file != NULL ? store_osts(files, found->osts, found->ost_count) : MPIOX_E_NOMEM;

    if (count < 0)
        return MPIOX_E_NOMEM;
    if (file->slots[MPIOX_DARSHAN_FILE_components].i != MPIOX_DARSHAN_NONE && count <= file->ost_count)
        return MPIOX_OK;
    file->osts = files->ost_count;
    file->ost_count = (int32_t)count;
    files->ost_count += count;
    file->slots[MPIOX_DARSHAN_FILE_stripe_size].i = found->size >= 0 ? found->size : MPIOX_DARSHAN_NONE;
    file->slots[MPIOX_DARSHAN_FILE_stripe_count].i = found->count >= 0 ? found->count : MPIOX_DARSHAN_NONE;
    file->slots[MPIOX_DARSHAN_FILE_stripe_offset].i = found->offset >= 0 ? found->offset : MPIOX_DARSHAN_NONE;
    file->slots[MPIOX_DARSHAN_FILE_components].i = found->components;
    return MPIOX_OK;
}

/* Replace *words by `count` words of memory; MPIOX_E_NOMEM. */
static int reserve(int64_t **words, int64_t count)
{
    int64_t *grown = realloc(*words, (size_t)(count + 1) * sizeof(*grown));

    if (grown == NULL)
        return MPIOX_E_NOMEM;
    *words = grown;
    return MPIOX_OK;
}

/* 1: a record was taken; 0: the end; or an error. */
static int read_v1(mpiox_darshan_files *files, const reader *from, int64_t **words)
{
    int64_t head[V1_WORDS];
    const int got = read_words(from, head, V1_WORDS);

    if (got <= 0)
        return got;
    if (head[6] < 0 || head[6] > MAX_OSTS)
        return MPIOX_E_CORRUPT;
    if (reserve(words, head[6]) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    if (read_words(from, *words, head[6]) != 1)
        return MPIOX_E_CORRUPT;
    const layout found = {head[5], head[6], head[4], 1, *words, head[6]};
    const int code = take(files, (uint64_t)head[0], &found);
    return code == MPIOX_OK ? 1 : code;
}

/* Choose the component that stands for the layout: the one of the largest extent, of those with OSTs if there are. */
static layout largest(const int64_t *words, int64_t components, const int64_t *osts, int64_t ost_count)
{
    layout best = {-1, -1, -1, components, osts, ost_count};
    int64_t best_extent = -1, next = 0;
    int best_has_osts = 0;

    for (int64_t k = 0; k < components; k++) {
        const int64_t *component = words + k * COMPONENT_WORDS;
        const int64_t count = component[COUNT] > 0 ? component[COUNT] : 0;
        const int has_osts = count > 0 && next < ost_count && osts[next] >= 0;
        const int open_end = component[EXTENT_END] < 0;
        const int64_t extent = open_end ? INT64_MAX
                               : component[EXTENT_END] <= component[EXTENT_START] || component[EXTENT_START] < 0
                                   ? 0
                                   : component[EXTENT_END] - component[EXTENT_START];

        if (has_osts > best_has_osts || (has_osts == best_has_osts && extent > best_extent)) {
            best.size = component[SIZE];
            best.count = component[COUNT];
            best_extent = extent;
            best_has_osts = has_osts;
        }
        next = count > ost_count - next ? ost_count : next + count;
    }
    best.ost_count = next;
    return best;
}

static int read_v2(mpiox_darshan_files *files, const reader *from, int64_t **words)
{
    int64_t head[V2_WORDS];
    const int got = read_words(from, head, V2_WORDS);

    if (got <= 0)
        return got;
    if (head[2] < 0 || head[2] > MAX_COMPONENTS || head[3] < 0 || head[3] > MAX_OSTS)
        return MPIOX_E_CORRUPT;
    const int64_t body = head[2] > 0 ? head[2] * COMPONENT_WORDS + head[3]
                                     : 0; /* as the library: no component, no OST */
    if (reserve(words, body) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    if (body > 0 && read_words(from, *words, body) != 1)
        return MPIOX_E_CORRUPT;
    int64_t used = 0; /* the run time marks components that it did not need by a size of -1 */
    while (used < head[2] && (*words)[used * COMPONENT_WORDS + SIZE] != -1)
        used++;
    const int64_t osts = body > 0 ? head[3] : 0;
    const layout found = largest(*words, used, *words + head[2] * COMPONENT_WORDS, osts);
    const int code = take(files, (uint64_t)head[0], &found);
    return code == MPIOX_OK ? 1 : code;
}

int mpiox_darshan_layout_read(mpiox_darshan_files *files, const mpiox_darshan_library *library, void *log, int module,
                              int version, int swap, volatile int64_t *beat)
{
    const reader from = {library, log, module, swap};
    int64_t *words = NULL;
    int code = 1;

    if (version < 1 || version > 2)
        return MPIOX_E_UNSUPPORTED;
    while (code == 1) {
        code = version == 1 ? read_v1(files, &from, &words) : read_v2(files, &from, &words);
        ++*beat;
    }
    free(words);
    return code;
}
