/* mpiox_rawtrace_names.c - see mpiox_rawtrace_names.h. */
#include "mpiox_rawtrace_names.h"

#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

static uint64_t hash_of(const char *text, int64_t bytes)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)bytes;

    for (; bytes >= 8; text += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    for (; bytes > 0; text++, bytes--)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    hash ^= hash >> 29;
    return hash * UINT64_C(0xbf58476d1ce4e5b9);
}

void mpiox_rawtrace_names_free(mpiox_rawtrace_names *names)
{
    free(names->bytes);
    free(names->offsets);
    free(names->hashes);
    free(names->places);
    memset(names, 0, sizeof *names);
}

/* The place of a text, or the free place where it belongs. */
static int32_t place_of(const mpiox_rawtrace_names *names, const char *text, int64_t bytes, uint64_t hash)
{
    const int32_t mask = names->place_count - 1;
    int32_t place = (int32_t)(hash >> 32) & mask;

    for (; names->places[place] != 0; place = (place + 1) & mask) {
        const int32_t i = names->places[place] - 1;
        if (names->hashes[i] == hash && names->offsets[i + 1] - names->offsets[i] == bytes &&
            (bytes == 0 || memcmp(names->bytes + names->offsets[i], text, (size_t)bytes) == 0))
            break;
    }
    return place;
}

static int grow_places(mpiox_rawtrace_names *names)
{
    const int32_t count = names->place_count > 0 ? 2 * names->place_count : 256;
    int32_t *places = calloc((size_t)count, sizeof *places);

    if (places == NULL)
        return MPIOX_E_NOMEM;
    for (int32_t i = 0; i < names->count; i++) {
        int32_t place = (int32_t)(names->hashes[i] >> 32) & (count - 1);
        while (places[place] != 0)
            place = (place + 1) & (count - 1);
        places[place] = i + 1;
    }
    free(names->places);
    names->places = places;
    names->place_count = count;
    return MPIOX_OK;
}

static int grow_names(mpiox_rawtrace_names *names)
{
    const int32_t capacity = names->capacity > 0 ? 2 * names->capacity : 128;
    int64_t *offsets = realloc(names->offsets, ((size_t)capacity + 1) * sizeof *offsets);

    if (offsets == NULL)
        return MPIOX_E_NOMEM;
    if (names->offsets == NULL)
        offsets[0] = 0;
    names->offsets = offsets;
    uint64_t *hashes = realloc(names->hashes, (size_t)capacity * sizeof *hashes);
    if (hashes == NULL)
        return MPIOX_E_NOMEM;
    names->hashes = hashes;
    names->capacity = capacity;
    return MPIOX_OK;
}

static int reserve_bytes(mpiox_rawtrace_names *names, int64_t needed)
{
    if (needed <= names->bytes_capacity && names->bytes != NULL)
        return MPIOX_OK;
    const int64_t capacity = 2 * needed + 4096;
    char *bytes = realloc(names->bytes, (size_t)capacity);
    if (bytes == NULL)
        return MPIOX_E_NOMEM;
    names->bytes = bytes;
    names->bytes_capacity = capacity;
    return MPIOX_OK;
}

int32_t mpiox_rawtrace_names_add(mpiox_rawtrace_names *names, const char *text, int64_t bytes)
{
    const uint64_t hash = hash_of(text, bytes);

    if (2 * (names->count + 1) > names->place_count && grow_places(names) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    const int32_t place = place_of(names, text, bytes, hash);
    if (names->places[place] != 0)
        return names->places[place] - 1;
    if (names->count == names->capacity && grow_names(names) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    const int64_t start = names->offsets[names->count];
    if (reserve_bytes(names, start + bytes) != MPIOX_OK)
        return MPIOX_E_NOMEM;
    if (bytes > 0)
        memcpy(names->bytes + start, text, (size_t)bytes);
    names->hashes[names->count] = hash;
    names->offsets[names->count + 1] = start + bytes;
    names->places[place] = ++names->count;
    return names->count - 1;
}

int32_t mpiox_rawtrace_names_find(const mpiox_rawtrace_names *names, const char *text, int64_t bytes)
{
    if (names->count == 0)
        return -1;
    return names->places[place_of(names, text, bytes, hash_of(text, bytes))] - 1;
}
