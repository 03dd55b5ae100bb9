/*
 * mpiox_rawtrace_names.h - each text once: a hash table from texts to numbers, and the texts in their order.
 *
 * Problem.   A trace names the same few functions and files a million times.
 * Algorithm. Open addressing with linear probing over 64-bit hashes; at most half of the places are taken.
 * Guarantee. Numbers are dense, from 0 on, and stay; memory grows with the number of different texts only.
 */
#ifndef MPIOX_RAWTRACE_NAMES_H
#define MPIOX_RAWTRACE_NAMES_H

#include <stdint.h>

/* Zeroed memory is an empty table. Name i is bytes[offsets[i] .. offsets[i + 1]), without a NUL. */
typedef struct mpiox_rawtrace_names {
    char *bytes;                          /* all names; owned */
    int64_t *offsets;                     /* [count + 1]; owned */
    uint64_t *hashes;                     /* of name i */
    int32_t *places;                      /* number + 1, or 0 */
    int64_t bytes_capacity;               /* room in `bytes` */
    int32_t count, capacity, place_count; /* names; room for names; entries of `places` */
} mpiox_rawtrace_names;

void mpiox_rawtrace_names_free(mpiox_rawtrace_names *names);

/* Number of a text, which is added when it is new; MPIOX_E_NOMEM (-1). */
int32_t mpiox_rawtrace_names_add(mpiox_rawtrace_names *names, const char *text, int64_t bytes);

/* Number of a text, or -1. */
int32_t mpiox_rawtrace_names_find(const mpiox_rawtrace_names *names, const char *text, int64_t bytes);

#endif
