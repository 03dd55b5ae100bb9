/*
 * mpiox_map.h - the arbiter's map: which I/O nodes every job has.
 *
 * Problem.   Jobs read the map while the arbiter replaces it, on file systems where a reader may see an old or a short
 *            file. A wrong map must never be followed.
 * Format.    Lines of text:
 *                mpiox-map 1
 *                generation 17
 *                job NAME 0,1,5          I/O nodes by index; "-" for none
 *                end JOBS CHECKSUM       number of job lines; FNV-1a, 64 bits, of all bytes before this line, in hex
 * Guarantee. Only a map that is whole, by its number of jobs and its checksum, is accepted.
 */
#ifndef MPIOX_MAP_H
#define MPIOX_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MPIOX_MAP_NODES = 576,     /* I/O nodes of a job at most; their indices are below it */
    MPIOX_MAP_BYTES = 4 << 20, /* of a map at most */
    MPIOX_MAP_NAME = 128       /* bytes of a job's name at most, with the NUL */
};

typedef struct mpiox_map {
    int64_t generation;             /* raised by every new map, >= 1 */
    bool named;                     /* the job is in the map */
    int32_t count;                  /* its I/O nodes */
    int16_t nodes[MPIOX_MAP_NODES]; /* [count], each once */
} mpiox_map;

/* The map's line of one job. MPIOX_OK; MPIOX_E_CORRUPT: *reason (static) explains why, *out is unchanged. */
int mpiox_map_parse(const char *text, size_t bytes, const char *job, mpiox_map *out, const char **reason);
/* FNV-1a, 64 bits. */
uint64_t mpiox_map_checksum(const char *text, size_t bytes);

#endif
